package local

import (
	"context"
	"time"

	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/runlog"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// exitOf judges a record's facts by the rules that every provider shares.
func exitOf(r record.Record) *sandbox.Exit {
	e := classify(nil, r, nil)
	return &e
}

// lastLines is how much of the output may say why a runtime gave up.
const lastLines = 20

// explain is exitOf with the last lines of the output taken into account:
// worth its cost for one sandbox, not for a listing.
func (c *Client) explain(ctx context.Context, r record.Record) *sandbox.Exit {
	var lines []string
	for line, err := range runlog.Read(ctx, c.store.Dir(r.ID), runlog.Query{Tail: lastLines}) {
		if err != nil {
			break
		}
		lines = append(lines, line.Text)
	}
	e := classify(triage.NewMatcher(), r, lines)
	return &e
}

func classify(m *triage.Matcher, r record.Record, lines []string) sandbox.Exit {
	e := r.Exit
	if e == nil {
		e = &record.Exit{}
	}
	f := triage.ExitFacts{
		Raw: rawExit(e), Died: died(e), At: endOf(r), Source: "wait status",
		TimedOut: e.TimedOut, Watchdog: e.WatchdogBytes > 0, SupervisorLost: e.SupervisorLost,
		OOMKills: e.OOMKills, CounterSource: counterOf(e.CounterSource), UsageSource: e.CounterSource, PeakBytes: e.PeakBytes, LastBytes: e.LastBytes, LastAt: e.LastSampleAt,
		KernelLog: e.KernelLog, Lines: lines,
	}
	if e.Stop != nil {
		f.StopBy = e.Stop.By
	}
	if r.Limits.MemoryBytes > 0 {
		f.LimitBytes = &r.Limits.MemoryBytes
	}
	out := triage.ClassifyExit(m, f)
	if e.StartError != "" {
		out.Evidence = append(out.Evidence, sandbox.Evidence{What: "start", Value: e.StartError, Source: "supervisor", At: f.At})
	}
	out.Evidence = append(out.Evidence, treeFacts(e.Emptied, e.Unproven, f.At)...)
	if r.End != nil {
		out.Evidence = append(out.Evidence, endFacts(r)...)
	}
	return out
}

// endFacts tell how a lingering sandbox ended after its program. They are no reason
// of the program's end.
func endFacts(r record.Record) []sandbox.Evidence {
	end := r.End
	how := "its stub was lost"
	switch {
	case end.Stop != nil:
		how = "stopped by " + end.Stop.By
	case end.TimedOut:
		how = "its time was over"
	case end.WatchdogBytes > 0:
		how = "the memory watchdog ended it"
	case end.SupervisorLost:
		how = "its supervisor or stub was lost"
	}
	facts := []sandbox.Evidence{{What: "the sandbox ended later", Value: how, Source: "sbx", At: r.EndedAt}}
	return append(facts, treeFacts(end.Emptied, end.Unproven, r.EndedAt)...)
}

// treeFacts is what is known of the processes that a sandbox may have left.
func treeFacts(emptied string, unproven bool, at time.Time) []sandbox.Evidence {
	switch {
	case unproven:
		return []sandbox.Evidence{{
			What: "tree", Value: "unknown: its supervisor and its stub were killed, and only processes that carry its mark could be looked for",
			Source: "process environments", At: at,
		}}
	case emptied != "":
		return []sandbox.Evidence{{What: "tree", Value: emptied, Source: "kernel", At: at}}
	}
	return nil
}

// counterOf names the kernel's file behind the figures of an enforcement.
func counterOf(enforcement string) string {
	switch sandbox.Enforcement(enforcement) {
	case sandbox.EnforcementCgroup2, sandbox.EnforcementScope:
		return "kernel: memory.events (" + enforcement + ")"
	case sandbox.EnforcementCgroup1, sandbox.EnforcementHybrid:
		return "kernel: memory.oom_control (" + enforcement + ")"
	case sandbox.EnforcementWatch, sandbox.EnforcementNone:
	}
	return enforcement
}

func died(e *record.Exit) sandbox.Verdict {
	switch {
	case e.Signal != 0:
		return sandbox.True
	case e.Code != nil:
		return sandbox.False
	}
	return sandbox.Unknown
}

func endOf(r record.Record) time.Time {
	if r.Exit != nil && r.Exit.At != nil {
		return *r.Exit.At
	}
	return r.EndedAt
}
