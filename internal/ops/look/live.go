package look

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Live reads a fleet again and again, one provider at a time, so that a slow one delays no other.
type Live struct {
	Env   *ops.Env
	Once  bool // each profile is read once only
	fleet *fleet.Fleet

	mu      sync.Mutex
	rounds  map[string]LiveRound   // the newest of each profile
	answers map[sandbox.Ref]answer // of the newest looks
	stuck   map[sandbox.Ref]triage.Verdict
}

// answer is what a look got from inside a sandbox.
type answer struct {
	verdict sandbox.Verdict
	at      time.Time
}

// answerKeeps is for how long an answer shows whether an edge works.
const answerKeeps = time.Minute

// NewLive opens the fleet that is read.
func NewLive(ctx context.Context, env *ops.Env) (*Live, error) {
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	return &Live{Env: env, fleet: f, rounds: map[string]LiveRound{}, answers: map[sandbox.Ref]answer{}, stuck: map[sandbox.Ref]triage.Verdict{}}, nil
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
	Rows       []LiveRow
	Err        error // why there is no complete listing
}

// LiveRow is a sandbox of a round, judged by its record. The next round has the same record where it has not changed.
type LiveRow struct {
	Sandbox *sandbox.Sandbox
	Verdict triage.Verdict
	At      time.Time // when it was judged
}

// Judged is what a look would give of it.
func (r *LiveRow) Judged() fleet.Judged {
	return fleet.Judged{Sandbox: *r.Sandbox, Verdict: r.Verdict, At: r.At}
}

// Round lists the sandboxes of a profile, judged by their records, and counts them as `stats` does.
func (l *Live) Round(ctx context.Context, profile string) LiveRound {
	r := LiveRound{Profile: profile, At: l.Env.Now()}
	one, err := l.fleet.Narrow([]string{profile})
	if err != nil {
		r.Err = err
		return r
	}
	read := one.LiveStats
	if l.Once {
		read = one.Stats
	}
	stats := read(ctx)[0]
	r.Connection = one.Connection(profile)
	if r.Err = stats.ItemsErr; r.Err != nil {
		return r
	}
	r.FiguresErr = stats.Err
	var census Census
	r.Rows = make([]LiveRow, 0, len(stats.Items)+len(stats.Shared))
	for s := range stats.Listed() {
		j := l.Env.JudgeRecord(*s)
		census.Add(profile, j.Verdict)
		r.Rows = append(r.Rows, LiveRow{s, j.Verdict, j.At})
	}
	r.Figures = providerFigures(l.Env, stats, census)
	l.keepRound(r)
	return r
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
		Now: l.Env.Now, Thresholds: l.Env.Thresholds, Look: true, Lines: liveLines, Beside: l.beside(items),
		Open: func(j fleet.Judged) bool { return j.Sandbox.State == sandbox.StateRunning },
	})
	l.keepAnswers(judged)
	all := make([]LiveLook, len(judged))
	for i, j := range judged {
		all[i].Judged = j
		all[i].Causes = triage.Causes(j.Verdict, j.Sandbox, j.Signals, l.Env.Thresholds(j.Sandbox), j.At)
		if j.Figures != nil && j.Figures.Err == nil && j.Figures.Trend.Samples > 0 {
			all[i].Usage = &SandboxUsage{Sandbox: j.Sandbox, Last: j.Figures.Last, Trend: j.Figures.Trend, Limits: l.Env.Thresholds(j.Sandbox), Verdict: j.Verdict}
		}
	}
	return all
}

func (l *Live) keepRound(r LiveRound) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rounds[r.Profile] = r
}

// beside are the other running sandboxes of the profiles of some, with what they answered lately.
func (l *Live) beside(items []sandbox.Sandbox) []fleet.Answers {
	profiles := map[string]bool{}
	for _, s := range items {
		profiles[s.Provider] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.Env.Now()
	maps.DeleteFunc(l.answers, func(_ sandbox.Ref, a answer) bool { return now.Sub(a.at) > answerKeeps })
	var all []fleet.Answers
	for profile := range profiles {
		rows := l.rounds[profile].Rows
		all = slices.Grow(all, len(rows))
		for i := range rows {
			if s := rows[i].Sandbox; s.State == sandbox.StateRunning {
				all = append(all, fleet.Answers{Ref: s.Ref(), State: s.State, Verdict: l.answers[s.Ref()].verdict})
			}
		}
	}
	return all
}

func (l *Live) keepAnswers(judged []fleet.Judged) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, j := range judged {
		if v := j.Answered; v != "" {
			l.answers[j.Sandbox.Ref()] = answer{v, j.At}
		}
		delete(l.stuck, j.Sandbox.Ref())
		if j.Verdict.Stuck == sandbox.True {
			l.stuck[j.Sandbox.Ref()] = j.Verdict
		}
	}
}

// WhyStuck is the cause of a sandbox that the last look, else its record, shows to be stuck, and its reason; "" = neither does.
func (l *Live) WhyStuck(ref sandbox.Ref) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, stuck := l.stuck[ref]
	if i := slices.IndexFunc(l.rounds[ref.Provider].Rows, func(r LiveRow) bool { return r.Sandbox.Ref() == ref }); !stuck && i >= 0 {
		v = l.rounds[ref.Provider].Rows[i].Verdict
		stuck = v.Stuck == sandbox.True
	}
	if !stuck {
		return ""
	}
	return triage.WithCause(v.Cause.Label(), v.Reason)
}

// Follow reads the last lines of a log, and then each new one, until the log or ctx ends. Items are of types
// LogLine, LogGap and error, as those of Logs.
func (l *Live) Follow(ctx context.Context, ref sandbox.Ref, lines int, item func(any)) {
	r := &logReader{req: LogsRequest{Follow: true, Tail: lines}, item: item, matcher: triage.NewMatcher()}
	r.readLog(ctx, l.fleet, ref)
}
