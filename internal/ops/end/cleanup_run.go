package end

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// CleanupRequest is what is asked of a bulk ending.
type CleanupRequest struct {
	RunID      string // of the run whose plan this is; "" = a new one
	Rule       cleanup.Rule
	Production []string // production profiles that the operator has named
	Profiles   []string // profiles that the operator has named; none = those of the configuration
	Counted    int      // as many a person has typed to end, which raises the limits of a run to it; 0 = nobody has
	UsageAbove int      // percent of a quota above which a profile is cleaned; 0 = however much is used

	// Plan, if any, is what the run ends at most, by its own rule.
	Plan         *cleanup.Plan
	PlanFromFile bool // it was written and read, and is no plan of this request
	// Resume names a run that was cut off, and that this one goes on with.
	Resume string
	// ProviderSide and Emergency let the named providers clean up by their own rules.
	ProviderSide, Emergency bool

	Yes         bool          // it is allowed: by the operator's flag, or by an answer
	Unattended  bool          // nobody watches: only what is left undone says it
	Explain     bool          // each check of a sandbox is shown
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
	Unowned error         // nobody watches, and only a missing owner has kept something from the run
	Lost    error         // the last line of the journal could not be written
	Took    time.Duration // from the first request to the last outcome
	Verdict error

	run *cleanupRun
}

