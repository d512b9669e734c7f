package selector

import (
	"cmp"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func random() *rand.Rand { return rand.New(rand.NewPCG(7, 8)) } // a fixed seed

func byActivity() Facts {
	return Facts{Now: noon(), Judged: func(s sandbox.Sandbox) (triage.Verdict, *Figures) { return triage.Verdict{Stuck: s.Activity}, nil }}
}

// TestJudgingIsTheAndOfItsFilters compares a selector with each of its filters
// alone: false if one is false, else unknown if one is unknown, else true.
func TestJudgingIsTheAndOfItsFilters(t *testing.T) {
	t.Parallel()
	r, f := random(), byActivity()
	for range 5_000 {
		s, sb := randomSelector(r), randomSandbox(r)
		want := sandbox.True
		for _, c := range s.activeChecks() {
			switch verdict, _ := c.holds(s, sb, f); {
			case verdict == sandbox.False:
				want = sandbox.False
			case verdict == sandbox.Unknown && want == sandbox.True:
				want = sandbox.Unknown
			}
		}
		got := s.Judge(sb, f)
		require.Equal(t, want, got.Verdict, "%+v\n%+v", s, sb)
		require.Equal(t, got.Verdict == sandbox.True, got.Filter == "", "what decided is named, and only then")
	}
}

// TestApplySplitsTheListInThree checks that nothing is lost, doubled or counted wrongly,
// and that a limit only takes from the selected ones.
func TestApplySplitsTheListInThree(t *testing.T) {
	t.Parallel()
	r, f := random(), byActivity()
	for range 500 {
		s := randomSelector(r)
		items := make([]sandbox.Sandbox, r.IntN(30))
		for i := range items {
			items[i] = randomSandbox(r)
			items[i].ID = string(rune('A' + i))
		}
		all := s.Apply(items, f)
		require.Equal(t, len(items), len(all.Selected)+len(all.Kept)+len(all.Unknown))
		sum := 0
		for _, n := range all.UnknownBy {
			sum += n
		}
		require.Len(t, all.Unknown, sum)
		s.Limit = 1 + r.IntN(10)
		cut := s.Apply(items, f)
		require.Len(t, cut.Selected, min(s.Limit, len(all.Selected)))
		require.Equal(t, len(all.Selected) > s.Limit, cut.Truncated)
		require.Equal(t, all.Selected[:len(cut.Selected)], cut.Selected)
		require.Equal(t, all.Kept, cut.Kept)
		require.Equal(t, all.Unknown, cut.Unknown)
	}
}

// TestOrdersAreOrders checks that Compare is consistent, and that falling order reverses
// everything with a value.
func TestOrdersAreOrders(t *testing.T) {
	t.Parallel()
	r := random()
	for range 5_000 {
		o := Order{Key: SortKeys()[r.IntN(len(SortKeys()))]}
		a, b, c := randomSandbox(r), randomSandbox(r), randomSandbox(r)
		a.ID, b.ID, c.ID = "a", "b", "c"
		require.Equal(t, o.Compare(a, b, noon()), -o.Compare(b, a, noon()))
		require.NotZero(t, o.Compare(a, b, noon()), "two sandboxes never tie")
		if o.Compare(a, b, noon()) < 0 && o.Compare(b, c, noon()) < 0 {
			require.Negative(t, o.Compare(a, c, noon()), "%+v", o)
		}
		x, knownX := o.sortValue(a, noon())
		y, knownY := o.sortValue(b, noon())
		falling := Order{Key: o.Key, Descending: true}
		if knownX && knownY && x != y {
			require.Equal(t, o.Compare(a, b, noon()), -falling.Compare(a, b, noon()))
		} else {
			require.Equal(t, o.Compare(a, b, noon()), falling.Compare(a, b, noon()))
		}
	}
}

// TestTimeOnlyEverMakesOlder advances the clock: what was older stays older, what was not
// younger stays so.
func TestTimeOnlyEverMakesOlder(t *testing.T) {
	t.Parallel()
	r := random()
	older, younger := Selector{OlderThan: 3 * time.Minute, All: true}, Selector{YoungerThan: 3 * time.Minute, All: true}
	for range 2_000 {
		sb := randomSandbox(r)
		later := Facts{Now: noon().Add(time.Duration(r.IntN(600)) * time.Second)}
		if older.Judge(sb, Facts{Now: noon()}).Verdict == sandbox.True {
			require.Equal(t, sandbox.True, older.Judge(sb, later).Verdict)
		}
		if younger.Judge(sb, Facts{Now: noon()}).Verdict == sandbox.False {
			require.Equal(t, sandbox.False, younger.Judge(sb, later).Verdict)
		}
	}
}

func TestParseOrderReadsWhatItSays(t *testing.T) {
	t.Parallel()
	for _, key := range SortKeys() {
		for text, want := range map[string]Order{key: {key, false}, "-" + key: {key, true}} {
			got, err := ParseOrder(text)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		}
	}
	assert.Equal(t, 0, cmp.Compare(stateRank(true), 0))
	assert.Equal(t, 1, cmp.Compare(stateRank(false), stateRank(true)))
}
