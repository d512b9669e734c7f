package selector

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func aged(d time.Duration) sandbox.Sandbox {
	return sandbox.Sandbox{Provider: "p", ID: "x", State: sandbox.StateRunning, CreatedAt: noon().Add(-d)}
}

func TestAgesAreStrictAndNeverGuessed(t *testing.T) {
	t.Parallel()
	limit := 10 * time.Minute
	firstSeen := func(d time.Duration) sandbox.Sandbox {
		return sandbox.Sandbox{FirstSeenAt: noon().Add(-d)}
	}
	older, younger := Selector{OlderThan: limit}, Selector{YoungerThan: limit}
	before, after := Selector{Before: noon().Add(-limit)}, Selector{After: noon().Add(-limit)}
	for name, tc := range map[string]struct {
		selector Selector
		sandbox  sandbox.Sandbox
		want     sandbox.Verdict
		reason   string
	}{
		"older, exactly":          {older, aged(limit), sandbox.False, "age 10m not over 10m"},
		"older, just over":        {older, aged(limit + 1), sandbox.True, "age 10m over 10m"},
		"older, just under":       {older, aged(limit - 1), sandbox.False, "age 9m59s not over 10m"},
		"before, exactly":         {before, aged(limit), sandbox.False, "exists since 2026-01-02T11:50:00Z"},
		"before, just so":         {before, aged(limit + 1), sandbox.True, "exists since 2026-01-02T11:49:59Z"},
		"before, no time":         {before, sandbox.Sandbox{}, sandbox.Unknown, "age unknown: the provider does not report it"},
		"before, seen by then":    {before, firstSeen(limit + time.Second), sandbox.True, "exists since 2026-01-02T11:49:59Z"},
		"before, seen since":      {before, firstSeen(time.Second), sandbox.Unknown, "first seen 1s ago; its real age is unknown"},
		"after, exactly":          {after, aged(limit), sandbox.False, "exists since 2026-01-02T11:50:00Z"},
		"after, just so":          {after, aged(limit - 1), sandbox.True, "exists since 2026-01-02T11:50:00Z"},
		"after, future":           {after, aged(-1), sandbox.Unknown, "age unknown: its creation time is in the future"},
		"after, seen by then":     {after, firstSeen(limit), sandbox.False, "exists since 2026-01-02T11:50:00Z"},
		"after, seen since":       {after, firstSeen(time.Second), sandbox.Unknown, "first seen 1s ago; its real age is unknown"},
		"younger, exactly":        {younger, aged(limit), sandbox.False, "age 10m not under 10m"},
		"younger, just under":     {younger, aged(limit - 1), sandbox.True, "age 9m59s under 10m"},
		"older, no time":          {older, sandbox.Sandbox{}, sandbox.Unknown, "age unknown: the provider does not report it"},
		"younger, no time":        {younger, sandbox.Sandbox{}, sandbox.Unknown, "age unknown: the provider does not report it"},
		"older, future":           {older, aged(-time.Hour), sandbox.Unknown, "age unknown: its creation time is in the future"},
		"younger, future":         {younger, aged(-1), sandbox.Unknown, "age unknown: its creation time is in the future"},
		"older, seen long ago":    {older, firstSeen(time.Hour), sandbox.True, "age 1h over 10m"},
		"older, seen just now":    {older, firstSeen(time.Second), sandbox.Unknown, "first seen 1s ago; its real age is unknown"},
		"younger, seen just now":  {younger, firstSeen(time.Second), sandbox.Unknown, "first seen 1s ago; its real age is unknown"},
		"younger, seen long ago":  {younger, firstSeen(time.Hour), sandbox.False, "age 1h not under 10m"},
		"older, started counts":   {older, sandbox.Sandbox{StartedAt: noon().Add(-time.Hour)}, sandbox.True, "age 1h over 10m"},
		"younger, started counts": {younger, sandbox.Sandbox{StartedAt: noon().Add(-time.Minute)}, sandbox.True, "age 1m under 10m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.selector.Judge(tc.sandbox, Facts{Now: noon()})
			assert.Equal(t, tc.want, got.Verdict)
			assert.Equal(t, tc.reason, got.Reason)
		})
	}
}