// cleanupRun is one bulk ending.
type cleanupRun struct {
	env   *ops.Env
	req   CleanupRequest
	watch ops.Observer
	id    string
	rule  cleanup.Rule
	world cleanup.Environment

	narrowed bool // it leaves what its rule selects and its plan does not name
	recorded bool // its journal has begun

	fleet   *fleet.Fleet
	used    map[string]float64 // the highest use of a quota, by profile, where it was asked
	held    *ops.Leases        // by tasks
	survey  cleanup.Survey
	endings []sandbox.Ending
	took    time.Duration

	onlyUnowned error // as CleanupResult.Unowned
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
	if r.req.Counted > 0 {
		limits.MaxDelete, limits.MaxFraction = max(limits.MaxDelete, r.req.Counted), 100
	}
	r.world = cleanup.Environment{
		Now:        r.env.Now,
		Limits:     limits,
		Thresholds: r.env.Thresholds,
		Brief:      !req.Explain,
		Protected:  r.env.Protection(c, r.held).ByRule,
	}
	for _, p := range c.Selected() {
		r.world.Profiles = append(r.world.Profiles, cleanup.Profile{
			Name: p.Name, Owns: p.Owned.Owns, OwnedRule: p.Owned.String(), OwnerUnset: p.OwnerUnset(),
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

func (r *cleanupRun) listAndJudge(ctx context.Context) error {
	progress := r.watch.Progress("looking at every sandbox")
	defer progress.Done()
	var err error
	if r.fleet, err = r.env.Fleet(ctx); err != nil {
		return err
	}
	left, err := r.restrictToBusyProfiles(ctx)
	if err != nil {
		return err
	}
	if r.fleet == nil { // no profile is busy
		r.survey = cleanup.Survey{At: r.env.Now(), Rule: r.rule, Shares: left}
		return nil
	}
	r.shareSeenCounts(ctx)
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

// endTargets ends the targets, reports what became of each as it is known, and closes the
// journal.
func (r *cleanupRun) endTargets(ctx context.Context, w *runs.Run, targets []cleanup.Target) (*CleanupResult, error) {
	run := &cleanup.Run{
		Fleet: r.fleet, Environment: r.world, Rule: r.rule, Record: w.Writer, Targets: targets,
		Wait: r.req.Wait, Grace: r.req.Grace, By: r.env.ActsAs(runs.VerbCleanup),
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
	result := r.closeJournal(ctx, w)
	r.reportKept()
	return result, nil
}

// closeJournal closes the journal. A run whose last line is not in the journal is no success.
func (r *cleanupRun) closeJournal(ctx context.Context, w *runs.Run) *CleanupResult {
	result := r.resultWith(ops.CauseOr(ctx, r.survey.Verdict(r.endings)))
	entry := runs.NewConclusion(r.endings, result.Verdict, r.survey.Succeeded(r.endings))
	if r.onlyUnowned = r.unownedError(result.Verdict); r.onlyUnowned != nil { // no guard has refused it: what is ours has ended
		result.Unowned, result.Verdict = r.onlyUnowned, r.onlyUnowned
		entry.ExitCode, entry.Error = fault.ExitCode(r.onlyUnowned), r.onlyUnowned.Error()
	}
	if err := w.Finish(ctx, entry); err != nil {
		result.Lost = err
		result.Verdict = cmp.Or(result.Verdict, err)
	}
	return result
}

func (r *cleanupRun) resultWith(verdict error) *CleanupResult {
	return &CleanupResult{RunID: r.id, Survey: r.survey, Guards: r.survey.Guards(r.world), Endings: r.endings, Verdict: verdict, Took: r.took, run: r}
}

// shareSeenCounts lets the rule read when an earlier run first saw a sandbox without an age.
func (r *cleanupRun) shareSeenCounts(ctx context.Context) {
	first := r.env.SeenCounts(ctx, r.watch, ops.SightFirst)
	r.world.FirstSeen = func(s sandbox.Sandbox) time.Time { return first()[s.Ref().String()].First }
}

// recordSeenCounts stores when sandboxes without an age were first seen, for later runs. Only a run
// that may act does so.
func (r *cleanupRun) recordSeenCounts(ctx context.Context) {
	var ageless []string
	for _, j := range slices.Concat(r.survey.Selected, r.survey.Kept) {
		if _, source := j.Sandbox.Age(r.survey.At); source == sandbox.AgeUnknown || source == sandbox.AgeFirstSeen {
			ageless = append(ageless, j.Sandbox.Ref().String())
		}
	}
	if len(ageless) == 0 {
		return
	}
	r.env.WriteStore(ctx, r.watch, true, func(ctx context.Context, st store.Store) error {
		for _, ref := range ageless {
			if _, err := st.CountSeen(ctx, ops.SightFirst, ref, r.env.Now(), time.Second); err != nil {
				return err
			}
		}
		return nil
	})
}

// reportKept notifies people after a run of what no rule could judge, and warns of what it left
// because it has no owner: a run that cron starts is quiet and would leave it each time.
func (r *cleanupRun) reportKept() {
	for _, text := range r.keptLines() {
		r.watch.Note(text)
	}
	if text := r.unownedText(); text != "" && r.onlyUnowned == nil {
		r.watch.Warn(text)
	}
}

// KeptLines say what stays although a person may expect otherwise, and what would select it: what a selector leaves
// unknown, what no sign shows to be inactive, and what has failed.
func (r *CleanupResult) KeptLines() []string { return r.run.keptLines() }

func (r *cleanupRun) keptLines() []string {
	lines := ops.UnknownMatchLines(r.survey.UnknownMatches())
	if text := r.unjudgedText(); text != "" {
		lines = append(lines, text)
	}
	if n := r.survey.FailedKept(); n > 0 {
		lines = append(lines, fmt.Sprintf("%d failed kept: only --include-failed selects what has failed and is still at its provider", n))
	}
	return lines
}

func (r *cleanupRun) unjudgedText() string {
	n := r.survey.Unjudged()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(
		"%d kept: no log, event or metric shows whether they are active; `sbx ls --look --where 'stuck == nil'` lists them, --ignore-activity uses age only",
		n,
	)
}

// plannedItems are the items of a cleanup's plan, as questions show them.
func plannedItems(items []runs.Item) []ops.PlannedEnd {
	all := make([]ops.PlannedEnd, len(items))
	for i, item := range items {
		s := sandbox.Sandbox{Provider: item.Ref.Provider, ID: item.Ref.ID, Name: item.Name, State: item.State, CreatedAt: item.CreatedAt}
		all[i] = ops.PlannedEnd{Ref: item.Ref, Reason: item.Reason, Cause: item.Cause.Label(), Sandbox: s}
	}
	return all
}

// recordEnds brings the records of what was seen to end to their end. What has no record
// needs none.
func recordEnds(ctx context.Context, e *ops.Env, watch ops.Reporter, f *fleet.Fleet, endings []sandbox.Ending) {
	var over []sandbox.Ending
	for _, e := range endings {
		if (e.Outcome == sandbox.OutcomeVerified || e.Outcome == sandbox.OutcomeAlreadyGone) && !f.HasRecords(e.Ref.Provider) {
			over = append(over, e)
		}
	}
	if len(over) == 0 {
		return
	}
	e.WriteStore(ctx, watch, false, func(ctx context.Context, st store.Store) error {
		for _, ending := range over {
			did := ops.RecordEnded
			if ending.Outcome == sandbox.OutcomeAlreadyGone {
				did = "found ended by "
			}
			err := st.EndRecord(ctx, ending.Ref, sandbox.StateTerminated, did+e.Process.User()+" on "+e.Process.Host, e.Now())
			if err != nil && fault.KindOf(err) != fault.KindNotFound {
				return err
			}
		}
		return nil
	})
}

// resumeRun resumes a run that was cut off: what its journal shows to be done is left
// alone, everything else is read again and brought to its end.
func (r *cleanupRun) resumeRun(ctx context.Context) (*CleanupResult, error) {
	disk, err := r.env.Journals()
	if err != nil {
		return nil, err
	}
	return r.withRunLock(ctx, func(ctx context.Context) (*CleanupResult, error) {
		h, log, err := runs.ScanRun(disk, r.req.Resume)
		if err != nil {
			return nil, err
		}
		if err := mayResume(h); err != nil {
			return nil, err
		}
		if len(h.Open()) == 0 {
			r.watch.Note(h.RunID + " has nothing left to do")
		}
		if r.fleet, err = r.env.Only(ctx, h.Profiles()...); err != nil {
			return nil, err
		}
		rule, err := cleanup.RuleOf(h)
		if err != nil {
			return nil, err
		}
		w, err := r.env.Runs().Resume(disk, h, log, r.env.Actor(), r.watch)
		if err != nil {
			return nil, err
		}
		defer w.Close()
		r.id, r.rule = h.RunID, rule
		r.rule.Unowned = true // whose they are was judged when the run began; an owner that changed keeps them
		r.survey = cleanup.SurveyOf(h, r.rule, r.env.Now())
		return r.endTargets(ctx, w, cleanup.ResumedTargets(h))
	})
}

// mayResume says why a run cannot be resumed; nil = it can.
func mayResume(h runs.History) error {
	switch {
	case h.Begin.Verb != "" && h.Begin.Verb != runs.VerbCleanup:
		return fault.Usage("%s is a run of %s, which cannot be resumed", h.RunID, h.Begin.Verb).WithHint("run it again: it makes a new plan")
	case h.Conclusion != nil && h.Conclusion.Refused:
		return fault.New(fault.KindRefused, "%s was refused and terminated nothing: %s", h.RunID, h.Conclusion.Error).WithHint("start a new run")
	case h.Broken != "":
		return fault.New(fault.KindRefused, "the journal of %s was changed or damaged: %s", h.RunID, h.Broken).WithHint("start a new run")
	case len(h.Unreadable) > 0: // it may be what asked for an end, or what kept a sandbox on purpose
		return fault.New(fault.KindRefused, "%w", h.Unreadable.Error(h.RunID)).
			WithHint("what they say is not known, so the run is not resumed: start a new run, which judges every sandbox again")
	case h.StartedAt.IsZero():
		return fault.New(fault.KindRefused, "%s was interrupted before it had a plan", h.RunID).WithHint("start a new run")
	}
	return nil
}
