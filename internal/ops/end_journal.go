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
		if l.disk = disk; err == nil {
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

// endLog is fleet.EndJournal over a journal on this machine. A failed write is
// reported once and prevents no ending: the end of a named sandbox, or of a task whose time is
// over, must not depend on a disk.
type endLog struct {
	env   *Env
	watch Reporter
	run   string
	began time.Time
	begin cleanup.Begin
	disk  journal.Disk
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
		l.watch.Warn("this termination is not in the journal: " + err.Error())
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
	var run *store.Run
	if l.begin.Verb == VerbTerminate { // tasks are in the shared store themselves
		run = l.env.sharedRun(l.run, l.begin, l.began, &end)
	}
	l.env.share(ctx, l.watch, run, l.disk, l.run)
}

// RunJournal is the record of one run that may act: its journal on this machine, and
// its summary in a store that hosts share.
type RunJournal struct {
	*journal.Writer

	Env   *Env
	Watch Reporter
	Begin cleanup.Begin
	Began time.Time
	Disk  journal.Disk
}

// BeginRun begins the journal of a run. Nothing may be done without it.
func (e *Env) BeginRun(ctx context.Context, watch Reporter, run string, begin cleanup.Begin) (*RunJournal, error) {
	disk, err := e.Journals()
	if err != nil {
		return nil, err
	}
	w, err := journal.Create(disk, run, e.Now)
	if err != nil {
		return nil, err
	}
	l := &RunJournal{Writer: w, Env: e, Watch: watch, Begin: begin, Began: e.Now(), Disk: disk}
	if err := w.Append(cleanup.EntryBegin, begin); err != nil {
		return nil, err
	}
	if err := journal.Prune(disk, keptRuns); err != nil {
		watch.Warn(err.Error())
	}
	e.share(ctx, watch, e.sharedRun(run, begin, l.Began, nil), nil, run)
	return l, nil
}

// keptRuns is how many journals are kept: a month of one every five minutes.
const keptRuns = 9000

// Finish closes the journal. The error says that it could not be written; what was
// done is done.
func (l *RunJournal) Finish(ctx context.Context, end cleanup.End) error {
	err := l.Append(cleanup.EntryEnd, end)
	l.Env.share(ctx, l.Watch, l.Env.sharedRun(l.Run(), l.Begin, l.Began, &end), l.Disk, l.Run())
	return err
}

// EndEntry makes the last entry of a run.
func (l *RunJournal) EndEntry(endings []sandbox.Ending, verdict error, succeeded []string) cleanup.End {
	end := cleanup.End{Counts: fleet.Count(endings), ExitCode: fault.ExitCode(verdict), Refused: fault.KindOf(verdict) == fault.KindRefused, Succeeded: succeeded}
	if verdict != nil {
		end.Error = l.Watch.Redact(verdict.Error())
	}
	if end.Refused {
		end.Succeeded = []string{}
	}
	return end
}

// Release closes the file; every line is on the disk already.
func (l *RunJournal) Release() { _ = l.Close() }
