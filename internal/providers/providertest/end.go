package providertest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func checkTerminate(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	s.endSandbox(t, id)
	got, err := s.P.Get(s.callContext(t), id)
	assert.True(t, showsEnd(got, err), "an end is for good: %q, %v", got.State, err)
	if err == nil {
		assert.Equal(t, id, got.ID)
	}
}

func checkDelete(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	require.NoError(t, s.P.Terminate(s.callContext(t), id, providers.TerminateOptions{Delete: true}))
	s.awaitState(t, id, "deleted", func(_ sandbox.Sandbox, err error) bool {
		return isNotFound(err)
	})
}

func checkTerminateTwice(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	s.endSandbox(t, id)
	err := s.P.Terminate(s.callContext(t), id, providers.TerminateOptions{})
	require.Error(t, err, "what has ended cannot be asked to end")
	assert.True(t, isNotFound(err), "%v", err)
}

func checkTerminateOne(t T, s *Subject) {
	first, second := s.startSandbox(t, sandbox.Spec{}), s.startSandbox(t, sandbox.Spec{})
	s.endSandbox(t, first)
	s.checkStillRuns(t, second, "another sandbox was hit")
}

func checkEndedListing(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	s.endSandbox(t, id)
	for _, b := range s.readList(t) {
		if b.ID == id {
			assert.True(t, showsEnd(b, nil), "listed as %s after its end", b.State)
		}
	}
}

// endQuery is a query a minute after Get has shown the end, so that no provider waits between two
// reads.
func endQuery(remove bool) providers.EndQuery {
	now := time.Now()
	return providers.EndQuery{Delete: remove, Since: now.Add(-time.Minute), Now: now}
}

func checkVerifyRunning(t T, s *Subject) {
	v := requireAbility[providers.Verifier](t, s)
	id := s.startSandbox(t, sandbox.Spec{})
	for _, remove := range []bool{false, true} {
		proof, err := v.VerifyEnd(s.callContext(t), id, endQuery(remove))
		require.NoError(t, err)
		assert.NotEqual(t, sandbox.True, proof.Ended, "it runs, and its end is proved (delete: %v)", remove)
		assert.NotEmpty(t, proof.Reason, "what is not proved says why")
	}
	s.checkStillRuns(t, id, "looking for an end brought it about")
}

func checkVerifyEnd(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	s.endSandbox(t, id)
	s.awaitProof(t, id, false)
}

func checkVerifyDelete(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	require.NoError(t, s.P.Terminate(s.callContext(t), id, providers.TerminateOptions{Delete: true}))
	s.awaitState(t, id, "deleted", func(_ sandbox.Sandbox, err error) bool { return isNotFound(err) })
	s.awaitProof(t, id, true)
}

// checkVerifyForgotten verifies a sandbox that runs and has no record: no proof may be independent of
// the records.
func checkVerifyForgotten(t T, s *Subject) {
	if s.c.Orphan == nil {
		t.Skipf("%s cannot be staged to forget what runs", s.P.Type())
	}
	v := requireAbility[providers.Verifier](t, s)
	id := s.c.Orphan(t, s.P)
	_, err := s.P.Get(s.callContext(t), id)
	require.True(t, isNotFound(err), "its record is gone: %v", err)
	for _, remove := range []bool{false, true} {
		q := endQuery(remove)
		q.Request = &sandbox.EndRequest{At: q.Since, Detail: "HTTP 500", Delete: remove, StartedAt: q.Since.Add(-time.Hour)}
		proof, err := v.VerifyEnd(s.callContext(t), id, q)
		if err == nil {
			assert.False(t, proof.Ended == sandbox.True && proof.Independent, "it runs, and its end is proved beyond its records (delete: %v)", remove)
		}
	}
}

func (s *Subject) awaitProof(t T, id string, remove bool) {
	t.Helper()
	v := requireAbility[providers.Verifier](t, s)
	var proof providers.Proof
	var err error
	require.True(t, s.c.Eventually(s.c.Limit, func() bool {
		proof, err = v.VerifyEnd(s.callContext(t), id, endQuery(remove))
		return err == nil && proof.Ended == sandbox.True
	}), "an end is never proved: %s, %v", proof.Reason, err)
	assert.NotEmpty(t, proof.Evidence, "a proof has evidence")
}
