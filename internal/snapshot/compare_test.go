package snapshot

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

func sentences(changes []Change) []string {
	all := []string{}
	for _, c := range changes {
		all = append(all, c.String())
	}
	return all
}

// TestChangesInWords: each kind of difference is one sentence, in both directions, and nothing differs
// from itself.
func TestChangesInWords(t *testing.T) {
	t.Parallel()
	one := Concluded{
		Verdict: sandbox.False, Listed: 4,
		Stuck:     []Marked{{"p/a", sandbox.CauseSilent}, {"p/b", sandbox.CauseHungIO}, {"p/c", sandbox.CauseLeak}},
		Suspected: []Marked{{"p/d", sandbox.CauseLeak}},
		Flags:     []Answer{{"R4", sandbox.True}, {"R12", sandbox.Unknown}},
		Causes:    []Cause{{"silent", sandbox.Probable}, {"memory_leak", sandbox.Hint}},
		Alerts:    []Alert{{"sandbox_stuck", "p", sandbox.True}},
		Checks:    []Answer{{"R126", sandbox.False}},
		Plan:      []string{"p/a", "p/b"},
		Runbooks:  []Runbook{{ID: "x", Checks: []Answer{{"many", sandbox.True}}, Causes: []string{"silent"}}, {ID: "only-then"}},
	}
	two := Concluded{
		Verdict: sandbox.Unknown, Listed: 4,
		Stuck:    []Marked{{"p/a", sandbox.CauseBusyLoop}},
		Unjudged: []string{"p/b"},
		Flags:    []Answer{{"R12", sandbox.True}, {"R4", sandbox.Unknown}},
		Causes:   []Cause{{"memory_leak", sandbox.Probable}, {"silent", sandbox.Hint}},
		Alerts:   []Alert{{"sandbox_stuck", "q", sandbox.True}},
		Checks:   []Answer{{"R126", sandbox.True}},
		Plan:     []string{"p/c"},
		Runbooks: []Runbook{{ID: "x", Escalations: []Answer{{"sandbox_stuck", sandbox.True}}}, {ID: "only-now"}},
	}
	assert.Equal(t, []string{
		"verdict false -> unknown",
		"stuck 3 -> 1: no longer p/b, p/c", "stuck p/a silent -> busy loop",
		"suspected 1 -> 0: no longer p/d",
		"not judged 0 -> 1: now also p/b",
		"plan 2 -> 1: no longer p/a, p/b; now also p/c",
		"cause silent no longer likely", "cause memory leak is likely now", "first cause silent -> memory leak",
		"flag R4 is not known now", "flag R12 holds now",
		"alert sandbox_stuck at p no longer holds", "alert sandbox_stuck at q holds now",
		"check R126 false -> true",
		"runbook x: step many no longer holds", "runbook x: branch silent no longer holds", "runbook x: escalation sandbox_stuck holds now",
	}, sentences(CompareConclusions(one, two)))
	assert.Contains(t, sentences(CompareConclusions(two, one)), "flag R12 is not known now")
	assert.Contains(t, sentences(CompareConclusions(Concluded{Flags: one.Flags}, Concluded{})), "flag R12 does not hold now, and was not known")
	assert.Empty(t, CompareConclusions(one, one))
	assert.Equal(t, []string{"listed 4 -> 0"}, sentences(CompareConclusions(Concluded{Listed: 4}, Concluded{})))
}

// TestSettingsInWords: a setting of several providers is one sentence, and one of an agent type that
// has none of its own now is compared with that of its provider.
func TestSettingsInWords(t *testing.T) {
	t.Parallel()
	set := func(provider, agent, age string) Setting {
		return Setting{Provider: provider, AgentType: agent, Thresholds: map[string]string{"thresholds.stuck_age": age, "thresholds.active": "20"}}
	}
	then := []Setting{set("p", "", "10m"), set("p", "coder", "30m"), set("q", "", "10m"), set("gone", "", "10m")}
	assert.Equal(t, []string{"thresholds.stuck_age 10m -> 20m (p, q)", "thresholds.stuck_age 30m -> 20m (p coder)"},
		sentences(CompareSettings(then, []Setting{set("p", "", "20m"), set("q", "", "20m")})))
	assert.Empty(t, CompareSettings(then, then))
}
