package end

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// EndGrace is the time between SIGTERM and SIGKILL where nothing else is asked for.
const EndGrace = 5 * time.Second

// TerminateRequest is what is asked of an end by name.
type TerminateRequest struct {
	Words      []string         // what names the sandboxes
	Typed      []string         // those of Words that a person typed; a pipe brought the others
	Production []string         // production profiles that the operator has named
	Reason     string           // why they end, for the record; "" = a person named them
	Delete     bool             // also destroy what the provider would keep
	FullGrace  bool             // grant all of Grace, also to what does not react
	Yes        bool             // end many without being asked
	Unattended bool             // nobody can be asked
	Shown      bool             // a screen shows the plan, of any size, and asks for it, or nobody does
	Planned    []ops.PlannedEnd // what a person has seen: a sandbox that was recreated since stays
	Line       []string         // the command line that was typed, quoted for a shell; for hints that repeat it
	Grace      time.Duration
	Wait       time.Duration // how long an end is looked for; 0 = fleet.DefaultWait
}

// Terminate ends the sandboxes that words name where nobody can be asked; see PlanTerminate.
func Terminate(ctx context.Context, env *ops.Env, req TerminateRequest, watch ops.Observer) (ops.ActResult, error) {
	req.Unattended, req.Shown = true, false
	act, err := PlanTerminate(ctx, env, req)
	if err != nil {
		return ops.ActResult{}, err
	}
	allowed, err := act.Permit(ctx, ops.Nobody)
	if err != nil {
		return ops.NotBegun(act.RunID, err), nil
	}
	return act.Do(ctx, watch, allowed), nil
}

// termination is one run that ends sandboxes by name, or part of one that extends them.
type termination struct {
	env     *ops.Env
	req     TerminateRequest
	effect  safety.Effect // on its targets
	sort    func() (selected, kept []ops.PlannedEnd)
	id      string
	config  *config.Config
	fleet   *fleet.Fleet
	limits  safety.Limits
	targets []sandbox.Sandbox
	held    *ops.Leases // by tasks
	carried bool        // a part of it was carried out
	lost    []error     // words that were not found, each with its kind

	chosen     map[sandbox.Ref]safety.Choice // how each target was named; none = by a pipe
	unreadable map[sandbox.Ref]bool          // targets of which nothing could be read
	begun      int                           // targets that were named by the beginning of their id
	made       map[sandbox.Ref]time.Time     // when each target was created, as it was confirmed or found
	refused    map[sandbox.Ref]string        // by its provider, in the rehearsal of a plan; nil = there was none
}

// findTargets finds what the words mean. Words that are not found are kept for the end: one of
// them does not stop the rest.
func (t *termination) findTargets(ctx context.Context) (err error) {
	words := t.req.Words
	if t.config, err = t.env.Config(); err != nil {
		return err
	}
	if t.limits, err = t.env.Limits(t.config, t.req.Production); err != nil {
		return err
	}
	if err := t.refuseUnattended(words); err != nil {
		return err
	}
	if t.fleet, err = t.env.Fleet(ctx); err != nil {
		return err
	}
	t.held = t.env.Leases(ctx)
	found, err := t.fleet.FindEach(ctx, words, fleet.FindOptions{
		Destructive: t.effect == safety.Ending(), Typed: append([]string{}, t.req.Typed...), Full: !t.req.Shown && (t.req.Yes || t.req.Unattended),
	})
	t.addTargets(found)
	if cause := ops.EndCause(ctx, err); cause != nil {
		return cause
	}
	if fault.KindOf(err) == fault.KindUsage && len(found) == 0 {
		return err
	}
	if err != nil && len(words) == 1 {
		_, err = recall.WhoEnded(ctx, t.env, words[0], err)
	}
	if err != nil {
		t.lost = append(t.lost, ops.Mistakes(err)...)
	}
	return nil
}

// refuseUnattended refuses many words when no person can be asked, before anything is called.
func (t *termination) refuseUnattended(words []string) error {
	n := len(slices.Compact(slices.Sorted(slices.Values(words))))
	if t.req.Shown || t.req.Yes || n <= safety.MaxUnasked || !t.req.Unattended {
		return nil
	}
	return fault.New(fault.KindRefused, "%d sandboxes are more than %d: needs confirmation, and this is not a terminal", n, safety.MaxUnasked).
		WithHint("see the plan with --dry-run, then repeat with --yes")
}

