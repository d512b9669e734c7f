package providertest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func verifyChecks() []Check {
	return []Check{
		{"verify_does_not_prove_what_runs", "verify", verifyRunning},
		{"verify_proves_an_end", "verify", verifyEnded},
		{"verify_proves_a_delete", "verify", verifyDeleted},
		{"verify_takes_no_forgetting_for_an_independent_witness", "verify", verifyForgotten},
	}
}

// query is that of a fleet to which Get showed the end a minute ago, so that no
// provider has to let time pass between two looks.
func query(remove bool) providers.EndQuery {
	now := time.Now()
	return providers.EndQuery{Delete: remove, Since: now.Add(-time.Minute), Now: now}
}

func verifyRunning(t T, s *Subject) {
	v := ability[providers.Verifier](t, s)
	id := s.start(t, sandbox.Spec{})
	for _, remove := range []bool{false, true} {
		proof, err := v.VerifyEnd(s.context(t), id, query(remove))
		require.NoError(t, err)
		assert.NotEqual(t, sandbox.True, proof.Ended, "it runs, and its end is proved (delete: %v)", remove)
		assert.NotEmpty(t, proof.Reason, "what is not proved says why")
	}
	got, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, got.State, "looking for an end brought it about")
}

func verifyEnded(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	s.end(t, id)
	s.proved(t, id, false)
}

func verifyDeleted(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	require.NoError(t, s.P.Terminate(s.context(t), id, providers.TerminateOptions{Delete: true}))
	s.becomes(t, id, "deleted", func(_ sandbox.Sandbox, err error) bool { return missing(err) })
	s.proved(t, id, true)
}

// verifyForgotten: the machine runs, and every record of it is gone. Whatever a look
// makes of that, it may not call it independent of the records.
func verifyForgotten(t T, s *Subject) {
	if s.c.Orphan == nil {
		t.Skipf("%s cannot be staged to forget what runs", s.P.Type())
	}
	v := ability[providers.Verifier](t, s)
	id := s.c.Orphan(t, s.P)
	_, err := s.P.Get(s.context(t), id)
	require.True(t, missing(err), "its record is gone: %v", err)
	for _, remove := range []bool{false, true} {
		q := query(remove)
		q.Request = &sandbox.EndRequest{At: q.Since, Detail: "HTTP 500", Delete: remove, StartedAt: q.Since.Add(-time.Hour)}
		proof, err := v.VerifyEnd(s.context(t), id, q)
		if err == nil {
			assert.False(t, proof.Ended == sandbox.True && proof.Independent, "it runs, and its end is proved beyond its records (delete: %v)", remove)
		}
	}
}

// proved waits for the proof of an end that Get has shown.
func (s *Subject) proved(t T, id string, remove bool) {
	t.Helper()
	v := ability[providers.Verifier](t, s)
	var proof providers.Proof
	var err error
	require.True(t, s.c.Eventually(s.c.Limit, func() bool {
		proof, err = v.VerifyEnd(s.context(t), id, query(remove))
		return err == nil && proof.Ended == sandbox.True
	}), "an end is never proved: %s, %v", proof.Reason, err)
	assert.NotEmpty(t, proof.Evidence, "a proof has evidence")
}
