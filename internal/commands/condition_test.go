package commands

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cond"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/views"
)

// TestTheExamplesOfConditionsHold: each is a condition, and memory alone, which active page cache may fill, ends nothing.
func TestTheExamplesOfConditionsHold(t *testing.T) {
	t.Parallel()
	lines := regexp.MustCompile("`sbx (\\w+) --where '(.*)'`").FindAllStringSubmatch(conditionsHelp, -1)
	require.Len(t, lines, 4)
	for _, line := range lines {
		_, err := selector.ParseWhere(line[2])
		require.NoError(t, err, line[2])
		if line[1] == "cleanup" && strings.Contains(line[2], "memory_mb") {
			assert.Contains(t, line[2], `and pattern == "leak"`)
		}
	}
}

// TestEveryConditionNameIsAKey: conditions use the keys of ls and top and no others, and every
// key is a name or has a reason.
func TestEveryConditionNameIsAKey(t *testing.T) {
	t.Parallel()
	keys := append(output.Names(views.SandboxColumns()), output.Names(views.UsageColumns())...)
	notNames := map[string]string{
		"memory_mb": "the limit in ls and the use in top: memory_limit_mb and usage.memory_mb",
		"reason":    "a sentence for people",
		"looked":    "the verb decides whether it looks",
		"at":        "the time of the sample is now",
		"source":    "where the figures come from is no property of the sandbox",
	}
	alias := map[string]string{"usage.memory_mb": "memory_mb"}
	var names []string
	for _, n := range selector.ConditionNames() {
		assert.NotContains(t, names, n.Name, "twice")
		names = append(names, n.Name)
		key := n.Name
		if a := alias[key]; a != "" {
			key = a
		}
		assert.Contains(t, keys, key, "%s is no key of ls or top", n.Name)
		assert.NotEmpty(t, n.Meaning, n.Name)
	}
	for _, key := range keys {
		assert.NotEqual(t, slices.Contains(names, key), notNames[key] != "", "%s is a name, or has a reason not to be one, and never both", key)
	}
}

// TestConditionNamesHoldTheirKind: each name compiles as what the table says, and its unit is the
// one of its key.
func TestConditionNamesHoldTheirKind(t *testing.T) {
	t.Parallel()
	for _, n := range selector.ConditionNames() {
		literal := map[cond.Kind]string{cond.KindText: ` contains "x"`, cond.KindTime: ` > "2026-11-22"`, cond.KindBool: "", cond.KindNumber: " > 1", cond.KindLabels: `.team == "a"`}[n.Kind]
		w, err := selector.ParseWhere(n.Name + literal)
		require.NoError(t, err, n.Name)
		assert.Equal(t, n.Look, w.NeedsLook(), n.Name)
		if n.Name != "state" {
			assert.Equal(t, sandbox.Unknown, w.Judge(sandbox.Sandbox{State: sandbox.StateRunning}, selector.Facts{}), "%s of an empty record", n.Name)
		}
		switch {
		case strings.HasSuffix(n.Name, "_seconds"):
			assert.Equal(t, cond.UnitSeconds, n.Unit, n.Name)
		case strings.HasSuffix(n.Name, "_mb"):
			assert.Equal(t, cond.UnitMiB, n.Unit, n.Name)
		case strings.HasSuffix(n.Name, "_percent"):
			assert.Equal(t, cond.UnitPercent, n.Unit, n.Name)
		case strings.HasSuffix(n.Name, "_at"):
			assert.Equal(t, cond.KindTime, n.Kind, n.Name)
		}
	}
}

func TestCompletionOfConditions(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"":                            "age_seconds",
		"age":                         "age_seconds",
		"cpu_percent < 1% and age":    "cpu_percent < 1% and age_seconds",
		"not (age":                    "not (age_seconds",
		"stuck and !(cpu_percent > 5": "",
	} {
		offers, _ := completeCondition(nil, nil, typed)
		found := slices.ContainsFunc(offers, func(o string) bool { return strings.HasPrefix(o, want+"\t") })
		assert.Equal(t, want != "", found && want != "", "%q: %q", typed, offers)
	}
}
