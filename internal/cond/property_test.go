package cond_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sbx/internal/cond"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// atoms are a comparison of each verdict over busy().
func atoms() map[sandbox.Verdict]string {
	return map[sandbox.Verdict]string{sandbox.True: "stuck", sandbox.False: "cpu_percent < 1%", sandbox.Unknown: "operations > 5"}
}

// TestDeMorganInThreeValues: not (a and b) is not a or not b, for all nine pairs.
func TestDeMorganInThreeValues(t *testing.T) {
	t.Parallel()
	for _, a := range atoms() {
		for _, b := range atoms() {
			for left, right := range map[string]string{
				fmt.Sprintf("not (%s and %s)", a, b): fmt.Sprintf("not (%s) or not (%s)", a, b),
				fmt.Sprintf("not (%s or %s)", a, b):  fmt.Sprintf("not (%s) and not (%s)", a, b),
				fmt.Sprintf("not (not (%s))", a):     a,
				fmt.Sprintf("%s and %s", a, b):       fmt.Sprintf("%s && %s", b, a),
				fmt.Sprintf("%s or %s", a, b):        fmt.Sprintf("%s || %s", b, a),
			} {
				if l, r := evalText(t, left), evalText(t, right); l != r {
					t.Errorf("%s is %s, and %s is %s", left, l, right, r)
				}
			}
		}
	}
}

func evalText(t *testing.T, text string) sandbox.Verdict {
	t.Helper()
	c, err := cond.Compile(text, testSchema())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c.Eval(busy())
}

// TestAMissingValueNeverDecidesAlone: what is true or false without a value stays so with any
// value of it (the verdict is monotone in what is known).
func TestAMissingValueNeverDecidesAlone(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := randomCondition(random, 4)
		c, err := cond.Compile(text, testSchema())
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		s := busy()
		before := c.Eval(s)
		s["operations"] = cond.Number(float64(random.IntN(10)))
		if after := c.Eval(s); before != sandbox.Unknown && before != after {
			t.Fatalf("%s: %s without operations, %s with", text, before, after)
		}
	}
}

func randomCondition(random *rand.Rand, depth int) string {
	leaves := []string{"stuck", "cpu_percent < 1%", "operations > 5", "operations < 3", "age_seconds > 10m", "operations * 2 < cpu_percent / 10 * 1"}
	if depth == 0 || random.IntN(4) == 0 {
		return leaves[random.IntN(len(leaves)-1)]
	}
	a, b := randomCondition(random, depth-1), randomCondition(random, depth-1)
	switch random.IntN(3) {
	case 0:
		return "not (" + a + ")"
	case 1:
		return "(" + a + ") and (" + b + ")"
	}
	return "(" + a + ") or (" + b + ")"
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		"age_seconds > 10m", `state == "running" and not stuck`, "cpu_percent / pids > 1%", `labels["a/b"] == 'x' or "x" in labels`, "operations == nil",
		"10m < age_seconds < 1h", "state in [\"running\", 'paused']", "name matches `^a+$`", "len(name) > 3", "((((", "5%", "1e3 > pids", "stuck ? 1 : 2", "a.b.c[1:2].d()", "é > 10m", "\x00", "'", "not not not stuck",
		`created_at < "2026-11-22T12:00Z"`, "-(-5) < pids", "timeout_rate > 5", "usage.memory_mb > 90% * memory_limit_mb", "any(labels, {#})", "1..2", "nil == nil", "let x = 1; x", "age_seconds in [1m]", "true == stuck",
	} {
		f.Add(seed)
	}
	schema := testSchema()
	f.Fuzz(func(t *testing.T, text string) {
		c, err := cond.Compile(text, schema)
		if err != nil {
			if fault.KindOf(err) != fault.KindUsage || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: %v", text, err)
			}
			fault.ExcerptOf(err)
			return
		}
		for _, s := range []subject{busy(), {}, nil} {
			e := c.Explain(s)
			if e.Verdict != c.Eval(s) {
				t.Fatalf("%q: Eval and Explain differ", text)
			}
			if (e.Verdict == sandbox.Unknown) != (len(e.Missing) > 0) {
				t.Fatalf("%q: %s with %q", text, e.Verdict, e.Missing)
			}
		}
		negated, err := cond.Compile("not ("+text+")", schema)
		if err != nil {
			return // it is longer
		}
		for _, s := range []subject{busy(), {}} {
			opposite := map[sandbox.Verdict]sandbox.Verdict{sandbox.True: sandbox.False, sandbox.False: sandbox.True, sandbox.Unknown: sandbox.Unknown}
			if negated.Eval(s) != opposite[c.Eval(s)] {
				t.Fatalf("%q: not is no complement", text)
			}
		}
	})
}
