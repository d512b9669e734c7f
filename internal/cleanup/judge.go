package cleanup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/triage"
)

// Judgement is a rule's decision about one sandbox.
type Judgement struct {
	Sandbox    sandbox.Sandbox
	KeepReason KeepReason // KeepNone = it is selected
	Reason     string     // one line
	Steps      []Step     // all checks in order; the last one decided
	Evidence   []sandbox.Evidence
	// Verdict is triage's judgement of the sandbox, by what this run knows; zero where the
	// rule decided before it was needed.
	Verdict triage.Verdict

	needsLook   bool               // undecided: the record alone does not decide, and the sandbox was not observed
	owned       string             // the rule by which the profile owns it; "" = none
	observation *fleet.Observation // of a selected sandbox itself; nil = it was not observed
	failed      error              // why a source of the observation failed; nil = none did
	answers     sandbox.Verdict    // whether anything inside answered the observation; "" = nothing was asked
}

// Step is one check of a judgement.
type Step struct {
	Check  string `json:"check"`  // What is checked.
	Says   string `json:"says"`   // "goes on", or the reason word.
	Reason string `json:"reason"` // The compared values.
}

// Selected reports whether the rule would end the sandbox.
func (j Judgement) Selected() bool { return j.KeepReason == KeepNone && !j.needsLook }

// passCheck notes that a check does not keep the sandbox; the next check follows.
func (j *Judgement) passCheck(check, reason string) bool {
	j.Steps = append(j.Steps, Step{check, "goes on", reason})
	return true
}

// keepFor notes that a check keeps the sandbox, which ends the judgement.
func (j *Judgement) keepFor(check string, why KeepReason, reason string) bool {
	j.Steps = append(j.Steps, Step{check, string(why), reason})
	j.KeepReason, j.Reason = why, reason
	return false
}

// judgeSandbox applies the rule to one sandbox: the first check that keeps it decides. Without an
// observation only the record counts, and a judgement that needs more is undecided.
func (r Rule) judgeSandbox(w Environment, s sandbox.Sandbox, now time.Time, seen *fleet.Observation) Judgement {
	s = w.withKnownAge(s)
	j := Judgement{Sandbox: s, observation: seen}
	if seen != nil {
		j.Sandbox, j.failed, j.answers = w.withKnownAge(seen.Sandbox), seen.FailedErr(), seen.Answers()
	}
	c := &judgementRun{rule: r, world: w, now: now, seen: seen, limits: w.Thresholds(s), j: &j}
	c.limits.Inactivity = cmp.Or(r.IdleFor, c.limits.Inactivity)
	j.Verdict = triage.Judge(j.Sandbox, c.activitySignals(), c.limits, now)
	for _, passes := range []func() bool{
		c.checkProtection, // first: it overrides everything
		c.checkState, c.checkOwner, c.checkSelectors, c.checkTimeSinceEnd, c.checkAgeLimit, c.checkActivity, c.checkHealth,
		c.checkUnownedLast,
	} {
		if !passes() {
			return j
		}
	}
	if !j.needsLook {
		j.Reason = j.joinedReasons()
	}
	return j
}

// joinedReasons joins the reasons of the selectors and of the activity check.
func (j Judgement) joinedReasons() string {
	var parts []string
	for _, s := range j.Steps {
		if (s.Check == "selectors" || s.Check == "life" || s.Check == "health") && s.Reason != "" {
			parts = append(parts, s.Reason)
		}
	}
	if len(parts) == 0 {
		return string(j.Sandbox.State)
	}
	return strings.Join(parts, "; ")
}

// judgementRun is one judgement in progress. Each check returns true to go on to the next one, false where it keeps the
// sandbox.
type judgementRun struct {
	rule   Rule
	world  Environment
	now    time.Time
	seen   *fleet.Observation
	limits triage.Thresholds
	j      *Judgement

	unowned bool // no owner, and ownership is not configured for its profile
}

func (c *judgementRun) checkProtection() bool {
	if why := c.world.Protected(c.j.Sandbox); why != "" {
		return c.j.keepFor("protection", KeepProtected, why)
	}
	return c.j.passCheck("protection", "not protected")
}

