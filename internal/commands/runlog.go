package commands

import (
	"context"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// runLog is the record of one run that may act: its journal on this machine, and
// its summary in a store that hosts share.
type runLog struct {
	*journal.Writer

	env   *Env
	watch Observer
	begin cleanup.Begin
	began time.Time
}

// beginRun begins the journal of a run. Nothing may be done without it.
func (e *Env) beginRun(ctx context.Context, watch Observer, run string, begin cleanup.Begin) (*runLog, error) {
	disk, err := e.Journals()
	if err != nil {
		return nil, err
	}
	w, err := journal.Create(disk, run, e.now)
	if err != nil {
		return nil, err
	}
	l := &runLog{Writer: w, env: e, watch: watch, begin: begin, began: e.now()}
	if err := w.Append(cleanup.EntryBegin, begin); err != nil {
		return nil, err
	}
	if err := journal.Prune(disk, keptRuns); err != nil {
		watch.Warn(err.Error())
	}
	l.share(ctx, nil)
	return l, nil
}

// keptRuns is how many journals are kept: a month of one every five minutes.
const keptRuns = 9000

// finish closes the journal. The error says that it could not be written; what was
// done is done.
func (l *runLog) finish(ctx context.Context, end cleanup.End) error {
	err := l.Append(cleanup.EntryEnd, end)
	l.share(ctx, &end)
	return err
}

// ended makes the last entry of a run.
func (l *runLog) ended(endings []sandbox.Ending, verdict error, succeeded []string) cleanup.End {
	end := cleanup.End{Counts: fleet.Count(endings), ExitCode: fault.ExitCode(verdict), Refused: fault.KindOf(verdict) == fault.KindRefused, Succeeded: succeeded}
	if verdict != nil {
		end.Error = l.watch.Redact(verdict.Error())
	}
	if end.Refused {
		end.Succeeded = []string{}
	}
	return end
}

// close lets go of the file; every line is on the disk already.
func (l *runLog) close() { _ = l.Close() }

// share tells the other hosts, if there are any. They miss a summary rather than
// the run its journal.
func (l *runLog) share(ctx context.Context, end *cleanup.End) {
	run := l.env.sharedRun(l.Run(), l.begin, l.began, end)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), shareLimit)
	defer stop()
	if err := l.env.ShareRun(ctx, run); err != nil {
		l.watch.Warn("other hosts will not see this run: " + err.Error())
	}
}

// shareLimit bounds what a slow store may cost a run.
const shareLimit = 5 * time.Second

// historyOfShared is what another host's run looks like from here: its sums, and no
// items.
func historyOfShared(run store.Run) cleanup.History {
	h := cleanup.History{RunID: run.ID, StartedAt: run.StartedAt, EndedAt: run.EndedAt, Sums: &fleet.Counts{Selected: run.Selected}}
	h.Begin.Verb, h.Begin.Layer, h.Begin.Host, h.Begin.Who = run.Verb, run.Layer, run.Host, run.Who
	for o, n := range run.Counts {
		h.Sums.Add(sandbox.Outcome(o), n)
	}
	if !run.EndedAt.IsZero() {
		h.End = &cleanup.End{Counts: *h.Sums, ExitCode: run.ExitCode, Refused: !run.Acted, Succeeded: run.Profiles}
	}
	return h
}
