package selector

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func zoo() []sandbox.Sandbox {
	at := func(d time.Duration) time.Time { return noon().Add(-d) }
	return []sandbox.Sandbox{
		{Provider: "q", ID: "1", Name: "m", State: sandbox.StateUnknown},
		{Provider: "p", ID: "2", Name: "z", State: sandbox.StateRunning, CreatedAt: at(time.Hour), LastActivityAt: at(time.Second)},
		{Provider: "p", ID: "3", State: sandbox.StateFailed, CreatedAt: at(time.Minute), LastActivityAt: at(time.Minute)},
		{Provider: "p", ID: "4", Name: "a", State: sandbox.StateProvisioning, CreatedAt: at(time.Hour)},
		{Provider: "p", ID: "5", Name: "b", State: sandbox.StateRunning, CreatedAt: at(-time.Hour)},
	}
}

func ids(items []sandbox.Sandbox) string {
	var all []string
	for _, sb := range items {
		all = append(all, sb.ID)
	}
	return strings.Join(all, "")
}

func TestArrange(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"age": "32451", "-age": "24351", // an unknown and a future age are last both ways
		"idle": "23451", "-idle": "32451",
		"name": "45123", "-name": "21543",
		"state": "42531", "-state": "32541",
		"provider": "23451", "-provider": "12345",
		"id": "12345", "-id": "54321",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			order, err := ParseOrder(key)
			require.NoError(t, err)
			items := zoo()
			order.Arrange(items, noon())
			assert.Equal(t, want, ids(items))
		})
	}
	items := zoo()
	Order{}.Arrange(items, noon())
	assert.Equal(t, "12345", ids(items), "no order keeps the arrival")
}

func TestEverySortKeySorts(t *testing.T) {
	t.Parallel()
	for _, key := range SortKeys() {
		_, err := ParseOrder(key)
		require.NoError(t, err)
	}
	for _, bad := range []string{"", "-", "--age", "Age", " age", "cpu"} {
		_, err := ParseOrder(bad)
		assert.Error(t, err, "%q", bad)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	items := zoo()
	order := Order{Key: "age", Descending: true}
	got := Selector{OlderThan: 30 * time.Second, All: true, Sort: order, Limit: 2}.Apply(items, Facts{Now: noon()})
	assert.Equal(t, "24", ids(sandboxes(got.Selected)))
	assert.True(t, got.Truncated)
	assert.Equal(t, "15", ids(sandboxes(got.Unknown)))
	assert.Equal(t, map[string]int{"older-than": 2}, got.UnknownBy)
	assert.Empty(t, got.Kept)
	assert.Equal(t, "12345", ids(items), "the caller's list stays as it is")

	got = Selector{States: []sandbox.State{sandbox.StateRunning}, Limit: 2}.Apply(items, Facts{Now: noon()})
	assert.Equal(t, "25", ids(sandboxes(got.Selected)))
	assert.False(t, got.Truncated, "exactly the limit is not cut")
	assert.Equal(t, "34", ids(sandboxes(got.Kept)))
	assert.Equal(t, "1", ids(sandboxes(got.Unknown)))
}

func sandboxes(judged []Judged) []sandbox.Sandbox {
	var all []sandbox.Sandbox
	for _, j := range judged {
		all = append(all, j.Sandbox)
	}
	return all
}

func BenchmarkJudge(b *testing.B) {
	s := Selector{States: []sandbox.State{sandbox.StateRunning}, OlderThan: 10 * time.Minute, Labels: []Label{{"team", []string{"a"}}}}
	sb := aged(time.Minute)
	sb.Labels = map[string]string{"team": "a"}
	f := Facts{Now: noon()}
	for b.Loop() {
		s.Judge(sb, f)
	}
}
