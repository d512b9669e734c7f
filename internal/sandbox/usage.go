package sandbox

import (
	"time"
)

// Usage is one sample of a sandbox's usage. Nil means not reported.
type Usage struct {
	At               time.Time
	CPUPercent       *float64     // of one core, without what the measurement costs; nil for a single cumulative sample
	CPUSeconds       *float64     // cumulative, so that two samples give CPUPercent
	Busiest          *ThreadUsage // its thread that wanted most processor time
	MemoryBytes      *int64       // working set: without inactive page cache; to be compared with the limit
	MemoryPeakBytes  *int64
	MemoryLimitBytes *int64
	Operations       *int64 // cumulative; their kind depends on Source
	PIDs             *int64
	Tasks            *int64         // processes and threads, which a limit of processes counts
	TasksRefused     *int64         // cumulative: how often that limit has refused one more
	Duration         *time.Duration // how long it has run, as reported by itself
	OOMKills         *int64
	Waiting          string // what the main program waits for, if visible: "tcp 10.0.0.1:443"
	Source           string // of the figures
}

// HasProcessor reports whether the sample has a figure of the processor.
func (u Usage) HasProcessor() bool {
	return u.CPUPercent != nil || u.CPUSeconds != nil || u.Busiest != nil
}

// ThreadUsage is what the scheduler of the sandbox's machine counted of one thread.
type ThreadUsage struct {
	ID            string
	WantedSeconds float64 // cumulative time in which it ran or waited for a processor; a wait counts when it ends
	Runnable      bool    // at the moment of the sample it ran or waited for a processor
	Sleeps        *int64  // cumulative; nil = not reported
}

// LogLine is one line of a sandbox's output.
type LogLine struct {
	At        time.Time
	NotAfter  time.Time // where At is not known: when the newest line was written, and so this one at the latest
	Stream    string    // "stdout", "stderr", or the provider's word
	Text      string    // without its line end; untrusted
	Truncated bool      // its beginning or its end is missing: too long, or next to a gap
	Source    string    // set when the lines are not the provider's own
	// OpenBytes is set where the line has not ended: its length so far. Text is what came since it
	// was last reported; the whole line follows when it ends.
	OpenBytes int64
	// Gap is set where the line is no output but reports missing output.
	Gap *LogGap
}

// LogGap is the amount of output that is missing at one place of a log.
type LogGap struct {
	Lines, Bytes *int64 // nil = not known
}

// LogNotice is the stream of lines that a log reader adds to the program's.
const LogNotice = "sbx"

// MissingOutput makes the line that reports missing output, with the reason.
func MissingOutput(why string, gap LogGap) LogLine {
	return LogLine{Stream: LogNotice, Text: why, Gap: &gap}
}

// Event is one entry in the timeline of a sandbox.
type Event struct {
	At     time.Time
	Event  string
	Detail string
}

// Sink receives the events of an operation. Implementations must not block.
type Sink interface {
	Note(e Event, ref Ref)
}

// ActivityBasis says what updates LastActivityAt. A recent time is a sign of life on any
// basis; an old one proves silence only where every working program would have updated it.
type ActivityBasis string

// The closed list of bases.
const (
	BasisUnknown  ActivityBasis = ""         // an old time proves nothing
	BasisOutput   ActivityBasis = "output"   // output of its programs
	BasisReports  ActivityBasis = "reports"  // reports of its agent to a control plane
	BasisRequests ActivityBasis = "requests" // requests of its clients, without which a program may work
)

// ProvesSilence reports whether an old LastActivityAt means that nothing has worked since.
func (b ActivityBasis) ProvesSilence() bool { return b == BasisOutput || b == BasisReports }

// WithActivity adds the result of another source: the later time counts, and a basis that
// proves silence is kept.
func (s Sandbox) WithActivity(at time.Time, basis ActivityBasis) Sandbox {
	if at.After(s.LastActivityAt) {
		s.LastActivityAt = at
	}
	if basis.ProvesSilence() {
		s.ActivityBasis = basis
	}
	return s
}