// checkState keeps a sandbox whose end would change nothing, or destroy more than was asked
// for.
func (c *judgementRun) checkState() bool {
	s := c.j.Sandbox.State
	word, reason := KeepNone, ""
	switch {
	case s == sandbox.StateFailed && c.rule.IncludeFailed && c.world.canEndFailed(c.j.Sandbox.Provider): // passes
	case s == sandbox.StateFailed && c.rule.IncludeFailed && !c.rule.Delete:
		word, reason = KeepNeedsDelete, "failed: only --delete removes it, with all that is left of it"
	case s == sandbox.StateFailed && !c.rule.Delete && c.world.canEndFailed(c.j.Sandbox.Provider):
		word, reason = KeepEnded, "failed, and still at its provider: --include-failed selects it too"
	case s.Ended() && !c.rule.Delete:
		word, reason = KeepEnded, "it has ended: "+string(s)
	case s == sandbox.StateTerminating:
		word, reason = KeepEnding, "an end was already requested"
		if c.j.Verdict.Stuck == sandbox.True {
			reason += ", and it is " + c.j.Verdict.Reason + "; `sbx terminate " + c.j.Sandbox.Ref().String() + "` requests it again"
		}
	case s == sandbox.StatePaused && !c.rule.IncludePaused:
		word, reason = KeepPaused, "paused: --include-paused selects it too"
	case s == sandbox.StatePaused && !c.rule.Delete:
		word, reason = KeepNeedsDelete, "paused: only --delete removes it, with its snapshot"
	case s == sandbox.StateStopped && !c.rule.Delete:
		word, reason = KeepNeedsDelete, "stopped: only --delete removes it"
	case s == sandbox.StateUnknown, s == "":
		word, reason = KeepStateUnknown, fmt.Sprintf("its state is unknown: the provider says %q", c.j.Sandbox.RawState)
	}
	if word != KeepNone {
		return c.j.keepFor("state", word, reason)
	}
	return c.j.passCheck("state", string(s))
}

func (c *judgementRun) checkOwner() bool {
	p := c.world.profileNamed(c.j.Sandbox.Provider)
	switch {
	case p.ownsSandbox(c.j.Sandbox.Labels):
		c.j.owned = p.OwnedRule
		c.j.passCheck("owner", "owned")
	case c.rule.Unowned:
		c.j.passCheck("owner", "not owned, and --unowned was given")
	case p.OwnerUnset:
		c.unowned = true
	default:
		return c.j.keepFor("owner", KeepNotOwned, "not owned: it lacks "+p.OwnedRule+"; report only")
	}
	return true
}

// checkUnownedLast keeps what has no owner because ownership is not configured. It comes after the
// other checks, so that the count of KeepNotOwned is how many would end if it were configured.
func (c *judgementRun) checkUnownedLast() bool {
	if !c.unowned || c.j.needsLook {
		return true
	}
	return c.j.keepFor("owner", KeepNotOwned, "it has no owner: it lacks "+c.world.profileNamed(c.j.Sandbox.Provider).OwnedRule+"; the rule would terminate it")
}

// checkSelectors keeps what a selector does not match, or cannot judge.
func (c *judgementRun) checkSelectors() bool {
	s, applies := c.rule.selectorFor(c.j.Sandbox.State)
	if !applies {
		return c.j.keepFor("selectors", KeepNotSelected, "state "+string(c.j.Sandbox.State)+", not failed")
	}
	m := s.Judge(c.j.Sandbox, selector.Facts{Now: c.now, Judged: func(sandbox.Sandbox) (triage.Verdict, *selector.Figures) {
		return c.j.Verdict, c.usageFigures()
	}})
	switch {
	case m.Verdict == sandbox.True:
		return c.j.passCheck("selectors", m.Reason)
	case m.Verdict == sandbox.Unknown:
		return c.passIfLookDecides(s, m)
	case m.Filter == "stuck": // the verdict contains the reason: "not stuck: not older than 10m"
		return c.j.keepFor("selectors", KeepNotSelected, m.Reason)
	}
	return c.j.keepFor("selectors", KeepNotSelected, m.Filter+": "+m.Reason)
}

// passIfLookDecides keeps a sandbox of which a selector is unknown, unless a look at it has yet to decide that.
func (c *judgementRun) passIfLookDecides(s selector.Selector, m selector.Match) bool {
	lookDecides := m.Filter == "stuck" || m.Filter == selector.FilterWhere && s.Where.NeedsLook()
	switch {
	case c.seen == nil && c.j.Sandbox.State == sandbox.StateRunning && lookDecides:
		c.j.needsLook = true
		return true
	case slices.Contains([]string{"older-than", "younger-than", "before", "after"}, m.Filter):
		return c.j.keepFor("selectors", KeepAgeUnknown, m.Reason)
	case m.Filter == "stuck":
		c.j.Evidence = c.j.Verdict.Evidence
		return c.j.keepFor("selectors", KeepActivityUnknown, c.unknownActivity())
	}
	return c.j.keepFor("selectors", KeepUnknown, m.Reason)
}

// usageFigures are what the observation told of its usage, for a condition; nil = nobody looked.
func (c *judgementRun) usageFigures() *selector.Figures {
	if c.seen == nil || c.rule.Selector.Where.IsZero() {
		return nil
	}
	return c.seen.Figures(c.limits)
}

// atRest says that a sandbox neither runs nor begins to.
func atRest(s sandbox.Sandbox) bool {
	return s.State != sandbox.StateRunning && s.State != sandbox.StateProvisioning
}

