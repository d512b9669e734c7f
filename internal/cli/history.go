package cli

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/process"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/triage"
)

const (
	historyAge   = 15 * time.Second // how old the records may be that a look judges by
	historyLimit = 2 * time.Second  // what reading a slow store may cost a verb that only looks
	// historyRuns is how many of the newest cleanup runs are read: two hours of one every
	// five minutes.
	historyRuns = 24
)

// fleetHistory is fleet.History: it reads the tasks in the store, the journals of cleanup and what
// earlier looks have seen, and stores what this run sees. Each is read when it is first needed and
// kept for a short time, so that many looks of one run cost one reading. What cannot be read is unknown.
type fleetHistory struct {
	open   func(write bool) (store.Store, error)
	runs   func(ctx context.Context) []runs.History // newest first
	limits func(sandbox.Sandbox) triage.Thresholds
	redact func(string) string
	warn   func(what string, err error) // says, once for each, what could not be read or written
	now    func() time.Time

	timeScale process.TimeScale

	recorder *history.Recorder
	flushing sync.WaitGroup

	mu      sync.Mutex
	tasks   *task.History // nil = they could not be read
	older   map[string]*task.Task
	tasksAt time.Time
	cleaned []runs.History
	runsAt  time.Time
	earlier map[string]earlierLooks // by profile

	flushedAt time.Time
}

// OfSandbox is fleet.History's.
func (r *fleetHistory) OfSandbox(ctx context.Context, s sandbox.Sandbox) fleet.SandboxHistory {
	r.mu.Lock()
	defer r.mu.Unlock()
	tasks := r.recentTasks(ctx)
	var found fleet.SandboxHistory
	if tasks != nil {
		found = tasks.Sandbox(s, func(id string) (task.Task, bool) { return r.byID(ctx, id) })
	}
	looks := r.readEarlier(ctx, s.Provider)
	found.Samples = looks.usage[s.ID]
	if found.TimeLimitsHit == nil && s.TaskID != "" && len(looks.timedOut[s.TaskID]) > 0 {
		found.TimeLimitsHit = new(len(looks.timedOut[s.TaskID]))
	}
	return found
}

// OfProfile is fleet.History's.
func (r *fleetHistory) OfProfile(ctx context.Context, profile string) triage.FleetSignals {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runsAt.IsZero() || time.Since(r.runsAt) > historyAge {
		limited, stop := context.WithTimeout(ctx, r.timeScale.Limit(historyLimit))
		defer stop()
		r.cleaned, r.runsAt = r.runs(limited), time.Now()
	}
	sig := cleanup.SignalsOf(r.cleaned, profile)
	looks := r.readEarlier(ctx, profile)
	sig.History, sig.OverFor = append(sig.History, looks.counts...), looks.overFor
	if tasks := r.recentTasks(ctx); tasks != nil {
		p := tasks.Profile(profile)
		sig.CreateFailures, sig.Attempts, sig.AttemptsTimedOut = p.CreateFailures, p.Attempts, p.TimedOut
		sig.AttemptsInactive, sig.Stops, sig.StopsFailed = p.Inactive, p.Stops, p.StopsFailed
	}
	return sig
}

// recentTasks are the tasks that are not over, and those of the last day; nil where they
// cannot be read.
func (r *fleetHistory) recentTasks(ctx context.Context) *task.History {
	if !r.tasksAt.IsZero() && time.Since(r.tasksAt) <= historyAge {
		return r.tasks
	}
	r.tasks, r.older = nil, map[string]*task.Task{}
	err := r.readTasks(ctx, func(ctx context.Context, l task.Ledger) error {
		tasks, err := task.ReadHistory(ctx, l, r.now())
		r.tasks = &tasks
		return err
	})
	if err != nil {
		r.tasks = nil
	}
	r.tasksAt = time.Now()
	return r.tasks
}

// byID reads a task that is over for longer than a day.
func (r *fleetHistory) byID(ctx context.Context, id string) (task.Task, bool) {
	t, asked := r.older[id]
	if !asked {
		err := r.readTasks(ctx, func(ctx context.Context, l task.Ledger) error {
			got, err := l.Read(ctx, id)
			t = &got
			return err
		})
		if err != nil {
			t = nil
		}
		r.older[id] = t
	}
	if t == nil {
		return task.Task{}, false
	}
	return *t, true
}

