package end

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// CleanupRequest is what is asked of a bulk ending.
type CleanupRequest struct {
	RunID      string // of the run whose plan this is; "" = a new one
	Rule       cleanup.Rule
	Production []string // production profiles that the operator has named
	Profiles   []string // profiles that the operator has named; none = those of the configuration
	UsageAbove int      // percent of a quota above which a profile is cleaned; 0 = however much is used

	// Plan, if any, is what the run ends at most, by its own rule.
	Plan         *cleanup.Plan
	PlanFromFile bool // it was written and read, and is no plan of this request
	// Resume names a run that was cut off, and that this one goes on with.
	Resume string
	// ProviderSide and Emergency let the named providers clean up by their own rules.
	ProviderSide, Emergency bool

	Yes         bool          // act without being asked
	Line        []string      // the command line that was typed, quoted for a shell; for hints that repeat it
	Wait, Grace time.Duration // as in TerminateRequest
	LockWait    time.Duration // how long another run is waited for
	Every       time.Duration // the time between two runs of one process; 0 = one run
	MaxPlanAge  time.Duration
	Textfile    string // where the figures of the run are written; "" = nowhere
	Ping        string // address that is pinged at the start and end of the run; "" = as configured
}

// CleanupResult is what a bulk ending saw and did.
type CleanupResult struct {
	RunID   string
	Survey  cleanup.Survey
	Guards  []safety.Guard
	Endings []sandbox.Ending
	Refused error         // a guard kept the whole run from acting
	Lost    error         // the last line of the journal could not be written
	Took    time.Duration // from the first request to the last outcome
	Verdict error

	run *cleanupRun
}

