package ops

import (
	"context"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/sandbox"
)

// RunJournal is the record of one run that may act: its journal on this machine, and
// its summary in a store that hosts share.
type RunJournal struct {
	*journal.Writer

	Env   *Env
	Watch Reporter
	Begin cleanup.Begin
	Began time.Time
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
	l := &RunJournal{Writer: w, Env: e, Watch: watch, Begin: begin, Began: e.Now()}
	if err := w.Append(cleanup.EntryBegin, begin); err != nil {
		return nil, err
	}
	if err := journal.Prune(disk, keptRuns); err != nil {
		watch.Warn(err.Error())
	}
	l.shareEnding(ctx, nil)
	return l, nil
}

// keptRuns is how many journals are kept: a month of one every five minutes.
const keptRuns = 9000

// Finish closes the journal. The error says that it could not be written; what was
// done is done.
func (l *RunJournal) Finish(ctx context.Context, end cleanup.End) error {
	err := l.Append(cleanup.EntryEnd, end)
	l.shareEnding(ctx, &end)
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

// shareEnding reports to the other hosts, if there are any. A failure loses their summary,
// never this run's journal.
func (l *RunJournal) shareEnding(ctx context.Context, end *cleanup.End) {
	run := l.Env.sharedRun(l.Run(), l.Begin, l.Began, end)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), shareLimit)
	defer stop()
	if err := l.Env.ShareRun(ctx, run); err != nil {
		l.Watch.Warn("other hosts will not see this run: " + err.Error())
	}
}

// shareLimit bounds what a slow store may cost a run.
const shareLimit = 5 * time.Second