func (r *fleetHistory) readTasks(ctx context.Context, do func(context.Context, task.Ledger) error) error {
	return r.withStore(ctx, func(ctx context.Context, st store.Store) error { return do(ctx, task.Ledger{Store: st}) })
}

func (r *fleetHistory) withStore(ctx context.Context, do func(context.Context, store.Store) error) error {
	limited, stop := context.WithTimeout(ctx, r.timeScale.Limit(historyLimit))
	defer stop()
	st, err := r.open(false)
	if err == nil {
		err = errors.Join(do(limited, st), st.Close())
	}
	if ctx.Err() == nil && isBusy(limited, err) {
		r.warn("what earlier looks have seen is not used", err)
	}
	return err
}

// isBusy reports whether a store could not be used within a limit. What is wrong with it for good is told
// by the verbs that need it.
func isBusy(limited context.Context, err error) bool {
	return err != nil && (fault.KindOf(err) == fault.KindLocked || errors.Is(limited.Err(), context.DeadlineExceeded))
}

// earlierLooks is what earlier looks have seen of a profile.
type earlierLooks struct {
	counts   []triage.ActiveCount
	overFor  triage.OverFor             // by the looks of the last week
	usage    map[string][]sandbox.Usage // by sandbox id, of the last minutes
	timedOut map[string]map[string]bool // by task: the sandboxes that a time limit ended
	ending   map[string]time.Time       // by sandbox id: since when every complete listing has shown it as terminating
	readAt   time.Time
}

// usageWindow is how far back the usage of earlier looks is kept in memory: triage uses no older one.
const usageWindow = 10 * time.Minute

// readEarlier returns what the looks of the last hours have seen. A verb that goes on reads them
// anew after historyAge: with old ones a count that fell meanwhile would look as if it had been high
// all the time.
func (r *fleetHistory) readEarlier(ctx context.Context, profile string) earlierLooks {
	if e, known := r.earlier[profile]; known && time.Since(e.readAt) <= historyAge {
		return e
	}
	if r.earlier == nil {
		r.earlier = map[string]earlierLooks{}
	}
	e := earlierLooks{usage: map[string][]sandbox.Usage{}, timedOut: map[string]map[string]bool{}}
	_ = r.withStore(ctx, func(ctx context.Context, st store.Store) error { // what cannot be read is not known
		looks, err := history.Looks(ctx, st, profile, r.now().Add(-history.Rules().Fine))
		for _, l := range looks {
			e.add(l, r.now().Add(-usageWindow))
		}
		if err == nil {
			e.overFor, err = ops.ReadOverFor(ctx, st, profile, e.counts, r.limits(sandbox.Sandbox{Provider: profile}), r.now())
		}
		return err
	})
	e.readAt = time.Now()
	r.earlier[profile] = e
	return e
}

func (e *earlierLooks) add(l history.Look, usageSince time.Time) {
	if l.Counts != nil {
		e.counts = append(e.counts, triage.ActiveCount{At: l.At, Active: l.Counts[sandbox.StateRunning]})
		ending := map[string]time.Time{} // what the listing did not show so begins anew
		for _, id := range l.Ending {
			ending[id] = cmp.Or(e.ending[id], l.At)
		}
		e.ending = ending
	}
	for id, task := range l.TimedOut {
		if e.timedOut[task] == nil {
			e.timedOut[task] = map[string]bool{}
		}
		e.timedOut[task][id] = true
	}
	for id, u := range l.Usage {
		if u.MemoryBytes != nil && u.At.After(usageSince) {
			e.usage[id] = append(e.usage[id], u)
		}
	}
}

// EndingSince is fleet.History's.
func (r *fleetHistory) EndingSince(ctx context.Context, ref sandbox.Ref) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readEarlier(ctx, ref.Provider).ending[ref.ID]
}

// ListingSeen is fleet.History's.
func (r *fleetHistory) ListingSeen(profile string, counts map[sandbox.State]int64, failed []sandbox.Sandbox, ending []string) {
	r.recorder.AddCounts(profile, counts, ending...)
	var seen []history.Seen
	for _, s := range failed {
		v := triage.Judge(s, triage.Signals{}, r.limits(s), r.now())
		seen = append(seen, history.Seen{Sandbox: s, At: cmp.Or(s.EndedAt, r.now()), Cause: v.Cause, Reason: v.Reason})
	}
	r.recorder.AddListed(profile, seen)
	r.flushNowAndThen()
}

