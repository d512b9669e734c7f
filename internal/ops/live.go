package ops

import (
	"context"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fleet"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// Live reads a fleet again and again, one provider at a time, so that a slow one delays no other.
type Live struct {
	env   *Env
	fleet *fleet.Fleet
}

// NewLive opens the fleet that is read.
func NewLive(ctx context.Context, env *Env) (*Live, error) {
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	return &Live{env, f}, nil
}

// Profiles are those that are read, in their order.
func (l *Live) Profiles() []string { return l.fleet.Names() }

// LiveRound is one answer of one provider.
type LiveRound struct {
	Profile    string
	At         time.Time        // when it was asked
	Connection fleet.Connection // how its provider answers, also with an error
	Figures    Figures          // none with an error
	FiguresErr error            // why the provider's own counters are not among the figures; nil = they are, or it has none
	Rows       []fleet.Judged
	Err        error // why there is no complete listing
}

// Round lists the sandboxes of a profile, judged by their records, and counts them as `stats` does.
func (l *Live) Round(ctx context.Context, profile string) LiveRound {
	r := LiveRound{Profile: profile, At: l.env.Now()}
	one, err := l.fleet.Narrow([]string{profile})
	if err != nil {
		r.Err = err
		return r
	}
	stats := one.Stats(ctx)[0]
	r.Connection = one.Connection(profile)
	if r.Err = stats.ItemsErr; r.Err != nil {
		return r
	}
	r.FiguresErr = stats.Err
	r.Rows = one.Judge(ctx, stats.Items, fleet.Judging{Now: l.env.Now, Thresholds: l.env.Thresholds})
	var census Census
	for _, j := range r.Rows {
		census.Add(profile, j.Verdict)
	}
	r.Figures = l.env.providerFigures(stats, census)
	return r
}

// Tasks are the tasks on record, the newest first.
func (l *Live) Tasks(ctx context.Context) ([]TaskState, error) {
	r, err := ListTasks(ctx, l.env, TasksRequest{})
	return r.Tasks, err
}

// LiveLook is what a sandbox itself told.
type LiveLook struct {
	fleet.Judged

	Usage  *SandboxUsage    // nil = it is not known
	Causes []triage.Finding // of what is wrong with it, as `inspect` ranks them
}

// liveLines is how many lines of output a look keeps.
const liveLines = 2

// Look asks sandboxes themselves, as `ls --look` does, and those that run for their usage.
func (l *Live) Look(ctx context.Context, items []sandbox.Sandbox) []LiveLook {
	judged := l.fleet.Judge(ctx, items, fleet.Judging{
		Now: l.env.Now, Thresholds: l.env.Thresholds, Look: true, Lines: liveLines,
		Open: func(j fleet.Judged) bool { return j.Sandbox.State == sandbox.StateRunning },
	})
	all := make([]LiveLook, len(judged))
	for i, j := range judged {
		all[i].Judged = j
		all[i].Causes = triage.Causes(j.Verdict, j.Sandbox, j.Signals, l.env.Thresholds(j.Sandbox), j.At)
		if j.Look != nil && j.Look.Err == nil && j.Look.Trend.Samples > 0 {
			all[i].Usage = &SandboxUsage{Sandbox: j.Sandbox, Last: j.Look.Last, Trend: j.Look.Trend, Limits: l.env.Thresholds(j.Sandbox), Verdict: j.Verdict}
		}
	}
	return all
}

// PlanRequest says what an act of the dashboard is about.
type PlanRequest struct {
	Verb  string            // VerbTerminate, VerbCleanup, VerbReconcile or VerbStop
	Boxes []sandbox.Sandbox // of terminate and stop; the others choose in all profiles
	Line  []string          // as a person types it, quoted for a shell
}

// Plan reads what an act would do now. Nothing is changed.
func (l *Live) Plan(ctx context.Context, req PlanRequest, watch Observer) (*Act, error) {
	c, err := l.env.Config()
	if err != nil {
		return nil, err
	}
	switch req.Verb {
	case VerbTerminate:
		t := TerminateRequest{Grace: EndGrace, Production: c.Production, Line: req.Line}
		for _, box := range req.Boxes {
			t.Words = append(t.Words, box.Ref().String())
			t.Planned = append(t.Planned, PlannedEnd{Ref: box.Ref(), Sandbox: box})
		}
		t.Typed = t.Words
		return TerminationAct(ctx, l.env, t, watch)
	case VerbCleanup:
		rule, err := selector.Compile(selector.Options{Now: l.env.Now(), Stuck: true})
		if err != nil {
			return nil, err
		}
		return CleanupAct(ctx, l.env, CleanupRequest{Rule: cleanup.Rule{Selector: rule}, Grace: EndGrace, Production: c.Production, Line: req.Line}, watch)
	case VerbReconcile:
		return ReconciliationAct(ctx, l.env, ReconcileRequest{Rules: reconcile.DefaultRules(), Production: c.Production, Line: req.Line}, watch)
	}
	var tasks []string
	var kept []PlannedEnd
	for _, box := range req.Boxes {
		switch id := box.TaskID; {
		case !task.IsID(id):
			kept = append(kept, PlannedEnd{box.Ref(), "it belongs to no task of sbx; terminate ends it", box})
		case !slices.Contains(tasks, id):
			tasks = append(tasks, id)
		}
	}
	a := StopAct(l.env, tasks)
	a.Kept, a.Line = kept, req.Line
	return a, nil
}

// Follow reads the last lines of a log, and then each new one, until the log or ctx ends. Items are of types
// LogLine, LogGap and error, as those of Logs.
func (l *Live) Follow(ctx context.Context, ref sandbox.Ref, lines int, item func(any)) {
	r := &logReader{req: LogsRequest{Follow: true, Tail: lines}, item: item, matcher: triage.NewMatcher()}
	r.readLog(ctx, l.fleet, ref)
}
