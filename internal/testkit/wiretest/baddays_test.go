package wiretest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

func TestAnHonestProviderSurvivesBadDays(t *testing.T) {
	t.Parallel()
	wiretest.RunBadDays(t, func(wt wiretest.T) wiretest.Subject { return smallSubject(wt, small{}) })
}

// judge returns the verdict of a provider for a day.
func judge(t *testing.T, name string, open func(t wiretest.T) wiretest.Subject) providertest.Verdict {
	t.Helper()
	var v providertest.Verdict
	synctest.Test(t, func(t *testing.T) {
		v = providertest.Record(t.Context(), func(r providertest.T) { day(t, name).Check(r.Context(), r, open(r)) })
	})
	return v
}

// as gives each error a kind.
func as(kind fault.Kind) func(error) error {
	return func(err error) error {
		if err == nil {
			return nil
		}
		return fault.New(kind, "as if")
	}
}

func silent(error) error { return nil }

func always(error) error { return fault.New(fault.KindUnavailable, "odd") }

const oddTimes = "times as a database writes them"

func TestLiarsTurnBadDaysRed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		day  string
		liar small
		said string
	}{
		"a failed listing is empty":      {"500", small{lists: silent}, "list: no error"},
		"a failed second page is an end": {"reset", small{lists: silent}, "second page: no error"},
		"a failed read is empty":         {"garbage", small{gets: silent}, "get: no error"},
		"a failed end is one":            {"503", small{ends: silent}, "terminate"},
		"401 is gone":                    {"401", small{gets: as(fault.KindGone)}, "get"},
		"500 is not found":               {"500", small{gets: as(fault.KindNotFound)}, "get"},
		"a refused connection is gone":   {"connection refused", small{gets: as(fault.KindGone)}, "get"},
		"the wait is lost":               {"429 for an hour", small{gets: as(fault.KindUnavailable)}, "when to try again"},
		"pages loop":                     {"a page token comes again", small{anyToken: true}, "round and round"},
		"rows come twice":                {"a page token comes again", small{anyToken: true, twice: true}, "come twice"},
		"DELETE is sent again":           {"502", small{insists: true}, "asked to end once"},
		"a read is not repeated":         {"502", small{hasty: true}, "a read is repeated"},
		"giving up is a failure":         {"cancelled meanwhile", small{gets: as(fault.KindUnavailable)}, "get"},
		"the time is over for nobody":    {"the time is over", small{ends: silent}, "terminate"},
		"a secret is quoted": {"403", small{ends: func(error) error {
			return fault.New(fault.KindAuth, "the key %s is wrong", secret)
		}}, "quotes a secret"},
		"a secret is in the hint": {"409", small{ends: func(error) error {
			return fault.New(fault.KindUnknown, "conflict").WithHint("is %s right?", secret)
		}}, "quotes a secret"},
		"no list is an empty one":       {"200 an error", small{empties: true}, "list: no error"},
		"a row without id is none":      {"a row without id", small{empties: true}, "list: no error"},
		"an odd id hides the others":    {"a row with an odd id", small{hides: true}, "one row hides others"},
		"a null row hides the others":   {"a row is null", small{hides: true}, "one row hides others"},
		"an odd time hides the list":    {oddTimes, small{strict: true}, "rows are lost"},
		"an odd time hides its sandbox": {oddTimes, small{gets: always}, "Received unexpected error"},
		"an odd time is a time":         {oddTimes, small{guesses: true}, "gives another age"},
		"an odd state is an end":        {"fields of another type", small{buries: true}, "ended by a state"},
		"a full page is the last one":   {"a full page without a mark", small{unmarked: true}, "list: no error"},
		"no object is an empty one":     {"200 {}", small{empties: true}, "get: no error"},
		"an answer about another is it": {"an answer about another", small{trusts: true}, "nobody selected"},
		"a panic":                       {"html", small{gets: func(error) error { panic("no such page") }}, "panic: no such page"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge(t, tc.day, func(wt wiretest.T) wiretest.Subject { return smallSubject(wt, tc.liar) })
			assert.True(t, v.Failed, "the day does not notice")
			assert.Contains(t, strings.Join(v.Messages, "\n"), tc.said)
		})
	}
}

// TestExpectations: a client may expect another kind than the table, but no success and no unknown
// day.
func TestExpectations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		expect map[string]fault.Kind
		liar   small
		red    bool
	}{
		"its own kind":      {map[string]fault.Kind{"get 404": fault.KindGone}, small{gets: as(fault.KindGone)}, false},
		"not met":           {map[string]fault.Kind{"get 404": fault.KindGone}, small{}, true},
		"terminate":         {map[string]fault.Kind{"terminate 404": fault.KindNone}, small{ends: silent}, false},
		"a day of no table": {map[string]fault.Kind{"get 499": fault.KindGone}, small{}, true},
		"silence":           {map[string]fault.Kind{"list 404": fault.KindNone}, small{lists: silent}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge(t, "404", func(wt wiretest.T) wiretest.Subject {
				s := smallSubject(wt, tc.liar)
				s.Expect = tc.expect
				return s
			})
			assert.Equal(t, tc.red, v.Failed, "%v", v.Messages)
		})
	}
}

// TestBadDaysAreBounded: a provider without a limit of its own is stopped and fails the day.
func TestBadDaysAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		v := providertest.Record(t.Context(), func(r providertest.T) {
			day(t, "404").Check(r.Context(), r, smallSubject(r, small{waits: true}))
		})
		assert.True(t, v.Failed, "an endless read passes")
		assert.Contains(t, strings.Join(v.Messages, "\n"), "deadline exceeded")
		assert.Equal(t, 2*time.Minute, time.Since(began))
	})
}

func TestTheTableOfBadDays(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range wiretest.BadDays() {
		assert.False(t, seen[d.Name], "two days are called %q", d.Name)
		seen[d.Name] = true
		assert.True(t, d.List != "" || d.Odd, "%s: a listing says nothing", d.Name)
		assert.True(t, d.Get != "" || d.Loops || d.Odd || d.Full, "%s: a read says nothing", d.Name)
		assert.False(t, d.Again && d.Never, "%s: nothing is repeated that is not asked", d.Name)
	}
	for name := range strings.FieldsSeq("401 403 404 409 410 422 429 500 502 503 504 html garbage truncated reset") {
		assert.True(t, seen[name], "the issue's day %q is missing", name)
	}
}
