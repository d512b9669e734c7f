package record

import "sbx/internal/sandbox"

// End is how a lingering sandbox ended whose program had ended before: Exit stays
// the program's own.
type End struct {
	Stop           *Stop    `json:"stop,omitempty"`
	TimedOut       bool     `json:"timed_out,omitempty"`
	SupervisorLost bool     `json:"supervisor_lost,omitempty"` // or its stub
	WatchdogBytes  int64    `json:"watchdog_bytes,omitempty"`  // resident bytes when the watchdog fired
	OOMKills       *int64   `json:"oom_kills,omitempty"`       // of its whole life; nil = no counter
	PeakBytes      *int64   `json:"peak_bytes,omitempty"`
	CPUSeconds     *float64 `json:"cpu_seconds,omitempty"`
	CounterSource  string   `json:"counter_source,omitempty"`
	Emptied        string   `json:"emptied,omitempty"`  // the proof that nothing of it is left
	Unproven       bool     `json:"unproven,omitempty"` // nothing proves that: it may have left processes that carry no mark
}

// ProgramEnded says that the end of the program is on record, whether or not its
// sandbox has ended too.
func (r Record) ProgramEnded() bool {
	return r.Exit != nil && (r.State.Ended() || r.lingers())
}

// lingers says that the program ended before its sandbox: only such an exit bears
// a time of its own.
func (r Record) lingers() bool { return r.Linger && r.Exit != nil && r.Exit.At != nil }

// Close is the one place where the end of a sandbox is put down: as the end of its
// program, or of what stayed behind that.
func (r *Record) Close(e Exit) {
	if !r.lingers() {
		r.Exit = &e
		return
	}
	r.End = &End{
		Stop: e.Stop, TimedOut: e.TimedOut, SupervisorLost: e.SupervisorLost, WatchdogBytes: e.WatchdogBytes, Emptied: e.Emptied, Unproven: e.Unproven,
		OOMKills: e.OOMKills, PeakBytes: e.PeakBytes, CPUSeconds: e.CPUSeconds, CounterSource: e.CounterSource,
	}
}

// MayRun says that the record was closed without a proof that nothing is left.
func (r Record) MayRun() bool {
	return r.Exit != nil && r.Exit.Unproven || r.End != nil && r.End.Unproven
}

// EndState is the state of a sandbox that has ended: exit 0 or a stop is
// `terminated`, everything else `failed` (DESIGN section 3). A lingering one goes
// by its program, unless it was stopped.
func (r Record) EndState() sandbox.State {
	e := r.Exit
	switch {
	case e == nil:
	case e.Stop != nil, r.End != nil && r.End.Stop != nil:
		return sandbox.StateTerminated
	case e.Code != nil && *e.Code == 0 && !e.TimedOut && e.WatchdogBytes == 0:
		return sandbox.StateTerminated
	}
	return sandbox.StateFailed
}
