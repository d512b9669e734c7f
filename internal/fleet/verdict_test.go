package fleet_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
)

// endings reads "verified", "failed:auth" and the like.
func endings(words string) []sandbox.Ending {
	var out []sandbox.Ending
	for i, w := range strings.Fields(words) {
		outcome, kind, _ := strings.Cut(w, ":")
		e := sandbox.Ending{
			Ref:     sandbox.Ref{Provider: "prod", ID: "box-" + string(rune('a'+i))},
			Outcome: sandbox.Outcome(outcome), Reason: "because of " + w,
		}
		if kind != "" {
			e.Err = fault.New(fault.Kind(kind), "it is %s", kind).At("prod", "terminate "+e.Ref.ID).WithHint("try %s", kind)
		}
		out = append(out, e)
	}
	return out
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		endings string
		named   bool
		want    fault.Kind
		says    string
	}{
		"nothing":                    {"", true, "", ""},
		"all done":                   {"verified already_gone", true, "", ""},
		"one failed":                 {"failed:not_found", true, fault.KindNotFound, "prod: terminate box-a: it is not_found"},
		"all failed alike":           {"failed:auth failed:auth", true, fault.KindAuth, "2 of 2 sandboxes are not verified: 2 failed"},
		"some failed":                {"failed:auth verified", true, fault.KindPartial, "1 of 2 sandboxes are not verified: 1 failed"},
		"all failed, unlike":         {"failed:auth failed:unavailable", true, fault.KindPartial, "2 failed"},
		"one accepted":               {"accepted", true, fault.KindUnverified, "prod: terminate box-a: because of accepted"},
		"accepted beside done":       {"accepted verified stuck", true, fault.KindUnverified, "1 accepted, 1 stuck"},
		"accepted beside failed":     {"accepted failed:auth", true, fault.KindPartial, "1 accepted, 1 failed"},
		"changed, named":             {"changed", true, fault.KindPartial, "because of changed"},
		"skipped beside done, named": {"skipped verified", true, fault.KindPartial, "1 skipped"},
		"changed, selected":          {"changed skipped verified", false, "", ""},
		"failed and skipped":         {"failed:auth skipped", false, fault.KindPartial, "1 failed"},
		"interrupted":                {"verified not_attempted:canceled accepted:canceled", true, fault.KindCanceled, "1 accepted, 1 not_attempted"},
		"out of time":                {"failed:auth not_attempted:timeout", true, fault.KindTimeout, "1 failed, 1 not_attempted"},
		"silent provider":            {"not_attempted:unavailable not_attempted:unavailable", true, fault.KindUnavailable, "2 not_attempted"},
		"a failure without an error": {"failed", true, fault.KindUnknown, "because of failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fleet.Verdict(endings(tc.endings), tc.named)
			assert.Equal(t, tc.want, fault.KindOf(err), "%v", err)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
			}
		})
	}
}

// TestARunThatFindsAllChangedIsNotDone: exit 0 would say that what was selected has ended.
func TestARunThatFindsAllChangedIsNotDone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]fault.Kind{
		"": "", "changed": fault.KindPartial, "changed changed": fault.KindPartial, "changed verified": "", "changed skipped": "", "skipped": "",
	} {
		assert.Equal(t, want, fault.KindOf(fleet.AllChanged(endings(text))), text)
	}
}

func TestVerdictHints(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "try auth", fault.HintOf(fleet.Verdict(endings("accepted failed:auth"), true)))
	assert.Equal(t, "check again with `sbx wait prod/box-b --for ended`, or give more time with --wait",
		fault.HintOf(fleet.Verdict(endings("verified stuck"), true)))
	assert.Contains(t, fault.HintOf(fleet.Verdict(endings("accepted"), true)), "sbx wait prod/box-a")
	assert.Empty(t, fault.HintOf(fleet.Verdict(endings("changed changed"), true)))
	lost := endings("accepted")
	lost[0].Request = &sandbox.EndRequest{Detail: "503"}
	assert.NotContains(t, fault.HintOf(fleet.Verdict(lost, true)), "sbx wait", "waiting proves nothing where the provider has forgotten it")
	assert.Contains(t, fault.HintOf(fleet.Verdict(lost, true)), "`sbx terminate prod/box-a` looks again, and requests the end again where it is still found")
}

// TestWhatWasKeptOnPurposeIsNotToBeRepeated: the same call ends none of it later.
func TestWhatWasKeptOnPurposeIsNotToBeRepeated(t *testing.T) {
	t.Parallel()
	assert.False(t, fault.Retryable(fleet.Verdict(endings("skipped"), true)))
	assert.False(t, fault.Retryable(fleet.Verdict(endings("verified changed skipped"), true)))
	assert.True(t, fault.Retryable(fleet.Verdict(endings("skipped failed:unavailable"), true)))
}

func TestCount(t *testing.T) {
	t.Parallel()
	var words []string
	for i, o := range sandbox.Outcomes() {
		for range i + 1 {
			words = append(words, string(o))
		}
	}
	want := fleet.Counts{Selected: 36, Verified: 1, AlreadyGone: 2, Accepted: 3, Stuck: 4, Failed: 5, Changed: 6, Skipped: 7, NotAttempted: 8}
	assert.Equal(t, want, fleet.Count(endings(strings.Join(words, " "))))
	assert.Equal(t, fleet.Counts{Selected: 1, Failed: 1}, fleet.Count(endings("nonsense")))

	raw, err := json.Marshal(fleet.Counts{})
	require.NoError(t, err)
	for _, o := range sandbox.Outcomes() {
		assert.Contains(t, string(raw), `"`+string(o)+`":0`, "every outcome is there, also at 0")
	}
	assert.Contains(t, string(raw), `"selected":0`)
}