func TestEachFilter(t *testing.T) {
	t.Parallel()
	sb := sandbox.Sandbox{
		Name: "team/build-7", State: sandbox.StateRunning, TaskID: "t-1", AgentType: "coder", Owner: "me",
		Labels: map[string]string{"team": "a", "empty": ""},
	}
	label := func(key string, values ...string) Selector { return Selector{Labels: []Label{{key, values}}} }
	for name, tc := range map[string]struct {
		selector Selector
		want     sandbox.Verdict
		filter   string
	}{
		"nothing asked":        {Selector{}, sandbox.True, ""},
		"state":                {Selector{States: []sandbox.State{sandbox.StateRunning}}, sandbox.True, ""},
		"one of states":        {Selector{States: []sandbox.State{sandbox.StatePaused, sandbox.StateRunning}}, sandbox.True, ""},
		"other state":          {Selector{States: []sandbox.State{sandbox.StatePaused}}, sandbox.False, "state"},
		"task":                 {Selector{Task: "t-1"}, sandbox.True, ""},
		"task is no prefix":    {Selector{Task: "t-"}, sandbox.False, "task"},
		"agent type":           {Selector{AgentType: "coder"}, sandbox.True, ""},
		"owner":                {Selector{Owner: "me"}, sandbox.True, ""},
		"other owner":          {Selector{Owner: "Me"}, sandbox.False, "owner"},
		"other agent type":     {Selector{AgentType: "Coder"}, sandbox.False, "agent-type"},
		"star takes a slash":   {Selector{Name: "team*7"}, sandbox.True, ""},
		"class":                {Selector{Name: "*-[0-9]"}, sandbox.True, ""},
		"whole name":           {Selector{Name: "team"}, sandbox.False, "name"},
		"broken by hand":       {Selector{Name: "["}, sandbox.Unknown, "name"},
		"label value":          {label("team", "a"), sandbox.True, ""},
		"label, one of values": {label("team", "b", "a"), sandbox.True, ""},
		"label, other value":   {label("team", "b"), sandbox.False, "label"},
		"label present":        {label("empty"), sandbox.True, ""},
		"label empty value":    {label("empty", ""), sandbox.True, ""},
		"label not empty":      {label("team", ""), sandbox.False, "label"},
		"label missing":        {label("nope"), sandbox.False, "label"},
		"two labels":           {Selector{Labels: []Label{{"team", []string{"a"}}, {"nope", nil}}}, sandbox.False, "label"},
		"false beats unknown":  {Selector{OlderThan: time.Minute, Task: "t-2"}, sandbox.False, "task"},
		"unknown beats true":   {Selector{OlderThan: time.Minute, Task: "t-1"}, sandbox.Unknown, "older-than"},
		"stuck without a rule": {Selector{Stuck: true}, sandbox.Unknown, "stuck"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.selector.Judge(sb, Facts{Now: noon()})
			assert.Equal(t, tc.want, got.Verdict, got.Reason)
			assert.Equal(t, tc.filter, got.Filter)
		})
	}
}

func TestUnknownStateIsNoMatch(t *testing.T) {
	t.Parallel()
	s := Selector{States: []sandbox.State{sandbox.StateRunning}}
	got := s.Judge(sandbox.Sandbox{State: sandbox.StateUnknown, RawState: "limbo"}, Facts{Now: noon()})
	assert.Equal(t, Match{sandbox.Unknown, "state", `state unknown (the provider says "limbo")`}, got)
	s.States = []sandbox.State{sandbox.StateUnknown}
	assert.Equal(t, sandbox.True, s.Judge(sandbox.Sandbox{State: sandbox.StateUnknown}, Facts{Now: noon()}).Verdict)
}

func TestStuckAsksTheRule(t *testing.T) {
	t.Parallel()
	for _, want := range []sandbox.Verdict{sandbox.True, sandbox.False, sandbox.Unknown} {
		f := Facts{Now: noon(), Judged: func(sandbox.Sandbox) (triage.Verdict, *Figures) {
			return triage.Verdict{Stuck: want, Reason: "because"}, nil
		}}
		got := Selector{Stuck: true}.Judge(aged(time.Hour), f)
		assert.Equal(t, want, got.Verdict)
		assert.Equal(t, "because", got.Reason)
	}
}

