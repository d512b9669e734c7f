package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/ops"
	opscron "sbx/internal/ops/cron"
	"sbx/internal/ops/end"
	"sbx/internal/ops/launch"
	"sbx/internal/ops/look"
	"sbx/internal/reconcile"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// source is one read of an operation. Several collectors may have the same.
type source string

const (
	fromDiagnose source = "diagnose"
	fromInspect  source = "inspect"
	fromVerify   source = "verify"
	fromDoctor   source = "doctor"
	fromRecords  source = "records"
	fromTasks    source = "tasks"
	fromCron     source = "cron"
)

// sourceOf is the source of a collector.
func sourceOf(collector string) source {
	switch collector {
	case "inspect", "verify", "records", "tasks", "cron":
		return source(collector)
	case "quota", "doctor":
		return fromDoctor
	}
	return fromDiagnose // its five steps, and itself
}

// reading is what a source gave.
type reading struct {
	source  source
	add     func(*facts)                 // nil = nothing was read
	answers map[string][]Answer          // by collector
	took    map[string]time.Duration     // by collector, where they differ
	err     error                        // why nothing was read
	lost    []error                      // parts that could not be read
	verdict func(string) sandbox.Verdict // of a collector; nil = it has none
}

// readSource asks one source.
func (r *runner) readSource(ctx context.Context, from source) reading {
	watch := r.reading
	switch from {
	case fromInspect:
		return readInspect(ctx, r.env, watch, r.run.Word)
	case fromVerify:
		return readVerify(ctx, r.env, watch, r.run.DryRun)
	case fromDoctor:
		return readDoctor(ctx, r.env, watch)
	case fromRecords:
		return readRecords(ctx, r.env, watch, !r.run.DryRun, r.recordsOf())
	case fromTasks:
		return readTasks(ctx, r.env)
	case fromCron:
		return readCron(ctx, r.env, watch)
	case fromDiagnose:
	}
	return readDiagnosis(ctx, r.env, watch)
}

func failedReading(from source, err error) reading { return reading{source: from, err: err} }

func readDiagnosis(ctx context.Context, env *ops.Env, watch ops.Observer) reading {
	d, err := look.Diagnose(ctx, env, look.DiagnoseRequest{}, watch)
	if err != nil {
		return failedReading(fromDiagnose, err)
	}
	got := reading{source: fromDiagnose, answers: map[string][]Answer{}, took: map[string]time.Duration{}, lost: d.Errors}
	for _, s := range d.Steps {
		got.took[s.ID] = s.Took
		for _, a := range s.Answers {
			got.answers[s.ID] = append(got.answers[s.ID], Answer{Question: a.Question, Answer: a.Text, Known: a.Known, By: s.ID})
		}
	}
	got.answers["diagnose"] = causeAnswers(d, "diagnose")
	got.add = func(f *facts) {
		f.diagnosis = d
		f.addSubjects(d.Subjects)
		if f.inspected == nil { // what was named counts more
			f.addCauses(d)
		}
	}
	return got
}

// causeAnswers are the causes of a diagnosis, the likeliest first.
func causeAnswers(d *look.DiagnoseResult, by string) []Answer {
	a := Answer{Question: "what is the cause?", Known: true, Answer: "none is named", By: by}
	var named []string
	for _, c := range d.Causes {
		named = append(named, fmt.Sprintf("%s (%s)", c.Title, c.Confidence))
	}
	if len(named) > 0 {
		a.Answer = strings.Join(named, "; ")
	} else if d.Verdict() == sandbox.Unknown {
		a.Answer, a.Known = "unknown: not everything could be judged", false
	}
	return []Answer{a}
}

