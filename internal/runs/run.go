package runs

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// keptRuns is how many journals are kept: a month of one every five minutes.
const keptRuns = 9000

// Watch is told of what goes wrong beside a run, and knows what is secret.
type Watch interface {
	Warn(text string)
	Redact(text string) string
}

// Run is the record of one run that may act: its journal on this machine, and its summary in a store that
// hosts share.
type Run struct {
	*Writer

	ID string

	records Records
	watch   Watch
	begin   Begin
	began   time.Time
	disk    journal.Disk
	file    *journal.Writer // nil = it could not be made
}

// Begin begins the journal of a run. By JournalRequired nothing may be done after an error; by BestEffort there is none.
func (r Records) Begin(ctx context.Context, p Policy, id string, begin Begin, watch Watch) (*Run, error) {
	run := r.newRun(p, id, begin, watch)
	run.began = r.Now()
	var made opened
	var err error
	if p == BestEffort {
		made, err = withinSlowDisk(func() (opened, error) { return r.open(r.Single, id, begin, watch) })
	} else {
		made, err = r.open(r.Bulk, id, begin, watch)
	}
	run.disk = made.disk
	if run.file = made.file; run.file != nil {
		run.Journal = run.file
	}
	if err = run.afterAppend(err); err != nil {
		return nil, err
	}
	if p == JournalRequired {
		run.share(ctx, run.summary(nil), nil)
	}
	return run, nil
}

// opened is a journal with its first line.
type opened struct {
	disk journal.Disk
	file *journal.Writer // nil = it could not be made
}

func (r Records) open(folder func() (journal.Disk, error), id string, begin Begin, watch Watch) (o opened, err error) {
	if o.disk, err = folder(); err != nil {
		return o, err
	}
	if o.file, err = journal.Create(o.disk, id, r.Now); err != nil {
		return opened{disk: o.disk}, err
	}
	if err = o.file.Append(EntryBegin, begin); err == nil {
		if err := journal.Prune(o.disk, keptRuns); err != nil {
			watch.Warn(err.Error())
		}
	}
	return o, err
}

// Opener begins the journal of one call that ends sandboxes.
type Opener func(ctx context.Context, targets []sandbox.Sandbox) *Run

// Origin is who asks for ends that are no run by a rule, and why.
type Origin struct {
	ID     string // of the run
	Verb   string
	Reason string
}

// BeginEnds begins the journal of ends that are no run by a rule.
func (r Records) BeginEnds(ctx context.Context, o Origin, by Actor, targets []sandbox.Sandbox, watch Watch) *Run {
	b := Begin{Actor: by, Verb: o.Verb, Plan: Plan{RunID: o.ID, MadeAt: r.Now().UTC(), Items: []Item{}}}
	at := map[string]int{}
	for _, s := range targets {
		b.Plan.Items = append(b.Plan.Items, Item{
			Ref: s.Ref(), Name: s.Name, State: s.State, CreatedAt: s.CreatedAt.UTC(), Owner: s.Labels[sandbox.LabelOwner], Reason: o.Reason,
		})
		i, known := at[s.Provider]
		if !known {
			i, at[s.Provider] = len(b.Profiles), len(b.Profiles)
			b.Profiles = append(b.Profiles, Profile{Profile: s.Provider, Complete: true})
		}
		b.Profiles[i].Selected++
	}
	run, _ := r.Begin(ctx, BestEffort, o.ID, b, watch) // by BestEffort there is no error
	return run
}

// Resume continues the journal of a run that was interrupted.
func (r Records) Resume(disk journal.Disk, h History, log journal.Log, by Actor, watch Watch) (*Run, error) {
	run := r.newRun(JournalRequired, h.RunID, h.Begin, watch)
	file, err := journal.Extend(disk, log, r.Now)
	if err != nil {
		return nil, err
	}
	run.began, run.disk, run.file, run.Journal = h.StartedAt, disk, file, file
	return run, run.append(EntryResume, by)
}

func (r Records) newRun(p Policy, id string, begin Begin, watch Watch) *Run {
	return &Run{ID: id, records: r, watch: watch, begin: begin, Writer: &Writer{Policy: p, Redact: watch.Redact, Warn: watch.Warn}}
}

// NewConclusion makes the last entry of a run by a rule. What was refused has succeeded nowhere.
func NewConclusion(endings []sandbox.Ending, verdict error, succeeded []string) Conclusion {
	c := Conclusion{Counts: fleet.Count(endings), ExitCode: fault.ExitCode(verdict), Refused: fault.KindOf(verdict) == fault.KindRefused, Succeeded: succeeded}
	if verdict != nil {
		c.Error = verdict.Error()
	}
	if c.Refused {
		c.Succeeded = []string{}
	}
	return c
}

// Finish writes the last entry and reports the run to other hosts. The error says that the entry could not
// be written; what was done is done.
func (r *Run) Finish(ctx context.Context, c Conclusion) error {
	err := r.Conclude(c)
	if r.file == nil {
		return err
	}
	var summary *store.Run
	if r.Policy == JournalRequired || r.begin.Verb == VerbTerminate { // tasks are in the shared store themselves
		summary = r.summary(&c)
	}
	r.share(ctx, summary, r.disk)
	return err
}

// FinishEnds writes the last entry of ends that are no run by a rule, and closes the journal.
func (r *Run) FinishEnds(ctx context.Context) {
	defer r.Close()
	c := NewConclusion(r.ended, fleet.Verdict(r.ended, true), []string{})
	c.Refused = false    // no limit of a run has refused it
	_ = r.Finish(ctx, c) // what is lost was warned of
}

// Close closes the file; every line is on the disk already.
func (r *Run) Close() {
	if r.file != nil && !errors.Is(r.Failed(), errSlow) { // else that would wait, too
		_ = r.file.Close()
	}
}

// summary is the run for other hosts; without a conclusion it goes on.
func (r *Run) summary(c *Conclusion) *store.Run {
	run := store.Run{
		ID: r.ID, Verb: r.begin.Verb, Layer: r.begin.Proven(), Host: r.begin.Host, Who: r.begin.Who, StartedAt: r.began,
		Selected: len(r.begin.Plan.Items), Acted: true,
	}
	if c == nil {
		return &run
	}
	run.EndedAt, run.ExitCode, run.Profiles = r.records.Now(), c.ExitCode, c.Succeeded
	run.Acted = !c.Refused
	run.Counts = map[string]int{}
	for _, o := range sandbox.Outcomes() {
		run.Counts[string(o)] = c.Counts.Of(o)
	}
	return &run
}
