package sandbox

import "time"

// Usage is one sample of what a sandbox uses. Nil means not reported.
type Usage struct {
	At               time.Time
	CPUPercent       *float64 // of one core; nil for a single cumulative sample
	CPUSeconds       *float64 // cumulative, so that two samples give CPUPercent
	BusiestSeconds   *float64 // cumulative time in which its busiest thread ran or was ready to and others had the processor
	MemoryBytes      *int64   // working set: what the limit is compared with
	MemoryPeakBytes  *int64
	MemoryLimitBytes *int64
	Operations       *int64 // cumulative; what counts as one is Source's business
	PIDs             *int64
	OOMKills         *int64
	Waiting          string // what the main program waits on, where that can be seen: "tcp 10.0.0.1:443"
	Source           string // where the figures come from
}

// LogLine is one line of a sandbox's output.
type LogLine struct {
	At        time.Time
	Stream    string // "stdout", "stderr", or the provider's word
	Text      string // without its line end; untrusted
	Truncated bool   // the line was longer than is kept
	Source    string // set when the lines are not the provider's own
}

// Event is one entry of a sandbox's timeline.
type Event struct {
	At     time.Time
	Event  string
	Detail string
}

// Sink receives what a verb sees and does, as it happens. Implementations
// return at once.
type Sink interface {
	Note(e Event, ref Ref)
}