// checkTimeSinceEnd counts the age of a sandbox that no longer runs from its end, or its last use, where that is known:
// its disk and its output stay until somebody could have read them. A rule without an age applies the inactivity
// limit of a running one.
func (c *judgementRun) checkTimeSinceEnd() bool {
	s := c.j.Sandbox
	if !atRest(s) || c.rule.IgnoreActivity {
		return true
	}
	last, what := s.EndedAt, "ended"
	if s.LastActivityAt.After(last) {
		last, what = s.LastActivityAt, "last used"
	}
	if last.IsZero() {
		return true
	}
	chosen, _ := c.rule.selectorFor(s.State)
	limit, rest := cmp.Or(chosen.OlderThan, c.limits.Inactivity), max(0, s.Clock(c.now).Sub(last))
	reason := fmt.Sprintf("%s %s ago", what, sandbox.FormatDuration(rest))
	switch {
	case rest <= limit:
		return c.j.keepFor("rest", KeepNotSelected, reason+", not over "+sandbox.FormatDuration(limit))
	case !chosen.Before.IsZero() && !last.Before(chosen.Before):
		return c.j.keepFor("rest", KeepNotSelected, reason+", not before "+chosen.Before.UTC().Format(time.RFC3339))
	}
	return c.j.passCheck("rest", reason+", over "+sandbox.FormatDuration(limit))
}

func (c *judgementRun) activitySignals() triage.Signals {
	if c.seen == nil {
		return triage.Signals{}
	}
	return c.seen.Signals(c.limits)
}

// checkAgeLimit keeps agent types that may run longer than the given age: a healthy run may
// last 1,397 s (S2-26).
func (c *judgementRun) checkAgeLimit() bool {
	limit := c.limits.StuckAge
	s := c.j.Sandbox
	if s.State != sandbox.StateRunning || limit <= triage.DefaultThresholds().StuckAge {
		return true
	}
	if age, _ := s.Age(c.now); age <= limit {
		return c.j.keepFor(
			"age limit", KeepAgeLimit, fmt.Sprintf("age %s not over %s, its limit in stuck_after", sandbox.FormatDuration(age), sandbox.FormatDuration(limit)),
		)
	}
	return c.j.passCheck("age limit", "over "+sandbox.FormatDuration(limit))
}

// checkActivity keeps an active sandbox. A record that shows activity is enough to keep it;
// to end a running sandbox it must have been observed.
func (c *judgementRun) checkActivity() bool {
	s := c.j.Sandbox
	switch {
	case s.State != sandbox.StateRunning:
		return true
	case c.rule.IgnoreActivity && c.j.Verdict.Activity == sandbox.True:
		return c.j.passCheck("life", "it is active"+c.j.Verdict.Signs+", and --ignore-activity ends it all the same")
	case c.rule.IgnoreActivity:
		return c.j.passCheck("life", "")
	}
	v := c.j.Verdict
	c.j.Evidence = v.Evidence
	switch {
	case v.Activity != sandbox.True && c.activeInFuture(s):
		c.j.needsLook = false
		return c.j.keepFor("life", KeepAlive, "it is active: its last activity is newer than this check, or its clock is slightly ahead")
	case v.Activity == sandbox.True:
		c.j.needsLook = false
		return c.j.keepFor("life", KeepAlive, "it is active"+v.Signs)
	case c.seen == nil:
		c.j.needsLook = true
	case v.Activity == sandbox.False:
		c.j.passCheck("life", c.withoutRepeat("no activity: "+v.Signs))
	case c.limits.AgeOnly && c.seen.FailedErr() == nil:
		c.j.passCheck("life", c.withoutRepeat("judged by age only, as the profile is configured"))
	default:
		return c.j.keepFor("life", KeepActivityUnknown, c.unknownActivity())
	}
	return true
}

// withoutRepeat drops a reason that the stuck selector has already given.
func (c *judgementRun) withoutRepeat(reason string) string {
	if c.rule.Selector.Stuck {
		return ""
	}
	return reason
}

// unknownActivity explains why the activity of a sandbox is unknown.
func (c *judgementRun) unknownActivity() string {
	if c.j.failed != nil {
		return c.j.Verdict.Reason + ": " + c.j.failed.Error()
	}
	return c.j.Verdict.Reason
}

// activeInFuture reports that the last activity lies in the future, within the error of a
// clock or the time of an observation: such a sandbox is active, and no age-only rule may
// treat that as unknown.
func (c *judgementRun) activeInFuture(s sandbox.Sandbox) bool {
	last := s.LastActivityAt
	if sig := c.activitySignals(); sig.Logs != nil && sig.Logs.Last.After(last) {
		last = sig.Logs.Last
	}
	now := s.Clock(c.now)
	return last.After(now) && last.Sub(now) <= safety.MaxSkew
}

// checkHealth keeps healthy sandboxes where only unhealthy ones were asked for.
func (c *judgementRun) checkHealth() bool {
	switch {
	case !c.rule.Unhealthy:
		return true
	case c.seen == nil:
		c.j.needsLook = true
		return true
	case c.seen.Health.Err != nil:
		return c.j.keepFor("health", KeepNotBroken, "unknown whether it responds: "+c.seen.Health.Err.Error())
	case c.seen.Health.Got.Condition == providers.ConditionBroken:
		return c.j.passCheck("health", "listed as "+string(c.j.Sandbox.State)+", and it does not respond")
	}
	return c.j.keepFor("health", KeepNotBroken, "it is "+string(c.seen.Health.Got.Condition)+", not broken")
}