// readInspect looks at what was named.
func readInspect(ctx context.Context, env *ops.Env, watch ops.Observer, word string) reading {
	if word == "" {
		none := Answer{Question: "what is wrong with it?", Answer: "unknown: no sandbox was named; --ref REF names one", By: "inspect"}
		return reading{
			source: fromInspect, answers: map[string][]Answer{"inspect": {none}}, add: func(*facts) {},
			verdict: func(string) sandbox.Verdict { return sandbox.Unknown },
		}
	}
	d, err := look.Diagnose(ctx, env, look.DiagnoseRequest{Word: word}, watch)
	if err != nil {
		return failedReading(fromInspect, err)
	}
	got := reading{source: fromInspect, lost: d.Errors, add: func(f *facts) {
		f.inspected = d
		f.addCauses(d)
		if d.Inspected != nil {
			f.addSandbox(d.Inspected)
		}
	}}
	var said []Answer
	for _, s := range d.Steps {
		for _, a := range s.Answers {
			if a.Known && s.ID != "count" && s.ID != "cleanup" { // those are of the profile
				said = append(said, Answer{Question: a.Question, Answer: a.Text, Known: true, By: "inspect"})
			}
		}
	}
	got.answers = map[string][]Answer{"inspect": append(said, causeAnswers(d, "inspect")...)}
	return got
}

func readVerify(ctx context.Context, env *ops.Env, watch ops.Observer, dry bool) reading {
	v, err := look.Verify(ctx, env, look.VerifyRequest{NoAlerts: dry}, watch)
	if err != nil {
		return failedReading(fromVerify, err)
	}
	got := reading{source: fromVerify, answers: map[string][]Answer{}, lost: v.Errors}
	for _, c := range v.Checks {
		got.answers["verify"] = append(got.answers["verify"], Answer{Question: c.Title, Answer: targetText(c), Known: c.Met() != sandbox.Unknown, By: "verify"})
	}
	got.add = func(f *facts) {
		f.verified = v
		f.addSubjects(v.Subjects)
		checks := map[string]sandbox.Verdict{}
		for _, c := range v.Checks {
			checks[c.ID] = c.Met()
		}
		for _, have := range f.each() {
			have.Checks = checks
		}
	}
	return got
}

// readDoctor checks the tool, and reads the quotas.
func readDoctor(ctx context.Context, env *ops.Env, watch ops.Observer) reading {
	d, err := look.Doctor(ctx, env, watch)
	if err == nil {
		err = d.Trouble
	}
	if err != nil {
		return failedReading(fromDoctor, err)
	}
	got := reading{source: fromDoctor, answers: map[string][]Answer{}}
	for _, c := range d.Checks {
		a := Answer{Question: strings.TrimSpace(c.Provider + " " + c.Check.Check), Answer: c.Message, Known: c.Verdict != sandbox.Unknown, By: "doctor"}
		if c.Check.Check == "quota" {
			got.answers["quota"] = append(got.answers["quota"], a)
		}
		if c.Err() != nil { // what is in order is not worth a line
			got.answers["doctor"] = append(got.answers["doctor"], a)
		}
	}
	if len(got.answers["doctor"]) == 0 {
		got.answers["doctor"] = []Answer{{Question: "is the tool in order?", Answer: fmt.Sprintf("yes: %d checks", len(d.Checks)), Known: true, By: "doctor"}}
	}
	got.add = func(f *facts) { f.addSubjects(d.Subjects) }
	return got
}

// readRecords compares records with sandboxes. A comparison that counts is an observation, of which
// two prove an orphan.
func readRecords(ctx context.Context, env *ops.Env, watch ops.Observer, counts bool, records string) reading {
	rules := reconcile.DefaultRules()
	rules.Observe = counts
	result, err := end.Reconcile(ctx, env, end.ReconcileRequest{Rules: rules, Check: counts, Records: records}, watch)
	if err != nil {
		return failedReading(fromRecords, err)
	}
	got := reading{source: fromRecords, lost: result.Plan.Errors, add: func(f *facts) { f.addSubjects(result.Subjects) }}
	said := []Answer{{
		Question: "do records and sandboxes agree?", Answer: fmt.Sprintf("%d of %d rows need attention", result.Plan.CountNeedingAction(), len(result.Plan.Rows)),
		Known: len(result.Plan.Sides) > 0, By: "records",
	}}
	for _, row := range result.Plan.Rows {
		if row.NeedsAction() && len(said) <= maxShown {
			said = append(said, Answer{Question: row.Ref.String(), Answer: row.Reason, Known: row.Verdict != sandbox.Unknown, By: "records"})
		}
	}
	got.answers = map[string][]Answer{"records": said}
	return got
}

// recordsOf is where the records come from that the runbook repairs; "" = the default of the profile.
func (r *runner) recordsOf() string {
	for _, s := range r.sections() {
		for _, step := range s.steps {
			if step.Act != nil && step.Act.Records != "" {
				return string(step.Act.Records)
			}
		}
	}
	return ""
}

