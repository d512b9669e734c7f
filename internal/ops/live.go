package ops

import (
	"context"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
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
	Profile string
	At      time.Time     // when it was asked
	Took    time.Duration // until it had answered
	Figures Figures       // none with an error
	Rows    []fleet.Judged
	Err     error // why there is no complete listing
}

// Round lists the sandboxes of a profile, judged by their records, and counts them as `stats` does.
func (l *Live) Round(ctx context.Context, profile string) LiveRound {
	r := LiveRound{Profile: profile, At: l.env.Now()}
	one, err := l.fleet.Narrow([]string{profile})
	if err != nil {
		r.Err = err
		return r
	}
	began := time.Now()
	stats := one.Stats(ctx)[0]
	r.Took = time.Since(began)
	if r.Err = stats.ItemsErr; r.Err != nil {
		return r
	}
	r.Rows = one.Judge(ctx, stats.Items, fleet.Judging{Now: l.env.Now, Thresholds: l.env.Thresholds})
	var census Census
	for _, j := range r.Rows {
		census.Add(profile, j.Verdict)
	}
	r.Figures = l.env.providerFigures(stats, census)
	return r
}

// LiveLook is what a sandbox itself told.
type LiveLook struct {
	fleet.Judged

	Usage *SandboxUsage // nil = it is not known
}

// Look asks sandboxes themselves, as `ls --look` does, and those that run for their usage.
func (l *Live) Look(ctx context.Context, items []sandbox.Sandbox) []LiveLook {
	judged := l.fleet.Judge(ctx, items, fleet.Judging{
		Now: l.env.Now, Thresholds: l.env.Thresholds, Look: true,
		Open: func(j fleet.Judged) bool { return j.Sandbox.State == sandbox.StateRunning },
	})
	all := make([]LiveLook, len(judged))
	for i, j := range judged {
		all[i].Judged = j
		if j.Look != nil && j.Look.Err == nil && j.Look.Trend.Samples > 0 {
			all[i].Usage = &SandboxUsage{Sandbox: j.Sandbox, Last: j.Look.Last, Trend: j.Look.Trend, Limits: l.env.Thresholds(j.Sandbox), Verdict: j.Verdict}
		}
	}
	return all
}

// Follow reads the last lines of a log, and then each new one, until the log or ctx ends. Items are of types
// LogLine, LogGap and error, as those of Logs.
func (l *Live) Follow(ctx context.Context, ref sandbox.Ref, lines int, item func(any)) {
	r := &logReader{req: LogsRequest{Follow: true, Tail: lines}, item: item, matcher: triage.NewMatcher()}
	r.readLog(ctx, l.fleet, ref)
}
