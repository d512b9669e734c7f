package selector

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

func TestCompile(t *testing.T) {
	t.Parallel()
	s, err := Compile(Options{
		States: []string{"running,failed", "running"}, OlderThan: new("10m"), YoungerThan: new("1h"),
		Labels: []string{"team=a", "b", "team=b", "team=a", "team"}, Name: new("a*"), Task: new("t-1"),
		AgentType: new("coder"), Owner: new("me"), Stuck: true, All: true, Limit: new(3), Sort: new("-age"),
	})
	require.NoError(t, err)
	assert.Equal(t, Selector{
		States: []sandbox.State{sandbox.StateRunning, sandbox.StateFailed}, OlderThan: 10 * time.Minute, YoungerThan: time.Hour,
		Labels: []Label{{"b", nil}, {"team", []string{"a", "b"}}}, Name: "a*", Task: "t-1",
		AgentType: "coder", Owner: "me", Stuck: true, All: true, Limit: 3, Sort: Order{"age", true},
	}, s)
	assert.False(t, s.Empty())
	assert.Empty(t, s.ExactLabels(), "two alternatives and a bare key cannot narrow at the source")
	assert.Equal(t, map[string]string{"k": "v"}, Selector{Labels: []Label{{"k", []string{"v"}}}}.ExactLabels())
}

func TestCompileOfNothing(t *testing.T) {
	t.Parallel()
	s, err := Compile(Options{All: true, Limit: new(1), Sort: new("id")})
	require.NoError(t, err)
	assert.True(t, s.Empty(), "all, limit and sort choose nothing")
}

