package wiretest_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

func silentSmall(t wiretest.T, p small) wiretest.Subject {
	s := smallSubject(t, p)
	return wiretest.Subject{Server: s.Server, P: s.P, ID: s.ID, Inside: []string{"POST /boxes/{id}/exec"}}
}

func TestAnHonestProviderSurvivesSilence(t *testing.T) {
	t.Parallel()
	wiretest.RunSilence(t, func(wt wiretest.T) wiretest.Subject { return silentSmall(wt, small{}) })
}

func TestLiarsTurnSilenceRed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		verb   string
		inside bool
		liar   small
		said   string
	}{
		"a cleanup that cleans up after itself": {"exec", true, small{recurses: true}, "asks again and again"},
		"a cleanup that takes its time":         {"exec", true, small{lingers: true}, "outlives its limit"},
		"no answer is a good end":               {"exec", false, small{deaf: true}, "all is well"},
		"no answer is an empty list":            {"list", false, small{lists: silent}, "all is well"},
		"it waits for its caller":               {"get", false, small{waits: true}, "waits for ever"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			v := providertest.Record(t.Context(), func(r providertest.T) {
				for _, verb := range wiretest.Verbs() {
					if verb.Name == tc.verb {
						wiretest.CheckSilence(r.Context(), r, verb, tc.inside, 0, silentSmall(r, tc.liar))
					}
				}
			})
			assert.True(t, v.Failed, "silence does not notice")
			assert.Contains(t, strings.Join(v.Messages, "\n"), tc.said)
		})
	}
}

func TestALiarTurnsLossesRed(t *testing.T) {
	t.Parallel()
	for name, liar := range map[string]small{"": {}, "what was lost was nothing": {deaf: true}} {
		v := providertest.Record(t.Context(), func(r providertest.T) {
			s := smallSubject(r, liar)
			wiretest.CheckLosses(r.Context(), r, wiretest.Subject{Server: s.Server, P: s.P, Inside: []string{"POST /boxes/{id}/exec"}})
		})
		assert.Equal(t, name != "", v.Failed, "%s: %v", name, v.Messages)
	}
}

func TestRefusedCreates(t *testing.T) {
	t.Parallel()
	judge := func(t *testing.T, r wiretest.Refusal, liar small) (v providertest.Verdict) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			v = providertest.Record(t.Context(), func(wt providertest.T) {
				s := smallSubject(wt, liar)
				r.Check(wt.Context(), wt, wiretest.Subject{Server: s.Server, P: s.P, Create: "POST /boxes"})
			})
		})
		return v
	}
	refusals := map[string]wiretest.Refusal{}
	for _, r := range wiretest.Refusals() {
		refusals[r.Name] = r
		v := judge(t, r, small{})
		assert.False(t, v.Failed, "%s: %v", r.Name, v.Messages)
	}
	for name, tc := range map[string]struct {
		refusal string
		liar    small
		said    string
	}{
		"it is sent again":                  {"502", small{twiceMade: true}, "how often it is asked"},
		"it makes two":                      {"reset after it was made", small{twiceMade: true}, "what the server has made"},
		"a conflict is the end":             {"409 after an earlier try has made it", small{blind: true}, "409 after an earlier try"},
		"no answer is a proof":              {"no answer after it was made", small{sure: true}, "nothing was made"},
		"an answer without id is a sandbox": {"an object without id", small{empties: true}, "an object without id"},
	} {
		v := judge(t, refusals[tc.refusal], tc.liar)
		assert.True(t, v.Failed, "%s: nobody notices", name)
		assert.Contains(t, strings.Join(v.Messages, "\n"), tc.said, name)
	}
}