// SandboxSeen is fleet.History's. Of a sandbox that is in trouble or has failed it keeps what explains
// that, since its provider may forget it.
func (r *fleetHistory) SandboxSeen(o fleet.Observation) {
	s := o.Sandbox
	var last *sandbox.Usage
	if n := len(o.Usage.Got); o.Usage.Err == nil && n > 0 {
		last = &o.Usage.Got[n-1]
	}
	switch {
	case last == nil:
	case !s.State.Ended():
		r.recorder.AddUsage(s.Ref(), *last)
	case !s.EndedAt.IsZero() && last.At.After(s.EndedAt): // it says nothing about the sandbox
		last = nil
	}
	t, now := r.limits(s), r.now()
	sig := o.Signals(t)
	v := triage.Judge(s, sig, t, now)
	if !s.Failed() && v.Stuck != sandbox.True && !v.Suspected() {
		return
	}
	seen := history.Seen{
		Sandbox: s, At: now, Live: !s.Failed(), Cause: v.Cause, Reason: v.Reason, Usage: last, Causes: ops.KeptCauses(triage.Causes(v, s, sig, t, now)),
	}
	if s.Failed() {
		seen.At = cmp.Or(s.EndedAt, now)
	}
	for _, line := range o.Logs.Got {
		seen.Logs = append(seen.Logs, r.redact(line.Text))
	}
	r.recorder.AddSeen(seen)
}

// flushLimit is what a slow or locked store may cost after the answer. It is longer than the 5 s for which a
// store on a disk waits for another writer: what was seen may be the last that anybody sees of a sandbox.
const flushLimit = 8 * time.Second

// flushEvery is how often a verb that goes on, such as a watch, stores what it has seen.
const flushEvery = time.Minute

func (r *fleetHistory) flushNowAndThen() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); r.flushedAt.IsZero() {
		r.flushedAt = now
	} else if now.Sub(r.flushedAt) >= flushEvery {
		r.flushedAt = now
		r.flushing.Go(func() { _ = r.storeSeen() }) // it is tried again
	}
}

// storeSeen stores what was seen. What a store could not take is kept for the next time: busy says that it may
// take it then.
func (r *fleetHistory) storeSeen() (busy error) {
	if !r.recorder.Pending() {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), r.timeScale.Limit(flushLimit)) //nolint:forbidigo // what was seen is stored also after an interrupt
	defer stop()
	st, err := r.open(true)
	if err == nil {
		err = errors.Join(r.recorder.Flush(ctx, st), st.Close())
	}
	if !isBusy(ctx, err) {
		return nil
	}
	return err
}

// Flush stores what was seen and not stored yet. The answer of a verb never depends on it: a store that is busy loses it
// with a warning.
func (r *fleetHistory) Flush() {
	r.flushing.Wait()
	if err := r.storeSeen(); err != nil {
		r.warn("the history was not written, so that later looks do not know what this one has seen", err)
	}
}

// openHistory is the history of this run, made once. Where the state directory cannot be used, which is a
// warning of the verbs that need it, nothing is on record.
func (a *app) openHistory() *fleetHistory {
	a.historyOnce.Do(func() { a.history = a.newHistory() })
	return a.history
}

func (a *app) newHistory() *fleetHistory {
	open := func(write bool) (store.Store, error) {
		c, err := a.config()
		if err != nil {
			return nil, err
		}
		if _, unusable := c.State(); unusable != nil && c.StoreURL == "" {
			return nil, unusable
		}
		return a.openStore(write)
	}
	return &fleetHistory{
		open: open, now: a.process.Now, recorder: history.NewRecorder(a.process.Now),
		runs:   func(ctx context.Context) []runs.History { return a.commandDeps().CleanupRuns(ctx, historyRuns) },
		limits: a.commandDeps().Thresholds, timeScale: a.process.TimeScale,
		warn: a.warnOfHistory(),
		redact: func(text string) string {
			if p, err := a.printer(); err == nil {
				return p.Redact(text)
			}
			return ""
		},
	}
}

// warnOfHistory is fleetHistory.warn.
func (a *app) warnOfHistory() func(what string, err error) {
	var said sync.Map
	return func(what string, err error) {
		p, errPrinter := a.printer()
		if _, again := said.LoadOrStore(what, true); errPrinter == nil && !again {
			p.Warn(what + ": " + err.Error())
		}
	}
}
