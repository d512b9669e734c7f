package views_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

// TestStuckSummary: how many are stuck, where and why, the most first.
func TestStuckSummary(t *testing.T) {
	t.Parallel()
	stuck := func(c *look.Census, n int, profile string, cause sandbox.Cause) {
		for range n {
			c.Add(profile, triage.Verdict{Stuck: sandbox.True, Cause: cause, Looked: true})
		}
	}
	var none, one, many, other look.Census
	stuck(&one, 1, "e2b", sandbox.CauseLeak)
	stuck(&many, 3, "novita", sandbox.CauseProvisioning)
	stuck(&many, 2, "e2b", sandbox.CauseLeak)
	stuck(&many, 4, "e2b", sandbox.CauseBusyLoop)
	stuck(&other, 1, "e2b", sandbox.CauseOOM)
	stuck(&other, 1, "e2b", sandbox.CauseOOMChild)
	other.Join(many)
	unjudged := many
	unjudged.Unjudged = 10
	unlooked := one
	unlooked.Unjudged, unlooked.Unlooked = 5, 5
	for want, c := range map[string]look.Census{
		"": none,
		"9 stuck: e2b 6 (4 busy loop, 2 memory leak), novita 3 (not started)":                                                                                                           many,
		"11 stuck: e2b 8 (4 busy loop, 2 memory leak, 2 out of memory), novita 3 (not started)":                                                                                         other,
		"9 stuck: e2b 6 (4 busy loop, 2 memory leak), novita 3 (not started); 10 not judged, since no source shows whether they are active: `sbx ls --where 'stuck == nil'` lists them": unjudged,
		"1 stuck, 5 not judged: `sbx ls --look` queries them":                                                                                                                           unlooked,
	} {
		assert.Equal(t, want, views.StuckSummary(c, "sbx", "ls --look"))
	}
	assert.Empty(t, views.StuckSummary(one, "sbx", "ls --look"), "the row says it")
	assert.Equal(t, map[sandbox.Cause]int{sandbox.CauseLeak: 2, sandbox.CauseBusyLoop: 4, sandbox.CauseProvisioning: 3}, many.CausesOfAll())
}