// PlanCleanup looks at everything and says what Cleanup would do; it does nothing.
func PlanCleanup(ctx context.Context, env *ops.Env, req CleanupRequest, watch ops.Observer) (*CleanupResult, error) {
	r, err := newCleanupRun(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	if err := r.choose(ctx); err != nil {
		return nil, err
	}
	return r.resultWith(r.survey.Verdict(nil)), nil
}

// Cleanup ends what its rule chooses, within the guards, under the lock of bulk runs, with a
// journal, and notifies watchdogs and people of the result. Without Yes it needs a plan or a run to
// resume, and asks first. Items are of types RunStarted and sandbox.Ending. With an error nothing was
// begun; the result is not nil where the run has figures all the same.
func Cleanup(ctx context.Context, env *ops.Env, req CleanupRequest, watch ops.Observer) (*CleanupResult, error) {
	if err := env.MayChange(); err != nil {
		return nil, err
	}
	r, err := newCleanupRun(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	result, err := r.runRequested(ctx)
	if err != nil {
		return r.resultWith(err), err
	}
	return result, nil
}

func (r *cleanupRun) runRequested(ctx context.Context) (*CleanupResult, error) {
	switch {
	case r.req.Emergency, r.req.ProviderSide:
		return r.byProvider(ctx)
	case r.req.Resume != "":
		return r.goOn(ctx)
	case r.req.Plan != nil:
		return r.endPlanOfRequest(ctx, *r.req.Plan)
	case !r.req.Yes:
		return nil, fault.New(fault.KindRefused, "a cleanup needs confirmation").WithHint("see its plan, then repeat with --yes")
	}
	return r.withRunLock(ctx, func(ctx context.Context) (*CleanupResult, error) {
		if err := r.choose(ctx); err != nil {
			return nil, err
		}
		return r.runJournaled(ctx, r.survey.Targets())
	})
}

// cleanupRun is one bulk ending.
type cleanupRun struct {
	env   *ops.Env
	req   CleanupRequest
	watch ops.Observer
	id    string
	rule  cleanup.Rule
	world cleanup.Environment

	narrowed bool // it ends at most what a plan names
	recorded bool // its journal has begun

	fleet   *fleet.Fleet
	used    map[string]float64 // the highest use of a quota, by profile, where it was asked
	held    *ops.Leases        // by tasks
	survey  cleanup.Survey
	endings []sandbox.Ending
	took    time.Duration
}

// newCleanupRun takes the guards from the configuration, of the profiles that the run is
// about.
func newCleanupRun(ctx context.Context, env *ops.Env, req CleanupRequest, watch ops.Observer) (*cleanupRun, error) {
	r := &cleanupRun{env: env, req: req, watch: watch, id: cmp.Or(req.RunID, env.RunID()), rule: req.Rule}
	r.held = r.env.Leases(ctx)
	c, err := r.env.Config()
	if err != nil {
		return nil, err
	}
	limits, err := r.env.Limits(c, r.req.Production)
	if err != nil {
		return nil, err
	}
	r.world = cleanup.Environment{
		Now:        r.env.Now,
		Limits:     limits,
		Thresholds: r.env.Thresholds,
		Protected:  r.env.Protection(c, r.held).ByRule,
	}
	for _, p := range c.Selected() {
		r.world.Profiles = append(r.world.Profiles, cleanup.Profile{
			Name: p.Name, Owns: p.Owned.Owns, OwnedRule: p.Owned.String(), Undecided: p.Undecided(),
		})
	}
	return r, nil
}

// withRunLock runs do while no other run of this state directory acts, and reports how it went.
func (r *cleanupRun) withRunLock(ctx context.Context, do func(context.Context) (*CleanupResult, error)) (*CleanupResult, error) {
	var result *CleanupResult
	err := r.withNotifications(ctx, func() error {
		err := r.env.Exclusively(ctx, r.id, r.req.LockWait, func(ctx context.Context) (err error) {
			r.env.SettleTasks(ctx, r.watch)
			result, err = do(ctx)
			return err
		})
		if err == nil && result != nil {
			return result.Verdict
		}
		return err
	})
	if result != nil {
		return result, nil
	}
	return nil, err
}

// endPlanOfRequest ends at most what a plan of the request names, if that is allowed.
func (r *cleanupRun) endPlanOfRequest(ctx context.Context, plan cleanup.Plan) (*CleanupResult, error) {
	if r.req.PlanFromFile {
		if err := plan.Check(r.env.Now(), r.req.MaxPlanAge); err != nil {
			return nil, err
		}
	}
	what := fmt.Sprintf("the plan of %s names %d sandboxes", plan.MadeAt.Format("15:04:05 UTC"), len(plan.Items))
	if err := r.mayAct(ctx, what, plan.Items); err != nil {
		return nil, err
	}
	return r.endPlan(ctx, plan)
}

// endPlan judges again and ends at most what an allowed plan names: a sandbox of the plan may
// have started to work since.
func (r *cleanupRun) endPlan(ctx context.Context, plan cleanup.Plan) (*CleanupResult, error) {
	r.rule = plan.Rule
	return r.withRunLock(ctx, func(ctx context.Context) (*CleanupResult, error) {
		if err := r.listAndJudge(ctx); err != nil {
			return nil, err
		}
		r.narrowed = true
		targets := r.survey.Within(plan)
		r.survey.Narrow(targets)
		if left := len(r.survey.Selected); left < len(targets) {
			r.watch.Note(fmt.Sprintf("since the plan was made %d of its %d have changed and stay", len(targets)-left, len(targets)))
		}
		return r.runJournaled(ctx, targets)
	})
}

func (r *cleanupRun) listAndJudge(ctx context.Context) error {
	progress := r.watch.Progress("looking at every sandbox")
	defer progress.Done()
	var err error
	if r.fleet, err = r.env.Fleet(ctx); err != nil {
		return err
	}
	left, err := r.narrowToPressed(ctx)
	if err != nil {
		return err
	}
	if r.fleet == nil { // nothing is pressed
		r.survey = cleanup.Survey{At: r.env.Now(), Rule: r.rule, Shares: left}
		return nil
	}
	r.shareSightings(ctx)
	r.world.Listed = func(n int) { progress.Update(ops.GroupedNumber(n) + " listed") }
	r.world.Looked = ops.TellLooks(progress)
	r.survey, err = cleanup.TakeSurvey(ctx, r.fleet, r.world, r.rule)
	if err != nil {
		for _, cut := range r.survey.Sources { // what was not looked at, of a look that has ended too early
			r.watch.Note(cut.Error())
		}
		return err
	}
	r.survey.Shares = append(r.survey.Shares, left...)
	if err := r.held.Err(); err != nil {
		r.survey.Sources = append(r.survey.Sources, err)
	}
	return nil
}

// choose looks at everything, and says how much the rule selects.
func (r *cleanupRun) choose(ctx context.Context) error {
	if err := r.listAndJudge(ctx); err != nil {
		return err
	}
	if r.fleet != nil {
		r.watch.Note(fmt.Sprintf("found %d of %d sandboxes to clean up", len(r.survey.Selected), len(r.survey.Selected)+len(r.survey.Kept)))
	}
	return nil
}

// runJournaled begins the journal, holds the run against the guards and ends the targets.
func (r *cleanupRun) runJournaled(ctx context.Context, targets []cleanup.Target) (*CleanupResult, error) {
	r.recordSightings(ctx)
	guards := r.survey.Guards(r.world)
	plan := r.survey.Plan(r.id)
	plan.Items = plan.Items[:0]
	for _, t := range targets {
		plan.Items = append(plan.Items, t.Item)
	}
	layer, shortfall := r.layerAndShortfall()
	w, err := r.env.BeginRun(ctx, r.watch, r.id, cleanup.Begin{
		Actor: r.env.Actor(), Verb: ops.VerbCleanup, Layer: layer, Shortfall: shortfall, Plan: plan, Guards: guards, Profiles: r.survey.Records(r.watch.Redact), Kept: r.survey.KeepReasons(),
	})
	if err != nil {
		return nil, err
	}
	defer w.Release()
	r.recorded = true
	if refused := cleanup.Refusal(guards, r.req.Line...); refused != nil {
		if err := w.Finish(ctx, w.EndEntry(nil, refused, nil)); err != nil {
			r.watch.Warn(err.Error())
		}
		r.watch.Item(ops.RunStarted{RunID: r.id})
		result := r.resultWith(refused)
		result.Refused = refused
		return result, nil
	}
	return r.endTargets(ctx, w, targets)
}

// endTargets ends the targets, reports what became of each as it is known, and closes the
// journal.
func (r *cleanupRun) endTargets(ctx context.Context, w *ops.RunJournal, targets []cleanup.Target) (*CleanupResult, error) {
	run := &cleanup.Run{
		Fleet: r.fleet, Environment: r.world, Rule: r.rule, Journal: w, Targets: targets,
		Wait: r.req.Wait, Grace: r.req.Grace, By: r.env.ActsAs(ops.VerbCleanup), Redact: r.watch.Redact,
	}
	progress := r.watch.Progress("ending sandboxes")
	defer progress.Done()
	r.watch.Item(ops.RunStarted{RunID: r.id})
	began := time.Now()
	for e := range run.EndTargets(ctx) {
		r.endings = append(r.endings, e)
		progress.Update(ops.PartText(len(r.endings), len(targets)))
		r.watch.Item(e)
	}
	r.took = time.Since(began)
	recordEnds(ctx, r.env, r.watch, r.fleet, r.endings)
	r.reportKept()
	return r.closeJournal(ctx, w), nil
}

// closeJournal closes the journal. A run whose last line is not in the journal is no success.
func (r *cleanupRun) closeJournal(ctx context.Context, w *ops.RunJournal) *CleanupResult {
	result := r.resultWith(ops.CauseOr(ctx, r.survey.Verdict(r.endings)))
	if err := w.Finish(ctx, w.EndEntry(r.endings, result.Verdict, r.survey.Succeeded(r.endings))); err != nil {
		result.Lost = err
		result.Verdict = cmp.Or(result.Verdict, err)
	}
	return result
}

func (r *cleanupRun) resultWith(verdict error) *CleanupResult {
	return &CleanupResult{RunID: r.id, Survey: r.survey, Guards: r.survey.Guards(r.world), Endings: r.endings, Verdict: verdict, Took: r.took, run: r}
}

// reportKept notifies people after a run of what no rule could judge, and warns of what it left
// because it has no owner: a run that cron starts is quiet and would leave it each time.
func (r *cleanupRun) reportKept() {
	for _, text := range append(ops.UndecidedLines(r.survey.Undecided()), r.unjudgedText()) {
		if text != "" {
			r.watch.Note(text)
		}
	}
	if text := r.unownedText(); text != "" {
		r.watch.Warn(text)
	}
}

// UnjudgedText says how many sandboxes stay because no sign shows whether they work, and what
// would judge them; "" = none.
func (r *CleanupResult) UnjudgedText() string { return r.run.unjudgedText() }

// UnownedText says how many sandboxes stay because nobody owns them, and what to type; "" =
// none.
func (r *CleanupResult) UnownedText() string { return r.run.unownedText() }

func (r *cleanupRun) unjudgedText() string {
	n := r.survey.Unjudged()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("kept because sbx cannot tell whether they are active: %d; --ignore-activity, or `activity: age-only` in the profile, uses age only", n)
}

func (r *cleanupRun) unownedText() string {
	what := "sandboxes that the rule would terminate"
	if r.rule.Selector.Stuck {
		what = "stuck sandboxes"
	}
	return r.env.UnownedText(r.survey.Unowned(), what)
}

// Find looks a word up among everything that was judged.
func (r *CleanupResult) Find(word string) (cleanup.Judgement, error) {
	ref, err := sandbox.ParseRef(word)
	if err != nil {
		return cleanup.Judgement{}, fault.Usage("--explain: %w", err)
	}
	var found []cleanup.Judgement
	for _, j := range slices.Concat(r.Survey.Selected, r.Survey.Kept) {
		s := j.Sandbox
		if s.Ref() == ref || ref.Bare() && (s.ID == ref.ID || s.Name == ref.ID || len(ref.ID) >= sandbox.MinPrefix && strings.HasPrefix(s.ID, ref.ID)) {
			found = append(found, j)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return cleanup.Judgement{}, fault.Usage("--explain: %q means %d sandboxes", word, len(found)).WithHint("write it as profile/id")
	case len(r.Survey.Errs()) > 0:
		return cleanup.Judgement{}, r.Survey.Verdict(nil)
	}
	return cleanup.Judgement{}, fault.New(fault.KindNotFound, "no sandbox matches %q", word).WithHint("`%s ls --all` lists all of them", r.run.env.Process.Name())
}
