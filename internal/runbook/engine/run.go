package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"sbx/internal/cond"
	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/lock"
	"sbx/internal/ops"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Request says which runbook is run, and what may be done without a person.
type Request struct {
	Book       *runbook.Runbook // of a run that goes on: nil, its record has the document
	Resume     string           // the run that goes on; "" = a new one
	Procedure  string           // to do this instead of the branches of causes; "" = those
	Word       string           // the sandbox or task that the run is about; "" = none
	Profiles   []string         // that the operator has named
	Production []string         // production profiles that the operator has named
	Yes        bool             // answer the gates of at most MaxDelete with yes
	MaxDelete  int              // of each act; 0 = none was given
	Unowned    bool             // the flags also allow the end of what is not owned
	DryRun     bool             // ask nothing and change nothing
	Staged     bool             // it is about what a drill has staged, and ends with the drill
	// Omit are conditions of checks that are not made, each with the reason: a drill has not staged what they
	// are about.
	Omit    map[string]string
	UntilOK time.Duration // repeat the verification until all holds, at most so long; 0 = once
	Every   time.Duration // between two rounds of that
	Line    []string      // the command line that was typed, quoted for a shell
}

// runner works at one run.
type runner struct {
	env     *ops.Env
	req     Request
	book    *runbook.Runbook
	watch   Observer
	reading *readObserver
	run     *Run
	out     *writer
	release func() error

	schema    cond.Schema[*runbook.Facts]
	documents map[string]runbook.Step // by id
	facts     *facts
	given     map[source]reading // what sources gave since the last change

	outside time.Duration // what reads, waits, acts and answers took
	leaving int           // how many of those are going on, one inside the other

	named     []string // production profiles that were named, by flags or at the gates of this step
	dependsOn string   // of a dry run: the step that would have changed something
	waiting   error    // a gate without an answer
	decided   bool     // which branches are done is on record
}

// Start runs a runbook, or goes on with a run. With an error nothing was begun, and nothing is on
// record. What came of it is in the run, and Err decides the exit code. Items are of types Run (at the begin, when
// the causes are named, and at the end), Step, and those of the operations that act.
func Start(ctx context.Context, env *ops.Env, req Request, watch Observer) (*Run, error) {
	r := &runner{env: env, req: req, watch: watch, reading: &readObserver{to: watch}, out: &writer{}, given: make(map[source]reading)}
	began := time.Now()
	open := r.begin
	if req.Resume != "" {
		open = r.resume
	}
	if err := open(ctx); err != nil {
		r.close()
		return nil, err
	}
	defer r.close()
	if !r.run.DryRun && !r.run.Staged {
		r.watch.Note("run " + r.run.ID + "; `" + r.env.Process.Name() + " incident report " + r.run.ID + "` reports it")
	}
	r.reportRun()
	r.conclude(ctx, r.work(ctx))
	r.run.Took = time.Since(began)
	r.run.Own = r.run.Took - r.outside
	r.reportRun()
	return r.run, nil
}

// reportRun reports the run as it is now. What changes in a step later is reported by itself.
func (r *runner) reportRun() {
	now := *r.run
	now.Steps = slices.Clone(now.Steps)
	r.watch.Item(now)
}

// leave begins what is no work of the engine: a read, a wait, an act or an answer. The function that
// it gives ends that.
func (r *runner) leave() (back func()) {
	began := time.Now()
	r.leaving++
	return func() {
		if r.leaving--; r.leaving == 0 {
			r.outside += time.Since(began)
		}
	}
}

func (r *runner) close() {
	r.out.close()
	if r.release != nil {
		_ = r.release() // the end of the process releases it all the same
	}
}

