package cleanup

import (
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

// Ground is why a sandbox stays, in one word.
type Ground string

// The closed list of grounds. GroundNone stands for what goes.
const (
	GroundNone            Ground = ""
	GroundProtected       Ground = "protected"        // by label or configuration
	GroundNotSelected     Ground = "not_selected"     // a selector says no
	GroundAgeUnknown      Ground = "age_unknown"      // no age, or one in the future
	GroundUnknown         Ground = "unknown"          // a selector cannot be judged
	GroundAgeLimit        Ground = "age_limit"        // its agent type may grow older
	GroundNotOwned        Ground = "not_owned"        // somebody else's
	GroundEnded           Ground = "ended"            // over already
	GroundEnding          Ground = "ending"           // asked to end already
	GroundPaused          Ground = "paused"           // its state would be lost
	GroundNeedsDelete     Ground = "needs_delete"     // only --delete goes further
	GroundStateUnknown    Ground = "state_unknown"    // the provider's word for its state is not known
	GroundAlive           Ground = "alive"            // it shows life
	GroundActivityUnknown Ground = "activity_unknown" // nothing tells whether it works
	GroundAnswers         Ground = "answers"          // it is healthy, or nobody can tell
	GroundNoticed         Ground = "noticed"          // it goes later, if it still fits then
)

// Grounds lists why a sandbox may stay.
func Grounds() []Ground {
	return []Ground{
		GroundProtected, GroundNotSelected, GroundAgeUnknown, GroundUnknown, GroundAgeLimit, GroundNotOwned, GroundEnded, GroundEnding, GroundPaused,
		GroundNeedsDelete, GroundStateUnknown, GroundAlive, GroundActivityUnknown, GroundAnswers, GroundNoticed,
	}
}

// Judgement is what a rule makes of one sandbox.
type Judgement struct {
	Sandbox  sandbox.Sandbox
	Ground   Ground // GroundNone = it is selected
	Reason   string // one line
	Trail    []Step // each check that was made, in order; the last one decided
	Evidence []sandbox.Evidence
	// Verdict is the one judgement of how the sandbox fares, by what this run knows of
	// it; the zero value where the rule decided before it was asked for.
	Verdict triage.Verdict

	needsLook bool               // the record alone does not decide
	owned     string             // by which rule it is ours; "" = by none
	seen      *fleet.Observation // what was asked of the sandbox itself; nil = nothing
}

// Step is one check of a judgement.
type Step struct {
	Check  string `json:"check"`
	Says   string `json:"says"`   // "goes on" or the ground
	Reason string `json:"reason"` // what was compared
}

// Selected says that the sandbox goes.
func (j Judgement) Selected() bool { return j.Ground == GroundNone && !j.needsLook }

func (j *Judgement) pass(check, reason string) {
	j.Trail = append(j.Trail, Step{check, "goes on", reason})
}

func (j *Judgement) keep(check string, g Ground, reason string) {
	j.Trail = append(j.Trail, Step{check, string(g), reason})
	j.Ground, j.Reason = g, reason
}

// judge holds one sandbox against the rule. Without seen, only the record speaks,
// and a judgement that needs more says so; protection wins over everything.
func (r Rule) judge(w World, s sandbox.Sandbox, now time.Time, seen *fleet.Observation) Judgement {
	s = w.aged(s)
	j := Judgement{Sandbox: s, seen: seen}
	if seen != nil {
		j.Sandbox = w.aged(seen.Sandbox)
	}
	c := &judging{rule: r, world: w, now: now, seen: seen, limits: w.Thresholds(s), j: &j}
	c.limits.Inactivity = r.idleFor()
	j.Verdict = triage.Judge(j.Sandbox, c.signals(), c.limits, now)
	for _, check := range []func() bool{c.protection, c.state, c.owner, c.selectors, c.ageLimit, c.life, c.health, c.decided, c.notice} {
		if !check() {
			return j
		}
	}
	if !j.needsLook {
		j.Reason = j.why()
	}
	return j
}

func (r Rule) idleFor() time.Duration {
	if r.IdleFor > 0 {
		return r.IdleFor
	}
	return DefaultIdleFor
}

// why joins what the selectors and the look for life saw.
func (j Judgement) why() string {
	var parts []string
	for _, s := range j.Trail {
		if (s.Check == "selectors" || s.Check == "life" || s.Check == "health") && s.Reason != "" {
			parts = append(parts, s.Reason)
		}
	}
	if len(parts) == 0 {
		return string(j.Sandbox.State)
	}
	return strings.Join(parts, "; ")
}

// judging is one judgement under way. Each check says whether to go on.
type judging struct {
	rule   Rule
	world  World
	now    time.Time
	seen   *fleet.Observation
	limits triage.Thresholds
	j      *Judgement

	unowned bool // nobody owns it, and nobody has decided about its profile
}

func (c *judging) protection() bool {
	if why := c.world.Protected(c.j.Sandbox); why != "" {
		c.j.keep("protection", GroundProtected, why)
		return false
	}
	c.j.pass("protection", "not protected")
	return true
}

// state keeps what an end would not change, or would cost more than was asked for.
func (c *judging) state() bool {
	s := c.j.Sandbox.State
	ground, reason := GroundNone, ""
	switch {
	case s == sandbox.StateFailed && c.rule.IncludeFailed && c.world.ends(c.j.Sandbox.Provider):
	case s == sandbox.StateFailed && c.rule.IncludeFailed && !c.rule.Delete:
		ground, reason = GroundNeedsDelete, "failed: only --delete goes further, and what is left of it dies with it"
	case s.Ended() && !c.rule.Delete:
		ground, reason = GroundEnded, "it has ended: "+string(s)
	case s == sandbox.StateTerminating:
		ground, reason = GroundEnding, "it was asked to end already"
	case s == sandbox.StatePaused && !c.rule.IncludePaused:
		ground, reason = GroundPaused, "paused: --include-paused takes it too"
	case s == sandbox.StatePaused && !c.rule.Delete:
		ground, reason = GroundNeedsDelete, "paused: only --delete goes further, and its snapshot dies with it"
	case s == sandbox.StateStopped && !c.rule.Delete:
		ground, reason = GroundNeedsDelete, "stopped: only --delete goes further"
	case s == sandbox.StateUnknown, s == "":
		ground, reason = GroundStateUnknown, fmt.Sprintf("its state is not known: the provider says %q", c.j.Sandbox.RawState)
	}
	if ground != GroundNone {
		c.j.keep("state", ground, reason)
		return false
	}
	c.j.pass("state", string(s))
	return true
}

func (c *judging) owner() bool {
	p := c.world.profile(c.j.Sandbox.Provider)
	switch {
	case p.owns(c.j.Sandbox.Labels):
		c.j.owned = p.OwnedRule
		c.j.pass("owner", "owned")
	case c.rule.Unowned:
		c.j.pass("owner", "not owned, and --unowned was given")
	case p.Undecided:
		c.unowned = true
	default:
		c.j.keep("owner", GroundNotOwned, "not owned: it lacks "+p.OwnedRule+"; report only")
		return false
	}
	return true
}

// decided keeps what the rule would end if somebody owned it. It is judged to here, so
// that the count of GroundNotOwned is what a decision would change.
func (c *judging) decided() bool {
	if !c.unowned || c.j.needsLook {
		return true
	}
	c.j.keep("owner", GroundNotOwned, "nobody owns it: it lacks "+c.world.profile(c.j.Sandbox.Provider).OwnedRule+"; the rule would end it")
	return false
}

func (c *judging) selectors() bool {
	s, applies := c.rule.selector(c.j.Sandbox.State)
	if !applies {
		c.j.keep("selectors", GroundNotSelected, "state "+string(c.j.Sandbox.State)+", not failed")
		return false
	}
	m := s.Judge(c.j.Sandbox, selector.Facts{Now: c.now, Stuck: c.stuck})
	switch {
	case m.Verdict == sandbox.True:
		c.j.pass("selectors", m.Reason)
		return true
	case m.Verdict == sandbox.Unknown && m.Filter == "stuck" && c.seen == nil && c.j.Sandbox.State == sandbox.StateRunning:
		c.j.needsLook = true
		return true
	case m.Verdict == sandbox.Unknown && slices.Contains([]string{"older-than", "younger-than", "before", "after"}, m.Filter):
		c.j.keep("selectors", GroundAgeUnknown, m.Reason)
	case m.Verdict == sandbox.Unknown && m.Filter == "stuck":
		c.j.Evidence = c.j.Verdict.Evidence
		c.j.keep("selectors", GroundActivityUnknown, c.unjudged())
	case m.Verdict == sandbox.Unknown:
		c.j.keep("selectors", GroundUnknown, m.Reason)
	case m.Filter == "stuck": // the judgement says it whole: "not stuck: not older than 10m"
		c.j.keep("selectors", GroundNotSelected, m.Reason)
	default:
		c.j.keep("selectors", GroundNotSelected, m.Filter+": "+m.Reason)
	}
	return false
}

// stuck is the stuck rule, by what was seen so far.
func (c *judging) stuck(sandbox.Sandbox) (sandbox.Verdict, string) {
	return c.j.Verdict.Stuck, c.j.Verdict.Reason
}

func (c *judging) signals() triage.Signals {
	if c.seen == nil {
		return triage.Signals{}
	}
	return c.seen.Signals(c.limits)
}

// ageLimit lets an agent type that may run longer do so, whatever age was asked
// for: a healthy run may last 1,397 s (ACCEPTANCE S2-26).
func (c *judging) ageLimit() bool {
	limit := c.limits.StuckAge
	s := c.j.Sandbox
	if s.State != sandbox.StateRunning || limit <= triage.DefaultThresholds().StuckAge {
		return true
	}
	if age, _ := s.Age(c.now); age <= limit {
		c.j.keep("age limit", GroundAgeLimit, fmt.Sprintf("age %s not over %s, which stuck_after grants it", sandbox.FormatDuration(age), sandbox.FormatDuration(limit)))
		return false
	}
	c.j.pass("age limit", "over "+sandbox.FormatDuration(limit))
	return true
}

// life keeps what is at work. A record that shows life is enough to stay; to go, a
// running sandbox must have been looked at.
func (c *judging) life() bool {
	s := c.j.Sandbox
	switch {
	case s.State != sandbox.StateRunning:
		return true
	case c.rule.IgnoreActivity:
		c.j.pass("life", "")
		return true
	}
	v := c.j.Verdict
	c.j.Evidence = v.Evidence
	switch {
	case v.Activity != sandbox.True && c.ahead(s):
		c.j.needsLook = false
		c.j.keep("life", GroundAlive, "it shows life: its last sign of it is younger than this look, or its clock is a little ahead")
		return false
	case v.Activity == sandbox.True:
		c.j.needsLook = false
		c.j.keep("life", GroundAlive, "it shows life"+v.Signs)
		return false
	case c.seen == nil:
		c.j.needsLook = true
	case v.Activity == sandbox.False:
		c.j.pass("life", c.unlessSelected("no sign of life: "+v.Signs))
	case c.limits.AgeOnly && c.seen.FailedErr() == nil:
		c.j.pass("life", c.unlessSelected("judged by age alone, as the profile says"))
	default:
		c.j.keep("life", GroundActivityUnknown, c.unjudged())
		return false
	}
	return true
}

// unlessSelected is a reason that a selection by the stuck rule has given already.
func (c *judging) unlessSelected(reason string) string {
	if c.rule.Selector.Stuck {
		return ""
	}
	return reason
}

// unjudged says why nothing is known of a sandbox's work, with what was seen of it.
func (c *judging) unjudged() string {
	if c.seen != nil && c.seen.FailedErr() != nil {
		return c.j.Verdict.Reason + ": " + c.seen.FailedErr().Error()
	}
	return c.j.Verdict.Reason
}

// ahead says that the last sign of life lies in the future, as far as a clock may be
// off or a look takes: what worked a moment ago is at work, and no age-only rule
// may call that unknown.
func (c *judging) ahead(s sandbox.Sandbox) bool {
	last := s.LastActivityAt
	if sig := c.signals(); sig.Logs != nil && sig.Logs.Last.After(last) {
		last = sig.Logs.Last
	}
	now := s.Clock(c.now)
	return last.After(now) && last.Sub(now) <= safety.MaxSkew
}

// health keeps what answers, where only the unhealthy were asked for.
func (c *judging) health() bool {
	switch {
	case !c.rule.Unhealthy:
		return true
	case c.seen == nil:
		c.j.needsLook = true
		return true
	case c.seen.Health.Err != nil:
		c.j.keep("health", GroundAnswers, "nobody can tell whether it answers: "+c.seen.Health.Err.Error())
		return false
	case c.seen.Health.Got.Condition == providers.ConditionBroken:
		c.j.pass("health", "listed as "+string(c.j.Sandbox.State)+", and nothing inside answers")
		return true
	}
	c.j.keep("health", GroundAnswers, "it is "+string(c.seen.Health.Got.Condition)+", not broken")
	return false
}

// notice keeps what was not a candidate for long enough yet, so that whoever was told
// has time to protect it.
func (c *judging) notice() bool {
	if c.rule.NotifyBefore == 0 || c.j.needsLook {
		return true
	}
	var since time.Time
	if c.world.Noticed != nil {
		since = c.world.Noticed(c.j.Sandbox)
	}
	limit := sandbox.FormatDuration(c.rule.NotifyBefore)
	switch {
	case since.IsZero():
		c.j.keep("notice", GroundNoticed, "a candidate for the first time; it goes "+limit+" after it was noticed, if it still is one")
		return false
	case c.world.Now().Sub(since) < c.rule.NotifyBefore:
		c.j.keep("notice", GroundNoticed, "a candidate since "+since.UTC().Format(time.RFC3339)+", for less than "+limit)
		return false
	}
	c.j.pass("notice", "a candidate since "+since.UTC().Format(time.RFC3339))
	return true
}