func TestEachFilterMakesItNotEmpty(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"state": {States: []string{"failed"}}, "older": {OlderThan: new("1s")}, "younger": {YoungerThan: new("1s")},
		"before": {Before: new("2026-11-20T12:00:00Z")}, "after": {After: new("2026-11-20T12:00:00Z")},
		"label": {Labels: []string{"k"}}, "name": {Name: new("*")}, "task": {Task: new("t")}, "agent": {AgentType: new("a")}, "owner": {Owner: new("o")},
		"template": {Template: new("t")}, "exit code": {ExitCode: new(0)}, "where": {Where: new("stuck")},
		"stuck": {Stuck: true},
	} {
		s, err := Compile(o)
		require.NoError(t, err, name)
		assert.False(t, s.Empty(), name)
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		message string
		hint    string
	}{
		"state":           {Options{States: []string{"runnin"}}, `--state: no state "runnin"`, "did you mean running?"},
		"state empty":     {Options{States: []string{""}}, `--state: no state ""`, "allowed: provisioning"},
		"state comma":     {Options{States: []string{"running,"}}, `--state: no state ""`, "allowed"},
		"age empty":       {Options{OlderThan: new("")}, "--older-than: it is empty", ""},
		"age bare":        {Options{OlderThan: new("10")}, "the unit is missing", ""},
		"age negative":    {Options{YoungerThan: new("-1m")}, `--younger-than: "-1m" is not a duration`, ""},
		"ages exclude":    {Options{OlderThan: new("1h"), YoungerThan: new("10m")}, "nothing can be older than 1h and younger than 10m", "longer"},
		"ages equal":      {Options{OlderThan: new("1h"), YoungerThan: new("1h")}, "nothing can be older", "longer"},
		"no moment":       {Options{Before: new("tomorrow")}, `--before: "tomorrow" is not a date or time`, ""},
		"moment empty":    {Options{Before: new("")}, "--before: the value is empty", "unset"},
		"moments exclude": {Options{Before: new("2026-11-20T12:00:00Z"), After: new("2026-11-20T13:00:00+01:00")}, "nothing can be created after", "earlier"},
		"label no key":    {Options{Labels: []string{"=v"}}, `--label: "=v" has no usable key`, "key=value"},
		"label empty":     {Options{Labels: []string{""}}, "has no usable key", "key=value"},
		"label colon":     {Options{Labels: []string{"team:agents"}}, `"team:agents" has no =`, "write team=agents"},
		"label space":     {Options{Labels: []string{" k=v"}}, "has no usable key", "key=value"},
		"name empty":      {Options{Name: new("")}, "--name: the value is empty", "unset"},
		"name broken":     {Options{Name: new("a[")}, `--name: the pattern "a[" is malformed`, "class"},
		"name broken end": {Options{Name: new(`a\`)}, "is malformed", "backslash"},
		"task empty":      {Options{Task: new("")}, "--task: the value is empty", "unset"},
		"template empty":  {Options{Template: new("")}, "--template: the value is empty", "unset"},
		"where empty":     {Options{Where: new("")}, "--where: column 1: the condition is empty", "unset"},
		"where typo":      {Options{Where: new("agee > 10m")}, `--where: column 1: no name "agee"`, "did you mean age_seconds?"},
		"where unit":      {Options{Where: new("age_seconds > 5%")}, "--where: column 15: age_seconds is a duration: write 10m", ""},
		"where of two":    {Options{Where: new("memory_mb > 1G")}, "--where: column 1: memory_mb is ambiguous", "usage.memory_mb"},
		"owner empty":     {Options{Owner: new("")}, "--owner: the value is empty", "unset"},
		"agent empty":     {Options{AgentType: new("")}, "--agent-type: the value is empty", "unset"},
		"limit zero":      {Options{Limit: new(0)}, "--limit: 0 is less than 1", "leave it out"},
		"limit negative":  {Options{Limit: new(-1)}, "--limit: -1 is less than 1", "leave it out"},
		"sort":            {Options{Sort: new("-naem")}, `no sort key "-naem"`, "did you mean name?"},
		"sort empty":      {Options{Sort: new("")}, `no sort key ""`, "allowed: age"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile(tc.options)
			require.ErrorContains(t, err, tc.message)
			assert.Equal(t, Selector{}, s, "a refused selector must not select")
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.Contains(t, strings.Join(hints(err), "\n"), tc.hint)
		})
	}
}

func hints(err error) []string {
	list, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{fault.HintOf(err)}
	}
	var all []string
	for _, e := range list.Unwrap() {
		all = append(all, hints(e)...)
	}
	return all
}

func TestCompileCollectsEverything(t *testing.T) {
	t.Parallel()
	_, err := Compile(Options{
		States: []string{"a,b"}, OlderThan: new("x"), YoungerThan: new("y"), Labels: []string{"=", "="},
		Name: new("["), Task: new(""), AgentType: new(""), Limit: new(0), Sort: new("z"),
	})
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Len(t, strings.Split(err.Error(), "\n"), 11)
}

func FuzzCompile(f *testing.F) {
	f.Add("running,failed", "10m", "team=a", "a*", "-age")
	f.Add("", "", "", "", "")
	f.Add(",", "1h30m", "=", `[\`, "--")
	f.Fuzz(func(t *testing.T, states, age, label, name, sort string) {
		s, err := Compile(Options{States: []string{states}, OlderThan: &age, Labels: []string{label}, Name: &name, Sort: &sort})
		if err != nil {
			if fault.KindOf(err) != fault.KindUsage {
				t.Fatalf("kind %q", fault.KindOf(err))
			}
			return
		}
		if s.Empty() || s.OlderThan <= 0 || len(s.States) == 0 || len(s.Labels) != 1 || s.Name == "" || s.Sort.Key == "" {
			t.Fatalf("a filter that was given is lost: %+v", s)
		}
		if got := s.Judge(sandbox.Sandbox{}, Facts{Now: noon()}); got.Verdict == sandbox.True {
			t.Fatalf("a sandbox without an age is selected: %+v", s)
		}
		if got := s.Judge(sandbox.Sandbox{Name: "a", State: s.States[0]}, Facts{Now: noon()}); got.Filter == "name" && got.Verdict == sandbox.Unknown {
			t.Fatalf("pattern %q passed and is malformed", name)
		}
	})
}