// begin makes the record of a new run.
func (r *runner) begin(ctx context.Context) error {
	r.book = r.req.Book
	if err := r.check(); err != nil {
		return err
	}
	r.run = &Run{
		ID: Prefix + strings.TrimPrefix(r.env.RunID(), "r-"), Runbook: string(r.book.Metadata.ID), Title: r.book.Metadata.Title, Document: r.book.Text(), File: r.book.Origin.File,
		Procedure: r.req.Procedure, Word: r.req.Word, Actor: r.env.Actor(), DryRun: r.req.DryRun, Staged: r.req.Staged, StartedAt: r.env.Now().UTC(), State: RunRunning, Verdict: sandbox.Unknown,
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.run.Providers = r.facts.names
	r.planSteps()
	if r.run.DryRun {
		return nil
	}
	disk, err := r.env.RunbookRuns()
	if err != nil {
		return err
	}
	if err := r.lock(ctx); err != nil {
		return err
	}
	if r.out.log, err = journal.Create(disk, r.run.ID, r.env.Now); err != nil {
		return err
	}
	if err := journal.Prune(disk, keptRuns); err != nil {
		r.watch.Warn(err.Error())
	}
	err = r.out.write(entryBegin, begin{
		Version: Version, Runbook: r.run.Runbook, Title: r.run.Title, File: r.run.File, Document: r.run.Document,
		Procedure: r.run.Procedure, Word: r.run.Word, Providers: r.run.Providers, Actor: r.run.Actor, Staged: r.run.Staged,
	})
	return errors.Join(err, r.out.write(entryPlan, r.run.Steps))
}

// keptRuns is how many records are kept.
const keptRuns = 2000

// check refuses a document with mistakes, and a request that it cannot serve.
func (r *runner) check() error {
	var wrong []error
	for _, f := range r.book.Lint(runbook.Context{Now: r.env.Now()}) {
		switch {
		case f.Severity == runbook.Error:
			wrong = append(wrong, f.AsError(fault.KindUsage))
		case f.Rule == runbook.RuleSum:
			r.watch.Warn(f.Place() + ": " + f.Message)
		}
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	if r.req.Procedure == "" {
		return nil
	}
	var ids []string
	for _, p := range r.book.Spec.Procedures {
		ids = append(ids, string(p.ID))
		if string(p.ID) != r.req.Procedure {
			continue
		}
		for _, s := range p.Steps {
			if s.Act != nil && s.Act.Targets == "named" && r.req.Word == "" {
				return fault.Usage("the step %s is about a sandbox or task that you name", s.ID).WithHint("--ref REF names it")
			}
		}
		return nil
	}
	return fault.Usage("%s has no procedure %q", r.book.Metadata.ID, r.req.Procedure).WithHint("%s", fault.Meant(r.req.Procedure, ids))
}

// prepare makes what every run needs.
func (r *runner) prepare(ctx context.Context) error {
	f, err := r.env.Fleet(ctx)
	if err != nil {
		return err
	}
	r.facts = newFacts(f.Names(), func(provider string) triage.Thresholds { return r.env.Thresholds(sandbox.Sandbox{Provider: provider}) })
	r.schema = runbook.Schema(r.book.Spec.Vars)
	r.documents = map[string]runbook.Step{}
	for _, s := range r.sections() {
		for _, step := range s.steps {
			r.documents[string(step.ID)] = step
		}
	}
	return nil
}

func (r *runner) lock(ctx context.Context) (err error) {
	a := r.env.Actor()
	r.release, err = r.env.LockRunbookRun(ctx, lock.Holder{Run: r.run.ID, Who: a.Who, Host: a.Host, PID: a.PID, Since: r.env.Now()})
	if fault.KindOf(err) == fault.KindLocked {
		return fault.New(fault.KindLocked, "somebody works at it: %w", err).WithHint("`%s runbook status %s` shows how far it is", r.env.Process.Name(), r.run.ID)
	}
	return err
}

// section is a list of steps of a document.
type section struct {
	name     string
	possible runbook.Word // of a cause
	steps    []runbook.Step
}

// sections are all lists of steps, in the order in which they are done.
func (r *runner) sections() []section {
	spec := r.book.Spec
	all := []section{{name: SectionDiagnosis, steps: spec.Steps}}
	for _, c := range spec.Causes {
		all = append(all, section{SectionCause + " " + string(c.PossibleCause), c.PossibleCause, c.Steps})
	}
	for _, p := range spec.Procedures {
		all = append(all, section{name: SectionProcedure + " " + string(p.ID), steps: p.Steps})
	}
	return append(all, section{name: SectionVerification, steps: spec.Verification})
}

// planSteps puts all steps on record. Those of procedures that were not chosen are not selected.
func (r *runner) planSteps() {
	outline := r.book.Outline()
	for _, s := range r.sections() {
		id, procedure := strings.CutPrefix(s.name, SectionProcedure+" ")
		for _, step := range s.steps {
			at := outline.Of(step.ID)
			one := Step{
				ID: string(step.ID), Number: at.Number, Word: at.Word, Section: s.name, Title: r.fill(step.Heading()), Kind: step.Kind(), State: Pending, ETA: step.Duration(),
				Condition: string(step.Check + step.WaitUntil),
			}
			if procedure && !r.isChosen(id) {
				one.State, one.Reason = NotSelected, "--procedure "+id+" chooses it"
			} else if why, omitted := r.req.Omit[one.Condition]; omitted {
				one.State, one.Reason = NotSelected, why
			}
			r.run.Steps = append(r.run.Steps, one)
		}
	}
}

// isChosen says that a procedure is done: it was chosen, or none was and it belongs to each run.
func (r *runner) isChosen(id string) bool {
	return id == r.run.Procedure || r.run.Procedure == "" &&
		slices.ContainsFunc(r.book.Spec.Procedures, func(p runbook.Procedure) bool { return p.Always && string(p.ID) == id })
}

func (r *runner) fill(text string) string { return Fill(r.env, r.book, text) }

// Fill is a text of a runbook with the settings that are configured.
func Fill(env *ops.Env, book *runbook.Runbook, text string) string {
	return book.FillWith(text, func(key string) (string, bool) {
		c, err := env.Config()
		if err != nil {
			return "", false
		}
		for _, v := range c.Values() {
			if v.Key == key && !v.Secret {
				return v.Value, true
			}
		}
		return "", false
	})
}

// work does the steps. What a person does at the end of a branch waits until the acts of all branches are over: what
// is stuck costs money meanwhile. An error ends the run before its end: an interruption, a gate without an answer, or
// a record that cannot be written.
func (r *runner) work(ctx context.Context) error {
	var waiting []section
	for _, s := range r.sections() {
		var err error
		switch s.name {
		case SectionDiagnosis:
			if err = r.doSteps(ctx, s, s.steps, ofAny); err == nil {
				err = r.decide(ctx)
			}
		case SectionVerification:
			for _, before := range waiting {
				if err = r.doSteps(ctx, before, before.lastOfPeople(), ofAny); err != nil {
					return err
				}
			}
			err = r.verify(ctx, s)
		default:
			waiting = append(waiting, s)
			err = r.doSteps(ctx, s, s.steps[:len(s.steps)-len(s.lastOfPeople())], ofAny)
		}
		if err != nil {
			return err
		}
	}
	return r.decideCalls(ctx)
}

// lastOfPeople are the steps at the end of a section that a person does.
func (s section) lastOfPeople() []runbook.Step {
	first := len(s.steps)
	for first > 0 && s.steps[first-1].Kind() == runbook.KindManual {
		first--
	}
	return s.steps[first:]
}