func TestEndedOnesAreSelectedByAllOrByState(t *testing.T) {
	t.Parallel()
	for _, state := range sandbox.States() {
		sb := sandbox.Sandbox{Name: "a", State: state}
		assert.Equal(t, sandbox.VerdictOf(!state.Ended()), Selector{}.Judge(sb, Facts{Now: noon()}).Verdict, state)
		assert.Equal(t, sandbox.True, Selector{All: true}.Judge(sb, Facts{Now: noon()}).Verdict, state)
		by, err := Compile(Options{States: []string{string(state)}})
		require.NoError(t, err)
		assert.Equal(t, sandbox.True, by.Judge(sb, Facts{Now: noon()}).Verdict, state)
		assert.Equal(t, state.Ended(), by.All, "%s: older ones are listed, too", state)
	}
	ended := sandbox.Sandbox{Name: "a", State: sandbox.StateFailed}
	assert.Equal(t, FilterEnded, Selector{Name: "a"}.Judge(ended, Facts{Now: noon()}).Filter)
	assert.Equal(t, "name", Selector{Name: "b"}.Judge(ended, Facts{Now: noon()}).Filter, "it would not be shown with --all either")
}

func TestReasonsOfASelectionSayWhatEachFilterSaw(t *testing.T) {
	t.Parallel()
	s := Selector{OlderThan: 10 * time.Minute, States: []sandbox.State{sandbox.StateRunning}}
	got := s.Judge(aged(12*time.Minute), Facts{Now: noon()})
	assert.Equal(t, Match{Verdict: sandbox.True, Reason: "state running; age 12m over 10m"}, got)
}

// TestAddingAFilterNeverWidens adds one random filter to a random selector and
// looks for a sandbox that only then is selected.
func TestAddingAFilterNeverWidens(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) // a fixed seed
	for range 20_000 {
		before := randomSelector(r)
		after := randomFilter(r, before)
		sb := randomSandbox(r)
		f := Facts{Now: noon(), Judged: func(s sandbox.Sandbox) (triage.Verdict, *Figures) { return triage.Verdict{Stuck: s.Activity}, nil }}
		if after.Judge(sb, f).Verdict == sandbox.True {
			require.Equal(t, sandbox.True, before.Judge(sb, f).Verdict, "%+v\n%+v\n%+v", before, after, sb)
		}
	}
}

func randomSelector(r *rand.Rand) Selector {
	s := Selector{All: r.IntN(2) == 0}
	for range r.IntN(4) {
		s = randomFilter(r, s)
	}
	return s
}

// randomFilter sets one filter that is not set yet, or adds a label key.
func randomFilter(r *rand.Rand, s Selector) Selector {
	age := time.Duration(1+r.IntN(5)) * time.Minute
	switch n := r.IntN(8); {
	case n == 0 && len(s.States) == 0:
		s.States = sandbox.States()[:1+r.IntN(7)]
	case n == 1 && s.OlderThan == 0:
		s.OlderThan = age
	case n == 2 && s.YoungerThan == 0:
		s.YoungerThan = age
	case n == 3 && s.Name == "":
		s.Name = []string{"*", "a*", "?", "ab"}[r.IntN(4)]
	case n == 4 && s.Task == "":
		s.Task = "t-1"
	case n == 5 && len(s.Labels) < 2:
		s.Labels = append(slices.Clip(s.Labels), Label{Key: []string{"k", "l"}[len(s.Labels)], Values: []string{"", "v"}[:r.IntN(3)]})
	case n == 6:
		s.Stuck = true
	case n == 7:
		s.All = false
	}
	return s
}

func randomSandbox(r *rand.Rand) sandbox.Sandbox {
	at := func() time.Time {
		if r.IntN(3) == 0 {
			return time.Time{}
		}
		return noon().Add(time.Duration(1-r.IntN(7)) * time.Minute)
	}
	verdicts := []sandbox.Verdict{sandbox.True, sandbox.False, sandbox.Unknown}
	sb := sandbox.Sandbox{
		State:     sandbox.States()[r.IntN(8)],
		CreatedAt: at(), FirstSeenAt: at(), EndedAt: at().Add(-time.Duration(r.IntN(2)) * 2 * time.Hour),
		Name: []string{"", "a", "ab", "b"}[r.IntN(4)], TaskID: []string{"", "t-1"}[r.IntN(2)],
		Activity: verdicts[r.IntN(3)], Labels: map[string]string{},
	}
	for _, k := range []string{"k", "l"} {
		if r.IntN(2) == 0 {
			sb.Labels[k] = []string{"", "v"}[r.IntN(2)]
		}
	}
	return sb
}
