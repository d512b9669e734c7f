package safety_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fleet"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// asked is a fleet that records its requests.
type asked struct{ how fleet.EndOptions }

func (a *asked) Terminate(_ context.Context, _ []sandbox.Sandbox, o fleet.EndOptions) iter.Seq[sandbox.Ending] {
	a.how = o
	return func(func(sandbox.Ending) bool) {}
}

func through(o safety.Options) fleet.EndOptions {
	f := &asked{}
	for range safety.End(context.Background(), f, nil, o) {
		continue
	}
	return f.how
}

func nobody(sandbox.Sandbox) string { return "" }

// TestNoCallerDecidesThatItNeedNotLook: only the table does.
func TestNoCallerDecidesThatItNeedNotLook(t *testing.T) {
	t.Parallel()
	lazy := fleet.EndOptions{VerifyOnly: true, Recheck: fleet.Recheck{Skip: "no time"}}
	for _, v := range append(safety.Verbs(), "a verb that is not in the table") {
		how := through(safety.Options{Verb: v, How: lazy, Protected: nobody})
		assert.False(t, how.VerifyOnly, v)
		if safety.Binding(v, safety.RuleRecheck).Binds() {
			assert.Empty(t, how.Recheck.Skip, v)
		} else {
			assert.Equal(t, safety.Binding(v, safety.RuleRecheck).Why, how.Recheck.Skip, v)
		}
	}
	assert.Empty(t, through(safety.Options{Verb: "a verb that is not in the table"}).Recheck.Skip)
}

func TestWhatTheDoorKeeps(t *testing.T) {
	t.Parallel()
	one := sandbox.Sandbox{Provider: "prod", ID: "a"}
	skewed := one
	skewed.ClockSkew = 3 * time.Minute
	protected := func(sandbox.Sandbox) string { return "protected" }
	typed := func(sandbox.Ref) safety.Choice { return safety.ByReference }
	own := fleet.EndOptions{Recheck: fleet.Recheck{Judge: func(sandbox.Sandbox) (sandbox.Outcome, string) { return sandbox.OutcomeChanged, "own" }}}
	for name, tc := range map[string]struct {
		o    safety.Options
		box  sandbox.Sandbox
		want sandbox.Outcome
	}{
		"nothing":                     {safety.Options{Verb: safety.VerbCleanup, Protected: nobody}, one, ""},
		"protected":                   {safety.Options{Verb: safety.VerbCleanup, Protected: protected}, one, sandbox.OutcomeSkipped},
		"nobody says what is":         {safety.Options{Verb: safety.VerbCleanup}, one, sandbox.OutcomeSkipped},
		"the verb's own rule":         {safety.Options{Verb: safety.VerbCleanup, Protected: nobody, How: own}, one, sandbox.OutcomeChanged},
		"protected first":             {safety.Options{Verb: safety.VerbCleanup, Protected: protected, How: own}, one, sandbox.OutcomeSkipped},
		"a clock":                     {safety.Options{Verb: safety.VerbReconcile, Protected: nobody}, skewed, sandbox.OutcomeNotAttempted},
		"a clock, piped":              {safety.Options{Verb: safety.VerbTerminate, Protected: nobody}, skewed, sandbox.OutcomeNotAttempted},
		"a clock, typed":              {safety.Options{Verb: safety.VerbTerminate, Protected: nobody, Choice: typed}, skewed, ""},
		"a clock, of a task":          {safety.Options{Verb: safety.VerbTask}, skewed, ""},
		"a drill's":                   {safety.Options{Verb: safety.VerbDrill, Protected: protected}, one, ""},
		"a verb that nobody has told": {safety.Options{Verb: "new", Protected: nobody}, skewed, sandbox.OutcomeNotAttempted},
	} {
		got, why := through(tc.o).Recheck.Judge(tc.box)
		assert.Equal(t, tc.want, got, "%s: %s", name, why)
	}
}

