package ops

import (
	"cmp"
	"context"
	"sync"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// EndJournals gives the journals of endings that are no run of cleanup or reconcile,
// which write their own: those of terminate, of tasks and of drills. They are kept apart
// from bulk runs, so that many tasks displace no run that a check has to see.
func (e *Env) EndJournals(watch Reporter) func(context.Context, []sandbox.Sandbox, fleet.EndOptions) fleet.EndJournal {
	return func(_ context.Context, targets []sandbox.Sandbox, o fleet.EndOptions) fleet.EndJournal {
		l := &endLog{env: e, watch: watch, run: cmp.Or(o.Origin.RunID, e.RunID()), began: e.Now()}
		disk, err := e.Endings()
		if err == nil {
			l.w, err = journal.Create(disk, l.run, e.Now)
		}
		if err == nil {
			l.begin = e.beginningOf(l.run, targets, o)
			l.appendEvent(cleanup.EntryBegin, l.begin)
			err = journal.Prune(disk, keptRuns)
		}
		l.warnOnce(err)
		return l
	}
}

// beginningOf is the first entry of such a journal.
func (e *Env) beginningOf(run string, targets []sandbox.Sandbox, o fleet.EndOptions) cleanup.Begin {
	b := cleanup.Begin{
		Actor: e.Actor(), Verb: cmp.Or(o.Origin.Verb, VerbTerminate),
		Plan: cleanup.Plan{Schema: cleanup.PlanSchema, RunID: run, MadeAt: e.Now().UTC(), Items: []cleanup.Item{}},
	}
	sums := map[string]int{}
	for _, s := range targets {
		b.Plan.Items = append(b.Plan.Items, cleanup.Item{
			Ref: s.Ref(), Name: s.Name, State: s.State, CreatedAt: s.CreatedAt.UTC(), Owner: s.Labels[sandbox.LabelOwner], Reason: o.Origin.Reason,
		})
		if sums[s.Provider]++; sums[s.Provider] == 1 {
			b.Profiles = append(b.Profiles, cleanup.ShareRecord{Profile: s.Provider, Complete: true})
		}
	}
	for i := range b.Profiles {
		b.Profiles[i].Selected = sums[b.Profiles[i].Profile]
	}
	return b
}

// endLog is fleet.EndJournal over a journal on this machine. What cannot be written is
// said once and keeps nothing from ending: whoever named a sandbox, or a task whose time
// is over, must not depend on a disk.
type endLog struct {
	env   *Env
	watch Reporter
	run   string
	began time.Time
	begin cleanup.Begin
	w     *journal.Writer // nil = it could not be made

	mu      sync.Mutex
	warned  bool
	endings []sandbox.Ending
}

func (l *endLog) warnOnce(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.warned {
		l.warned = true
		l.watch.Warn("this ending is not in the journal: " + err.Error())
	}
}

func (l *endLog) appendEvent(kind string, data any) {
	if l.w != nil {
		l.warnOnce(l.w.Append(kind, data))
	}
}

// Intent is fleet.EndJournal's.
func (l *endLog) Intent(s sandbox.Sandbox, del bool) {
	l.appendEvent(cleanup.EntryIntent, cleanup.IntentOf(s, del, l.watch.Redact))
}

// Answer is fleet.EndJournal's.
func (l *endLog) Answer(ref sandbox.Ref, r sandbox.EndRequest) {
	r.Detail = l.watch.Redact(r.Detail)
	l.appendEvent(cleanup.EntryAnswer, cleanup.Answer{Ref: ref, Request: r})
}

// Result is fleet.EndJournal's.
func (l *endLog) Result(e sandbox.Ending) {
	l.appendEvent(cleanup.EntryResult, cleanup.ResultOf(e, l.watch.Redact))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endings = append(l.endings, e)
}

// Close is fleet.EndJournal's.
func (l *endLog) Close(ctx context.Context) {
	if l.w == nil {
		return
	}
	verdict := fleet.Verdict(l.endings, true)
	end := cleanup.End{Counts: fleet.Count(l.endings), ExitCode: fault.ExitCode(verdict), Succeeded: []string{}}
	if verdict != nil {
		end.Error = l.watch.Redact(verdict.Error())
	}
	l.appendEvent(cleanup.EntryEnd, end)
	_ = l.w.Close() // every line is on the disk already
	if l.begin.Verb == VerbTerminate {
		l.shareEnding(ctx, end)
	}
}

// shareEnding reports to the other hosts what an operator ended by name. Tasks are in the
// shared store themselves.
func (l *endLog) shareEnding(ctx context.Context, end cleanup.End) {
	run := l.env.sharedRun(l.run, l.begin, l.began, &end)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), shareLimit)
	defer stop()
	if err := l.env.ShareRun(ctx, run); err != nil {
		l.watch.Warn("other hosts will not see this run: " + err.Error())
	}
}

// sharedRun is the summary of a run for other hosts; without an end it goes on.
func (e *Env) sharedRun(id string, begin cleanup.Begin, began time.Time, end *cleanup.End) store.Run {
	run := store.Run{
		ID: id, Verb: begin.Verb, Layer: begin.Proven(), Host: begin.Host, Who: begin.Who, StartedAt: began,
		Selected: len(begin.Plan.Items), Acted: true,
	}
	if end == nil {
		return run
	}
	run.EndedAt, run.ExitCode, run.Profiles = e.Now(), end.ExitCode, end.Succeeded
	run.Acted = !end.Refused
	run.Counts = map[string]int{}
	for _, o := range sandbox.Outcomes() {
		run.Counts[string(o)] = end.Counts.Of(o)
	}
	return run
}
