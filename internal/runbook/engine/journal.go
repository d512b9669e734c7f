package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/lock"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// The kinds of entries of a record.
const (
	entryBegin      = "begin"
	entryPlan       = "steps" // all steps, before the first
	entryStep       = "step"  // a step as it is now
	entryIntent     = "intent"
	entryCauses     = "causes"
	entryResume     = "resume"
	entryConclusion = "end"
)

// begin is the first entry.
type begin struct {
	Version   int        `json:"version"`
	Runbook   string     `json:"runbook"`
	Title     string     `json:"title"`
	File      string     `json:"file"`
	Document  string     `json:"document"`
	Procedure string     `json:"procedure,omitempty"`
	Word      string     `json:"word,omitempty"`
	Providers []string   `json:"providers"`
	Actor     runs.Actor `json:"actor"`
	Staged    bool       `json:"staged,omitempty"`
}

// conclusion is the last entry of a process that worked at a run. The run may be incomplete then: a later process
// may resume it.
type conclusion struct {
	State   RunState        `json:"state"`
	Verdict sandbox.Verdict `json:"verdict"`
	Kind    fault.Kind      `json:"kind,omitempty"`
	Error   string          `json:"error,omitempty"`
	Calls   []Call          `json:"calls,omitempty"`
}

// Prefix begins the id of every run of a runbook.
const Prefix = "b-"

// hintRuns is the hint where a run is not found.
const hintRuns = "`sbx runbook runs` lists them"

// ReadRun reads the record of a run.
func ReadRun(disk journal.Disk, id string) (Run, error) {
	run, _, err := readLog(disk, id)
	return run, err
}

func readLog(disk journal.Disk, id string) (Run, journal.Log, error) {
	log, err := journal.Read(disk, id)
	switch kind := fault.KindOf(err); {
	case kind == fault.KindNotFound || kind == fault.KindUsage:
		return Run{}, log, fault.New(fault.KindNotFound, "no run of a runbook is called %q", id).WithHint(hintRuns)
	case err != nil:
		return Run{}, log, err
	}
	run := Run{ID: id, State: RunInterrupted, Verdict: sandbox.Unknown, Broken: log.Broken}
	for _, e := range log.Entries {
		err := run.replay(e)
		if err != nil && e.Kind == entryBegin {
			return run, log, err
		}
		run.Unreadable.Note(err)
	}
	if len(log.Entries) == 0 && run.Broken == "" {
		run.Broken = "it has no entry"
	}
	return run, log, nil
}

// replay adds what an entry says.
func (r *Run) replay(e journal.Entry) error {
	switch e.Kind {
	case entryBegin:
		var b begin
		if err := e.Into(&b); err != nil {
			return unreadable(r.ID, err)
		}
		if b.Version > Version {
			return fault.New(fault.KindRefused, "the record of %s was written by a newer sbx (its form is %d, this sbx knows %d)", r.ID, b.Version, Version).
				WithHint("use that version for this run, or start a new one")
		}
		r.Runbook, r.Title, r.File, r.Document = b.Runbook, b.Title, b.File, b.Document
		r.Staged = b.Staged
		r.Procedure, r.Word, r.Providers, r.Actor, r.StartedAt = b.Procedure, b.Word, b.Providers, b.Actor, e.At
		return nil
	case entryPlan:
		return journal.Decode(e, func(steps []Step) { r.Steps = steps })
	case entryStep, entryIntent:
		return journal.Decode(e, func(s Step) {
			if at := r.Step(s.ID); at != nil {
				*at = s
			}
		})
	case entryCauses:
		return journal.Decode(e, func(d decided) { r.Causes, r.Calls, r.Stuck, r.decided = d.Causes, d.Calls, d.Stuck, true })
	case entryResume:
		r.State, r.Verdict, r.Kind, r.Error, r.EndedAt = RunInterrupted, sandbox.Unknown, fault.KindNone, "", time.Time{}
		return journal.Decode(e, func(by runs.Actor) { r.Resumed = append(r.Resumed, Resumption{At: e.At, Actor: by}) })
	case entryConclusion:
		return journal.Decode(e, func(c conclusion) {
			r.State, r.Verdict, r.Kind, r.Error, r.Calls, r.EndedAt = c.State, c.Verdict, c.Kind, c.Error, c.Calls, e.At
		})
	}
	return nil // of a later version that added a kind
}

func unreadable(id string, err error) error {
	return fault.New(fault.KindRefused, "the record of %s cannot be read: %w", id, err).WithHint("start a new run")
}

// Runs are the newest runs, at most limit (0 = all), newest first. One that cannot be read is among
// the errors.
func Runs(disk journal.Disk, limit int) (runs []Run, errs []error) {
	ids, err := journal.Runs(disk)
	if err != nil {
		return nil, []error{err}
	}
	for _, id := range slices.Backward(ids) {
		if limit > 0 && len(runs) == limit {
			break
		}
		run, err := ReadRun(disk, id)
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case run.Broken != "":
			errs = append(errs, brokenError(run))
		}
		if err := run.Unreadable.Error(id); err != nil {
			errs = append(errs, err)
		}
		runs = append(runs, run)
	}
	return runs, errs
}

// FindRun is the run with an id or a unique beginning of one; "last" is the newest.
func FindRun(disk journal.Disk, word string) (Run, error) {
	ids, err := journal.Runs(disk)
	if err != nil {
		return Run{}, err
	}
	if word == "last" && len(ids) > 0 {
		return ReadRun(disk, ids[len(ids)-1])
	}
	found := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !strings.HasPrefix(id, word) })
	switch {
	case slices.Contains(ids, word) || len(found) == 0:
		return ReadRun(disk, word)
	case len(found) > 1:
		return Run{}, fault.Usage("%q means %d runs", word, len(found)).WithHint(hintRuns)
	}
	return ReadRun(disk, found[0])
}

// Refresh says of a run without an end whether a process works at it: then its lock is held.
func Refresh(ctx context.Context, env *ops.Env, r *Run) {
	if r.State != RunInterrupted || !r.EndedAt.IsZero() {
		return
	}
	release, err := env.LockRunbookRun(ctx, lock.Holder{Run: r.ID, Who: env.Process.User(), Host: env.Process.Host, PID: env.Process.PID, Since: env.Now()})
	switch {
	case err == nil:
		_ = release() // nobody works at it
	case fault.KindOf(err) == fault.KindLocked:
		r.State = RunRunning
	}
}

func brokenError(r Run) error {
	return fault.New(fault.KindFound, "the record of %s was changed or damaged: %s", r.ID, r.Broken).
		WithHint("what is above that line can be trusted; start a new run")
}

// writer writes the record of a run; nil writes nothing, as in a dry run. The first failure is kept: a
// run without a record does not go on.
type writer struct {
	log    *journal.Writer
	failed error
}

func (w *writer) write(kind string, data any) error {
	if w == nil || w.log == nil {
		return nil
	}
	return w.note(w.log.Append(kind, data))
}

// writeSoon is write for what a run that goes on can find out again: the next line that counts takes it
// to the disk.
func (w *writer) writeSoon(kind string, data any) error {
	if w == nil || w.log == nil {
		return nil
	}
	return w.note(w.log.AppendSoon(kind, data))
}

func (w *writer) note(err error) error {
	if err != nil {
		w.failed = errors.Join(w.failed, err)
	}
	return w.failed
}

func (w *writer) close() {
	if w != nil && w.log != nil {
		_ = w.log.Close() // the last line is on the disk already
	}
}