func TestWhatCannotBeReadGoesByItsWholeReference(t *testing.T) {
	t.Parallel()
	one := sandbox.Sandbox{Provider: "prod", ID: "a"}
	for name, tc := range map[string]struct {
		verb    safety.Verb
		del     bool
		choice  safety.Choice
		consent bool
		want    bool
	}{
		"typed":             {safety.VerbTerminate, true, safety.ByReference, true, true},
		"typed, no delete":  {safety.VerbTerminate, false, safety.ByReference, true, false},
		"typed as a word":   {safety.VerbTerminate, true, safety.ByWord, true, false},
		"piped":             {safety.VerbTerminate, true, safety.ByRule, true, false},
		"readable before":   {safety.VerbTerminate, true, safety.ByReference, false, false},
		"another verb":      {safety.VerbCleanup, true, safety.ByReference, true, false},
		"what a task keeps": {safety.VerbKept, true, safety.ByReference, true, false},
	} {
		how := fleet.EndOptions{Delete: tc.del, Recheck: fleet.Recheck{AllowUnreadable: func(sandbox.Sandbox) bool { return tc.consent }}}
		how = through(safety.Options{Verb: tc.verb, How: how, Choice: func(sandbox.Ref) safety.Choice { return tc.choice }})
		assert.Equal(t, tc.want, how.Recheck.AllowUnreadable(one), name)
	}
}

func TestWhoKeepsASandbox(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	p := safety.Protection{
		Now:        func() time.Time { return noon },
		Configured: func(s sandbox.Sandbox) bool { return s.ID == "configured" },
		Leased: func(s sandbox.Sandbox, byHand bool) string {
			if s.ID == "leased" || s.ID == "waiting" && !byHand {
				return "leased"
			}
			return ""
		},
	}
	until := func(at time.Time) sandbox.Sandbox { return sandbox.Sandbox{ID: "kept", KeptUntil: at} }
	label := func(value string, skew time.Duration) sandbox.Sandbox {
		return sandbox.Sandbox{ID: "labelled", Labels: map[string]string{sandbox.LabelKeep: value}, ClockSkew: skew}
	}
	past := noon.Add(-time.Minute).Format(time.RFC3339)
	for name, tc := range map[string]struct {
		box          sandbox.Sandbox
		rule, byHand bool // kept from a rule, from a person
	}{
		"nobody":                  {sandbox.Sandbox{ID: "a"}, false, false},
		"its label":               {label("true", 0), true, true},
		"its label, until then":   {label(past, 0), false, false},
		"its label, behind":       {label(past, -time.Hour), true, true},
		"its label, ahead":        {label(past, time.Hour), false, false},
		"the configuration":       {sandbox.Sandbox{ID: "configured"}, true, true},
		"a task at work":          {sandbox.Sandbox{ID: "leased"}, true, true},
		"a task that has kept it": {sandbox.Sandbox{ID: "waiting"}, true, false},
		"on purpose":              {until(noon.Add(time.Second)), true, false},
		"on purpose, until now":   {until(noon), false, false},
	} {
		assert.Equal(t, tc.rule, p.ByRule(tc.box) != "", name)
		assert.Equal(t, tc.byHand, p.Keeps(tc.box, safety.ByWord) != "", name)
		assert.Equal(t, tc.byHand, p.Keeps(tc.box, safety.ByReference) != "", name)
	}
	assert.Empty(t, safety.Protection{}.ByRule(sandbox.Sandbox{ID: "a"}))
	odd := sandbox.Sandbox{ID: "a", Labels: map[string]string{sandbox.LabelUnreadable: `["sbx/keep"]`}}
	assert.Contains(t, safety.Protection{}.ByRule(odd), "its labels cannot be read")
	assert.Empty(t, safety.Protection{}.Keeps(odd, safety.ByWord), "a person may end it by its id")
	assert.NotEmpty(t, safety.Protection{}.ByRule(label("true", 0)), "the label needs nobody's word")
}

// TestTheTableIsWhole: every exception has a reason, and every rule a sentence.
func TestTheTableIsWhole(t *testing.T) {
	t.Parallel()
	for _, r := range safety.Rules() {
		assert.NotEmpty(t, r.Describe(), r)
		for _, v := range safety.Verbs() {
			c := safety.Binding(v, r)
			assert.Contains(t, []safety.Kind{safety.Yes, safety.No, safety.NotApplicable}, c.Kind)
			assert.True(t, c.Binds() || c.Why != "", "%s of %s has no reason", r, v)
		}
	}
}