// addTargets makes targets of what was found, and notes how each was named.
func (t *termination) addTargets(found []fleet.Found) {
	t.chosen, t.unreadable, t.made = map[sandbox.Ref]safety.Choice{}, map[sandbox.Ref]bool{}, map[sandbox.Ref]time.Time{}
	for _, f := range found {
		choice := safety.ByRule
		for _, word := range f.Words {
			ref, err := sandbox.ParseRef(word)
			switch {
			case err != nil || !slices.Contains(t.req.Typed, word):
			case ref.Bare():
				choice = max(choice, safety.ByWord)
			default:
				choice = safety.ByReference
			}
		}
		if f.Begun {
			t.begun++
		}
		t.targets = append(t.targets, f.Sandbox)
		t.chosen[f.Ref()], t.unreadable[f.Ref()], t.made[f.Ref()] = choice, f.Unreadable, f.CreatedAt
	}
	for _, p := range t.req.Planned {
		t.made[p.Ref] = p.Sandbox.CreatedAt
	}
}

func (t *termination) choiceOf(ref sandbox.Ref) safety.Choice { return t.chosen[ref] }

// protectionReason says why a sandbox may not be ended; "" = it may.
func (t *termination) protectionReason(s sandbox.Sandbox) string {
	return t.env.Protection(t.config, t.held).Keeps(s, t.choiceOf(s.Ref()))
}

// execute ends at most what was allowed: the sandboxes that were found, not what their words mean by now.
func (t *termination) execute(ctx context.Context, watch ops.Observer, allowed ops.Allowed) (result ops.ActResult) {
	part := *t
	if t.carried {
		part.id = t.env.RunID()
	}
	t.carried = true
	if err := part.narrow(ctx, allowed); err != nil {
		return ops.NotBegun(part.id, err)
	}
	watch.Item(ops.RunStarted{RunID: part.id})
	for _, err := range part.lost {
		watch.Item(err)
	}
	began := time.Now()
	endings := part.endTargets(ctx, watch)
	took := time.Since(began)
	recordEnds(ctx, t.env, watch, t.fleet, endings)
	return ops.ActResult{RunID: part.id, Endings: endings, Err: part.endingsVerdict(endings), Took: took}
}

// narrow leaves the targets that were allowed, and reads anew what may have changed since the plan.
func (t *termination) narrow(ctx context.Context, allowed ops.Allowed) (err error) {
	if err := t.env.MayChange(); err != nil {
		return err
	}
	if allowed.Targets != nil {
		t.lost = nil // which the plan has shown
		t.targets = ops.Narrow(allowed, t.targets, sandbox.Sandbox.Ref)
	}
	if t.limits, err = t.env.Limits(t.config, allowed.Production); err != nil {
		return err
	}
	t.held, t.req.Yes = t.env.Leases(ctx), true
	for _, g := range t.runGuards() {
		if !g.OK {
			return t.guardRefusal(g)
		}
	}
	return nil
}

func (t *termination) endTargets(ctx context.Context, watch ops.Observer) []sandbox.Ending {
	progress := watch.Progress("ending sandboxes")
	defer progress.Done()
	how := fleet.EndOptions{
		Delete: t.req.Delete, Grace: t.req.Grace, FullGrace: t.req.FullGrace, Wait: t.req.Wait, By: t.env.ActsAs(runs.VerbTerminate),
		Recheck: fleet.Recheck{Judge: t.judgeIdentity, AllowUnreadable: func(s sandbox.Sandbox) bool { return t.unreadable[s.Ref()] }},
	}
	var endings []sandbox.Ending
	options := safety.Options{
		Verb: safety.VerbTerminate, How: how, Protected: t.protectionReason, Choice: t.choiceOf,
		Open: t.env.EndsOpener(watch, runs.Origin{ID: t.id, Verb: runs.VerbTerminate, Reason: t.reason()}),
	}
	for e := range safety.End(ctx, t.fleet, t.targets, options) {
		endings = append(endings, e)
		progress.Update(ops.PartText(len(endings), len(t.targets)))
		watch.Item(e)
	}
	return endings
}

// judgeIdentity keeps another sandbox that has the id of the one that was named or confirmed, and one that was shown as
// refused.
func (t *termination) judgeIdentity(now sandbox.Sandbox) (sandbox.Outcome, string) {
	if why := t.refused[now.Ref()]; why != "" {
		return sandbox.OutcomeSkipped, why
	}
	if t.isAnother(now) {
		return sandbox.OutcomeChanged, anotherHere
	}
	return "", ""
}

func (t *termination) isAnother(now sandbox.Sandbox) bool {
	made := t.made[now.Ref()]
	return !made.IsZero() && !made.Equal(now.CreatedAt)
}

// anotherHere is why a sandbox stays that was recreated under a planned id.
const anotherHere = "another sandbox has this id now"

// reason is why the targets end.
func (t *termination) reason() string { return cmp.Or(t.req.Reason, "named by hand") }

// endingsVerdict counts a word that was not found like a sandbox that did not end.
func (t *termination) endingsVerdict(endings []sandbox.Ending) error {
	for _, err := range t.lost {
		endings = append(endings, sandbox.Ending{Outcome: sandbox.OutcomeFailed, Reason: err.Error(), Err: err})
	}
	return fleet.Verdict(endings, true)
}
