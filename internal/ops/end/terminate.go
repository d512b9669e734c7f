package end

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
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
	Patient    bool             // grant all of Grace, also to what does not react
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

// PlanTerminate plans the end of the sandboxes that words name; it changes nothing. Each is read again just before its
// end, asked once, and looked at until its end is seen. Items of Do are of types RunStarted, error (a word that named
// nothing) and sandbox.Ending. An error is a wrong use: nothing was called, or no word can be a reference.
func PlanTerminate(ctx context.Context, env *ops.Env, req TerminateRequest) (*ops.Act, error) {
	if err := env.MayChange(); err != nil && !req.Shown {
		return nil, err
	}
	t := &termination{env: env, req: req, id: env.RunID()}
	act := &ops.Act{Verb: "terminate", RunID: t.id, At: env.Now(), Line: req.Line, Named: req.Production, Guards: []safety.Guard{}, Refused: env.MayChange(), Carry: t.carry, Rehearse: t.rehearse}
	failed := t.findTargets(ctx)
	if fault.KindOf(failed) == fault.KindUsage {
		return nil, failed
	}
	act.Errors = append(t.lost, failed)
	act.Targets, act.Kept = t.plannedEnds()
	if failed != nil {
		act.Refused, act.Verdict, act.Failed = ops.CauseOr(ctx, failed), failed, failed
		return act, nil
	}
	act.Guards, act.Verdict = t.runGuards(), t.planVerdict()
	if kind := fault.KindOf(act.Verdict); len(t.targets) == 0 && kind != fault.KindNone && kind != fault.KindNotFound && kind != fault.KindGone {
		act.Failed = act.Verdict
	}
	if req.Shown {
		act.Rehearse(ctx, act)
	} else {
		t.ask(act)
	}
	return act, nil
}

