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

// Add counts a heartbeat.
func (b *Beats) Add(e *Event) {
	b.Count++
	if e.At.IsZero() {
		return
	}
	if gap := e.At.Sub(b.last); !b.last.IsZero() {
		b.LongestGap = max(b.LongestGap, gap)
		if gap > heartbeatMissed {
			b.Missed += int((gap+HeartbeatEvery/2)/HeartbeatEvery) - 1
		}
	}
	b.last = e.At
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

// Fold calls show for each event; of the heartbeats of one run of an agent only for the last one, with
// all of them. A run begins with agent.started.
func Fold(events []Event, show func(e *Event, beats *Beats) error) error {
	last := map[int]*Beats{} // by the index of the last heartbeat of a run
	at, beats := -1, Beats{}
	end := func() {
		if at >= 0 {
			kept := beats
			last[at] = &kept
		}
		at, beats = -1, Beats{}
	}
	for i := range events {
		switch e := &events[i]; {
		case e.Type == Started:
			end()
		case e.IsHeartbeat():
			at = i
			beats.Add(e)
		}
	}
	end()
	for i := range events {
		if events[i].IsHeartbeat() && last[i] == nil {
			continue
		}
		if err := show(&events[i], last[i]); err != nil {
			return err
		}
	}
	return nil
}
