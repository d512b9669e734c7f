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
	Duration         *time.Duration // for how long it has run, by its own account
	OOMKills         *int64
	Waiting          string // what the main program waits on, where that can be seen: "tcp 10.0.0.1:443"
	Source           string // where the figures come from
}

// LogLine is one line of a sandbox's output.
type LogLine struct {
	At        time.Time
	Stream    string // "stdout", "stderr", or the provider's word
	Text      string // without its line end; untrusted
	Truncated bool   // its beginning or its end is missing: too long, or beside a gap
	Source    string // set when the lines are not the provider's own
	// Gap is set where the line is no output but says that output is missing here.
	Gap *LogGap
}

// LogGap is how much output is missing at one place of a log.
type LogGap struct {
	Lines, Bytes *int64 // nil = not known
}

// LogNotice is the stream of lines that a log reader adds to those of the program.
const LogNotice = "sbx"

// MissingOutput makes the line that says what is missing, and why.
func MissingOutput(why string, gap LogGap) LogLine {
	return LogLine{Stream: LogNotice, Text: why, Gap: &gap}
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
