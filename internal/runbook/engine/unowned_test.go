package engine_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestUnattendedARunbookKeepsWhatIsNotOwned: the act of a cause ends by itself only what is ours, as cleanup does. A
// person at the gate, and one that was named by its reference, decide otherwise.
func TestUnattendedARunbookKeepsWhatIsNotOwned(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		word   string
		person *person
		theirs sandbox.State
	}{
		"nobody watches": {"", &person{}, sandbox.StateRunning},
		"one is named":   {"prod/theirs0001", &person{}, sandbox.StateTerminated},
		"somebody types": {"", &person{answer: typesWords}, sandbox.StateTerminated},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			ours, theirs := looping("ours000001"), looping("theirs0001")
			ours.Sandbox.Labels = map[string]string{sandbox.LabelOwner: "sbx"}
			p := prod(fake.Options{}, ours, theirs, calm("calm000001"))
			s := newSite(t, "", p)
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, ".config", "sbx", "config.yaml"), []byte("providers:\n  prod: {type: fake}\nlaunch: prod\n"), 0o600))
			run := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Word: tc.word, Yes: true, MaxDelete: 5}, tc.person)
			assert.Equal(t, tc.theirs, stateOf(t, p, "theirs0001"))
			assert.Equal(t, sandbox.StateRunning, stateOf(t, p, "calm000001"))
			if tc.word != "" {
				return
			}
			assert.Equal(t, sandbox.StateTerminated, stateOf(t, p, "ours000001"))
			if tc.theirs != sandbox.StateRunning {
				return
			}
			var kept []engine.Target
			for _, step := range run.Steps {
				if step.Act != nil {
					kept = append(kept, step.Act.Kept...)
				}
			}
			var found bool
			for _, k := range kept {
				found = found || k.Ref == "prod/theirs0001" && k.KeptBecause == "not yours"
			}
			assert.True(t, found, "%v", kept)
		})
	}
}

// TestUnattendedNoEmergencyEndsWhatIsOthers: a provider's own cleanup asks for no owner.
func TestUnattendedNoEmergencyEndsWhatIsOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := []providers.Quota{{Name: "sandboxes", Used: new(9.0), Limit: new(10.0)}}
		for owned, asked := range map[string]int{"": 0, ", owned: all": 1} {
			p := prod(fake.Options{Quotas: full}, looping("theirs0001"))
			s := newSite(t, "", p)
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, ".config", "sbx", "config.yaml"), []byte("providers:\n  prod: {type: fake"+owned+"}\nlaunch: prod\n"), 0o600))
			s.run(t, engine.Request{Book: written(t, emergency), Procedure: "urgent", Yes: true, MaxDelete: 5, Production: []string{"prod"}}, &person{})
			assert.Len(t, p.Calls(fake.OpCleanup), asked, owned)
		}
	})
}
