package agentlog

import (
	"fmt"
	"time"
)

// A worker sends a heartbeat each 30 s; a gap beyond two and a half of these is one that was missed.
const (
	HeartbeatEvery  = 30 * time.Second
	heartbeatMissed = 75 * time.Second
)

// Beats are the heartbeats of one run of an agent.
type Beats struct {
	Count, Missed int
	LongestGap    time.Duration

	last time.Time
}

// Add counts a heartbeat; a zero time is not known.
func (b *Beats) Add(at time.Time) {
	b.Count++
	if at.IsZero() {
		return
	}
	if gap := at.Sub(b.last); !b.last.IsZero() {
		b.LongestGap = max(b.LongestGap, gap)
		if gap > heartbeatMissed {
			b.Missed += int((gap+HeartbeatEvery/2)/HeartbeatEvery) - 1
		}
	}
	b.last = at
}

// String is "45 heartbeats, none missed".
func (b Beats) String() string {
	text := "1 heartbeat"
	if b.Count != 1 {
		text = fmt.Sprintf("%d heartbeats", b.Count)
	}
	switch {
	case b.Missed > 0:
		return fmt.Sprintf("%s, %d missed, the longest gap %s", text, b.Missed, b.LongestGap.Round(time.Second))
	case b.Count > 1:
		return text + ", none missed"
	}
	return text
}