// termination is one run that ends sandboxes by name.
type termination struct {
	env     *ops.Env
	req     TerminateRequest
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
		Destructive: true, Typed: append([]string{}, t.req.Typed...), Full: !t.req.Shown && (t.req.Yes || t.req.Unattended),
	})
	t.addTargets(found)
	if cause := ops.EndCause(ctx, err); cause != nil {
		return cause
	}
	if fault.KindOf(err) == fault.KindUsage && len(found) == 0 {
		return err
	}
	if err != nil && len(words) == 1 {
		_, err = t.env.WhoEnded(ctx, words[0], err)
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

// runGuards are the limits of this run. What a person could still allow by an answer is not
// ok before that.
func (t *termination) runGuards() []safety.Guard {
	out := []safety.Guard{safety.UnaskedGuard(len(t.targets), t.req.Yes, t.countsByProfile())}
	for _, name := range t.targetProfiles() {
		chosen := t.choicesOf(name)
		if t.limits.IsProduction(name) {
			out = append(out, t.limits.ProductionGuard(name, safety.Unnamed(chosen), safety.Ending()))
		}
		if skew, _ := t.fleet.Skew(name); skew != 0 && slices.Contains(chosen, safety.ByRule) {
			g := safety.ClockGuard(name, skew)
			g.Advice += ", or name each by hand"
			out = append(out, g)
		}
	}
	return out
}

// targetProfiles names those of the targets, in the order of their names.
func (t *termination) targetProfiles() []string {
	var names []string
	for _, s := range t.targets {
		names = append(names, s.Provider)
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

func (t *termination) choicesOf(profile string) []safety.Choice {
	var chosen []safety.Choice
	for _, s := range t.targets {
		if s.Provider == profile {
			chosen = append(chosen, t.choiceOf(s.Ref()))
		}
	}
	return chosen
}

// countsByProfile counts the targets: "local 2, prod 5".
func (t *termination) countsByProfile() string {
	names := t.targetProfiles()
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, len(t.choicesOf(name)))
	}
	return strings.Join(names, ", ")
}

// ask makes questions of what people can answer, and refuses the whole run where a guard still says no.
func (t *termination) ask(act *ops.Act) {
	least, counted, names := safety.AskNothing, 0, []string{}
	guards := map[string]safety.Guard{} // by their answers
	for _, g := range act.Guards {
		switch {
		case g.OK:
			continue
		case g.Answer == "":
			act.Refused = cmp.Or(act.Refused, t.guardRefusal(g))
		case t.limits.IsProduction(g.Answer):
			names = append(names, g.Answer)
		default:
			counted = len(t.targets)
		}
		guards[g.Answer] = g
	}
	if t.begun > 0 {
		least = safety.AskYes
	}
	for _, word := range safety.Answers(least, counted, names) {
		question := ops.AskEnd(word, "")
		if g, is := guards[word]; is {
			question.Objection, question.Refusal = g.Objection, t.guardRefusal(g)
		}
		act.Asks = append(act.Asks, question)
	}
}

func (t *termination) guardRefusal(g safety.Guard) error {
	hint := g.Advice
	if flag := g.OverrideFlag(); flag != "" {
		hint = "to do it: " + safety.RetryLine(t.req.Line, []string{flag})
	}
	return fault.New(fault.KindRefused, "%s", g.Objection).WithHint("%s", hint)
}

// carry ends at most what was allowed: the sandboxes that were found, not what their words mean by now.
func (t *termination) carry(ctx context.Context, watch ops.Observer, allowed ops.Allowed) (result ops.ActResult) {
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
		Delete: t.req.Delete, Grace: t.req.Grace, Patient: t.req.Patient, Wait: t.req.Wait, By: t.env.ActsAs(runs.VerbTerminate),
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

// rehearse asks providers that can say it which ends they would refuse. A rehearsal is a request to end with a flag,
// so that --read-only sends none.
func (t *termination) rehearse(ctx context.Context, act *ops.Act) {
	if t.refused != nil || len(act.Targets) == 0 || t.env.MayChange() != nil {
		return
	}
	targets := make([]sandbox.Sandbox, len(act.Targets))
	for i, one := range act.Targets {
		targets[i] = one.Sandbox
	}
	t.refused = t.fleet.Rehearse(ctx, targets, fleet.EndOptions{Delete: t.req.Delete, Grace: t.req.Grace, Patient: t.req.Patient})
	act.Targets, act.Kept = t.plannedEnds()
}

// plannedEnds sorts the targets by what would become of them.
func (t *termination) plannedEnds() (selected, kept []ops.PlannedEnd) {
	selected, kept = []ops.PlannedEnd{}, []ops.PlannedEnd{}
	for _, s := range t.targets {
		why := t.protectionReason(s)
		switch {
		case why != "":
		case t.isAnother(s):
			why = anotherHere
		case s.State == "":
			why = "it is gone already"
		case s.State.Ended() && !t.req.Delete:
			why = "it has ended already"
		case s.State == sandbox.StateStopped && !t.req.Delete:
			why = "needs_delete: it is stopped; only --delete removes it"
		case t.refused[s.Ref()] != "":
			why = t.refused[s.Ref()]
		default:
			selected = append(selected, ops.PlannedEnd{Ref: s.Ref(), Reason: t.planReason(s), Sandbox: s})
			continue
		}
		kept = append(kept, ops.PlannedEnd{Ref: s.Ref(), Reason: why, Sandbox: s})
	}
	return selected, kept
}

// planReason is why a sandbox is in the plan, and what its end leaves open.
func (t *termination) planReason(s sandbox.Sandbox) string {
	reason := t.reason() + "; " + string(s.State)
	if s.EndNote != "" && !t.req.Delete {
		reason += "; " + s.EndNote
	}
	return reason
}

// planVerdict is about what could not be found: a plan that a guard would refuse is a
// good plan.
func (t *termination) planVerdict() error {
	seen := make([]sandbox.Ending, len(t.targets))
	for i, s := range t.targets {
		seen[i] = sandbox.Ending{Ref: s.Ref(), Outcome: sandbox.OutcomeVerified}
	}
	return t.endingsVerdict(seen)
}
