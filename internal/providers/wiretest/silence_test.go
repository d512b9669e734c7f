package wiretest_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"sbx/internal/providers/providertest"
	"sbx/internal/providers/wiretest"
)

func silentSmall(t wiretest.T, p small) wiretest.Silent {
	s := smallSubject(t, p)
	return wiretest.Silent{Server: s.Server, P: s.P, ID: s.ID, Inside: []string{"POST /boxes/{id}/exec"}}
}

func TestAnHonestProviderSurvivesSilence(t *testing.T) {
	t.Parallel()
	wiretest.RunSilence(t, func(wt wiretest.T) wiretest.Silent { return silentSmall(wt, small{}) })
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				v := providertest.Record(t.Context(), func(r providertest.T) {
					for _, verb := range wiretest.Verbs() {
						if verb.Name == tc.verb {
							wiretest.JudgeSilence(r.Context(), r, verb, tc.inside, 0, silentSmall(r, tc.liar))
						}
					}
				})
				assert.True(t, v.Failed, "silence does not notice")
				assert.Contains(t, strings.Join(v.Messages, "\n"), tc.said)
			})
		})
	}
}

func TestALiarTurnsLossesRed(t *testing.T) {
	t.Parallel()
	for name, liar := range map[string]small{"": {}, "what was lost was nothing": {deaf: true}} {
		v := providertest.Record(t.Context(), func(r providertest.T) {
			s := smallSubject(r, liar)
			wiretest.JudgeLosses(r.Context(), r, wiretest.Lossy{Server: s.Server, P: s.P, Inside: []string{"POST /boxes/{id}/exec"}})
		})
		assert.Equal(t, name != "", v.Failed, "%s: %v", name, v.Messages)
	}
}