// maxShown is how many rows of a comparison are kept as answers.
const maxShown = 20

// tasksOf is how far back tasks are measured.
const tasksOf = 24 * time.Hour

func readTasks(ctx context.Context, env *ops.Env) reading {
	report, err := launch.Report(ctx, env, tasksOf)
	if err != nil {
		return failedReading(fromTasks, err)
	}
	subjects, err := ops.RecordedSubjects(ctx, env)
	if err != nil {
		return failedReading(fromTasks, err)
	}
	said := []Answer{{Question: "how many tasks are on record of the last day?", Answer: strconv.Itoa(len(report.Tasks)), Known: true, By: "tasks"}}
	for _, f := range report.Figures {
		if v := f.Verdict(); v != sandbox.Unknown {
			word := "met"
			if v == sandbox.False {
				word = "missed"
			}
			said = append(said, Answer{Question: f.Title, Answer: figureText(f, word), Known: true, By: "tasks"})
		}
	}
	return reading{source: fromTasks, answers: map[string][]Answer{"tasks": said}, add: func(f *facts) { f.addSubjects(subjects) }}
}

func readCron(ctx context.Context, env *ops.Env, watch ops.Observer) reading {
	checked, err := opscron.CheckLayers(ctx, env, opscron.CheckRequest{Layers: cron.Layers()}, watch)
	if err != nil {
		return failedReading(fromCron, err)
	}
	subjects, err := ops.RecordedSubjects(ctx, env)
	var said []Answer
	for _, s := range checked.Statuses {
		said = append(said, Answer{Question: "does the layer " + string(s.Layer) + " run?", Answer: s.Message, Known: s.Verdict != sandbox.Unknown, By: "cron"})
	}
	return reading{source: fromCron, err: err, answers: map[string][]Answer{"cron": said}, add: func(f *facts) { f.addSubjects(subjects) }}
}

// readAll asks sources at once, and adds what they gave in the order of sources.
func (r *runner) readAll(ctx context.Context, sources []source) []reading {
	back := r.leave()
	got := make([]reading, len(sources))
	done := make(chan int, len(sources))
	for i, from := range sources {
		go func() {
			got[i] = r.readSource(ctx, from)
			done <- i
		}()
	}
	for range sources {
		<-done
	}
	back()
	for _, g := range got {
		r.facts.once[g.source] = true
		if g.err == nil && g.add != nil {
			g.add(r.facts)
			r.facts.readAt[g.source] = r.env.Now()
			r.given[g.source] = g
		}
	}
	return got
}

// need reads what gives these names, unless it was read since the last change.
func (r *runner) need(ctx context.Context, names []string) error {
	var missing []source
	for _, name := range names {
		from, needed := r.sourceFor(name)
		if needed && !slices.Contains(missing, from) {
			missing = append(missing, from)
		}
	}
	var errs []error
	for _, g := range r.readAll(ctx, missing) {
		errs = append(errs, g.err)
	}
	return errors.Join(errs...)
}

// sourceFor is what has to be read for a name: a source that some step has read before, else the one
// that knows it best.
func (r *runner) sourceFor(name string) (from source, needed bool) {
	var sources []source
	for _, collector := range runbook.CollectorsOf(name) {
		sources = append(sources, sourceOf(collector))
	}
	if strings.HasPrefix(name, "sandbox.") {
		sources = []source{fromInspect}
	}
	for _, s := range sources {
		if _, fresh := r.facts.readAt[s]; fresh {
			return "", false
		}
	}
	for _, s := range sources {
		if r.facts.once[s] {
			return s, true
		}
	}
	if len(sources) == 0 {
		return "", false
	}
	return sources[0], true
}

func oneLine(err error) string {
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// lostText says which parts of a read are missing; "" = none.
func lostText(errs []error) string {
	if err := errors.Join(errs...); err != nil {
		return oneLine(err)
	}
	return ""
}

// stepError is the error of a step that reached its own limit: that of the whole command has another
// exit code.
func stepError(ctx, step context.Context, err error) error {
	if ctx.Err() == nil && step.Err() != nil && fault.Interrupted(err) {
		return context.Cause(step)
	}
	return err
}
