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
	Planned    []ops.PlannedEnd // what was confirmed before: a sandbox that was recreated since stays
	Line       []string         // the command line that was typed, quoted for a shell; for hints that repeat it
	Grace      time.Duration
	Wait       time.Duration // how long an end is looked for; 0 = fleet.DefaultWait
}

// TerminateResult is what became of an end by name.
type TerminateResult struct {
	RunID   string
	Endings []sandbox.Ending
	Refused error // why nothing was ended; nil = it was tried
	Verdict error // of the endings, and of words that named nothing
	Took    time.Duration
}

// Terminate ends the sandboxes that words name: each is read again just before, asked once,
// and looked at until its end is seen. Items are of types RunStarted, error (a word that
// named nothing) and sandbox.Ending. An error is a wrong use: nothing was called, or no word
// can be a reference.
func Terminate(ctx context.Context, env *ops.Env, req TerminateRequest, watch ops.Observer) (*TerminateResult, error) {
	if err := env.MayChange(); err != nil {
		return nil, err
	}
	t := newTermination(env, req, watch)
	err := t.findTargets(ctx)
	if fault.KindOf(err) == fault.KindUsage {
		return nil, err
	}
	if err == nil {
		err = t.confirmOrRefuse(ctx)
	}
	watch.Item(ops.RunStarted{RunID: t.id})
	if err != nil {
		return &TerminateResult{RunID: t.id, Refused: ops.CauseOr(ctx, err)}, nil
	}
	for _, err := range t.lost {
		watch.Item(err)
	}
	began := time.Now()
	endings := t.endTargets(ctx)
	took := time.Since(began)
	recordEnds(ctx, env, watch, t.fleet, endings)
	return &TerminateResult{RunID: t.id, Endings: endings, Verdict: t.endingsVerdict(endings), Took: took}, nil
}

// TerminatePlan is what Terminate would do.
type TerminatePlan struct {
	RunID          string
	At             time.Time
	Selected, Kept []ops.PlannedEnd
	Guards         []safety.Guard
	Errors         []error // words that named nothing, and what else failed
	Verdict        error
}

// PlanTerminate says what Terminate would do, and does nothing. An error is a wrong use.
func PlanTerminate(ctx context.Context, env *ops.Env, req TerminateRequest, watch ops.Observer) (*TerminatePlan, error) {
	t := newTermination(env, req, watch)
	t.planning = true
	failed := t.findTargets(ctx)
	if fault.KindOf(failed) == fault.KindUsage {
		return nil, failed
	}
	p := &TerminatePlan{RunID: t.id, At: t.env.Now(), Guards: []safety.Guard{}, Errors: append(t.lost, failed), Verdict: failed}
	p.Selected, p.Kept = t.rehearsedEnds(ctx)
	if failed == nil {
		p.Guards = t.runGuards()
		p.Verdict = t.planVerdict()
	}
	return p, nil
}

// termination is one run that ends sandboxes by name.
type termination struct {
	env      *ops.Env
	req      TerminateRequest
	watch    ops.Observer
	id       string
	config   *config.Config
	fleet    *fleet.Fleet
	limits   safety.Limits
	targets  []sandbox.Sandbox
	held     *ops.Leases // by tasks
	planning bool        // nothing is done, so a plan may have any size
	lost     []error     // words that were not found, each with its kind

	chosen     map[sandbox.Ref]safety.Choice // how each target was named; none = by a pipe
	unreadable map[sandbox.Ref]bool          // targets of which nothing could be read
	begun      int                           // targets that were named by the beginning of their id
	made       map[sandbox.Ref]time.Time     // when each target was created, as it was confirmed or found
	refused    map[sandbox.Ref]string        // by its provider, in the rehearsal of a plan; nil = there was none
}

func newTermination(env *ops.Env, req TerminateRequest, watch ops.Observer) *termination {
	return &termination{env: env, req: req, watch: watch, id: env.RunID()}
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
	found, err := t.fleet.FindEach(ctx, words, fleet.FindOptions{Destructive: true, Typed: append([]string{}, t.req.Typed...), Full: !t.planning && (t.req.Yes || !t.watch.Attended())})
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
	if t.planning || t.req.Yes || n <= safety.MaxUnasked || t.watch.Attended() {
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

// confirmOrRefuse asks what people can answer, and refuses the whole run where a guard still says
// no.
func (t *termination) confirmOrRefuse(ctx context.Context) error {
	shown := false // what the words mean
	for _, g := range t.runGuards() {
		if g.OK {
			continue
		}
		hint := g.Advice
		if flag := g.OverrideFlag(); flag != "" {
			hint = "to do it: " + safety.RetryLine(t.req.Line, []string{flag})
		}
		refusal := fault.New(fault.KindRefused, "%s", g.Objection).WithHint("%s", hint)
		if g.Answer == "" {
			return refusal
		}
		question := ops.AskEnd(g.Answer, "")
		question.Targets, _ = t.rehearsedEnds(ctx)
		question.Objection = g.Objection
		allowed, err := t.watch.Confirm(ctx, question)
		if err != nil {
			return err
		}
		if !allowed {
			return refusal
		}
		shown = true
	}
	if t.begun == 0 || shown {
		return nil
	}
	targets, _ := t.rehearsedEnds(ctx)
	return ops.ConfirmBegun(ctx, t.watch, ops.Question{Prompt: "terminate them", Targets: targets})
}

func (t *termination) endTargets(ctx context.Context) []sandbox.Ending {
	progress := t.watch.Progress("ending sandboxes")
	defer progress.Done()
	how := fleet.EndOptions{
		Delete: t.req.Delete, Grace: t.req.Grace, Patient: t.req.Patient, Wait: t.req.Wait, By: t.env.ActsAs(runs.VerbTerminate),
		Recheck: fleet.Recheck{Judge: t.judgeIdentity, AllowUnreadable: func(s sandbox.Sandbox) bool { return t.unreadable[s.Ref()] }},
	}
	var endings []sandbox.Ending
	options := safety.Options{
		Verb: safety.VerbTerminate, How: how, Protected: t.protectionReason, Choice: t.choiceOf,
		Open: t.env.EndsOpener(t.watch, runs.Origin{ID: t.id, Verb: runs.VerbTerminate, Reason: t.reason()}),
	}
	for e := range safety.End(ctx, t.fleet, t.targets, options) {
		endings = append(endings, e)
		progress.Update(ops.PartText(len(endings), len(t.targets)))
		t.watch.Item(e)
	}
	return endings
}

// judgeIdentity keeps a sandbox that has the id of the one that was named or confirmed, and one that was shown as
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

// rehearsedEnds is plannedEnds for a plan that is shown: providers that can say which ends they would refuse.
// A rehearsal is a request to end with a flag, so that --read-only sends none.
func (t *termination) rehearsedEnds(ctx context.Context) (selected, kept []ops.PlannedEnd) {
	selected, kept = t.plannedEnds()
	if t.refused != nil || len(selected) == 0 || t.env.MayChange() != nil {
		return selected, kept
	}
	targets := make([]sandbox.Sandbox, len(selected))
	for i, one := range selected {
		targets[i] = one.Sandbox
	}
	t.refused = t.fleet.Rehearse(ctx, targets, fleet.EndOptions{Delete: t.req.Delete, Grace: t.req.Grace, Patient: t.req.Patient})
	return t.plannedEnds()
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
