package cleanup_test

import (
	"maps"
	"time"

	"sbx/internal/sandbox"
)

// box is the true state of one sandbox. A provider's record of it may lack fields or be
// late; the rules of the simulation are checked against this.
type box struct {
	id      string
	gen     int       // which sandbox of this id it is, from 1
	created time.Time // by the true clock
	says    string    // how its record shows that: see said
	state   sandbox.State
	labels  map[string]string
	agent   string

	worked   time.Time // its last activity
	busyFrom time.Time // from here on it is always active; zero = never

	recordTells bool // its record has a time of the last activity
	recordJudge sandbox.Verdict
	logs        bool // its output shows its activity

	record string // of a control plane: "" = none, "living", "ended"

	asked  time.Time // when a request to end it arrived
	delete bool
	endFor time.Duration // from the request to its end; forever = never
	deaf   bool          // it ignores requests
	ended  time.Time     // when it ended by itself
}

const forever time.Duration = -1

// over reports whether it has really ended.
func (b *box) over(now time.Time) bool { return !b.end().IsZero() && !b.end().After(now) }

func (b *box) end() time.Time {
	switch {
	case !b.ended.IsZero():
		return b.ended
	case b.asked.IsZero(), b.endFor == forever:
		return time.Time{}
	}
	return b.asked.Add(b.endFor)
}

// lastWork is its last activity until now.
func (b *box) lastWork(now time.Time) time.Time {
	if end := b.end(); !end.IsZero() && end.Before(now) {
		now = end
	}
	if !b.busyFrom.IsZero() && !b.busyFrom.After(now) {
		return now
	}
	return b.worked
}

// partial reports, in one world of five, that neither the log nor the record's last
// activity shows what the program does.
func (b *box) partial(seed uint64) bool {
	return seed%5 == 3 && len(b.id) > 0 && b.id[len(b.id)-1]%2 == 0
}

// said is the creation time in its record.
func (b *box) said() time.Time {
	switch b.says {
	case "nothing":
		return time.Time{}
	case "the future":
		return b.created.Add(30 * 24 * time.Hour)
	case "a zone ahead":
		return b.created.Add(2 * time.Hour)
	}
	return b.created
}

// now is its state at a moment, as a correct record shows it.
func (b *box) now(now time.Time, stops bool) sandbox.State {
	switch {
	case b.over(now) && b.state == sandbox.StateFailed:
		return sandbox.StateFailed
	case b.over(now) && stops && !b.delete && b.ended.IsZero():
		return sandbox.StateStopped
	case b.over(now):
		return sandbox.StateTerminated
	case !b.asked.IsZero() && !b.deaf:
		return sandbox.StateTerminating
	}
	return b.state
}

// sight is the true state of a sandbox when a provider answered about it.
type sight struct {
	at, created time.Time // created as in the record
	gen         int
	state       sandbox.State
	labels      map[string]string
	agent       string
	worked      time.Time
	recordTells bool
	unreadable  bool
	off         time.Duration // of this machine's clock, when it was read
}

func (b *box) sight(now time.Time, c *cloud) sight {
	return sight{
		at: now, created: shift(b.said(), c.skew), gen: b.gen, state: b.now(now, c.stops), labels: maps.Clone(b.labels),
		agent: b.agent, worked: b.lastWork(now), recordTells: b.recordTells,
	}
}

func shift(at time.Time, by time.Duration) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(by)
}

// view is its record at a moment, in the provider's time.
func (c *cloud) view(b *box, now time.Time) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: c.name, ProviderType: "simulated", ID: b.id, Name: "n-" + b.id, State: b.now(now, c.stops), CreatedAt: shift(b.said(), c.skew),
		Labels: maps.Clone(b.labels), AgentType: b.agent, Activity: b.recordJudge,
	}
	s.RawState = string(s.State)
	switch {
	case b.recordTells:
		s.LastActivityAt, s.ActivityBasis = shift(b.lastWork(now), c.skew), sandbox.BasisOutput
	case b.partial(c.seed): // a client connected once, and the program has worked on since
		s.LastActivityAt, s.ActivityBasis = shift(b.created.Add(time.Minute), c.skew), sandbox.BasisRequests
	}
	if b.over(now) {
		s.EndedAt = shift(b.end(), c.skew)
	}
	return s
}

func (b *box) mark(label, value string) {
	if b.labels == nil {
		b.labels = map[string]string{}
	}
	b.labels[label] = value
}
