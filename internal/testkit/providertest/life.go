package providertest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// startLingering starts a sandbox that stays after the end of its program, which writes two lines and
// fails.
func (s *Subject) startLingering(t T) string {
	t.Helper()
	for _, needed := range []string{"create", "exit"} {
		if !hasAbility(s.P, needed) {
			t.Skipf("%s has no %s", s.P.Type(), needed)
		}
	}
	return s.startSandbox(t, sandbox.Spec{Command: []string{"sh", "-c", "echo one; sleep 0.1; echo two; exit 3"}, KeepAfterExit: true})
}

func (s *Subject) awaitExit(t T, id string) *sandbox.Exit {
	t.Helper()
	r := requireAbility[providers.ExitReader](t, s)
	var exit *sandbox.Exit
	var err error
	require.True(t, s.c.Eventually(s.c.Limit, func() bool {
		exit, err = r.Exit(s.callContext(t), id)
		return exit != nil
	}), "no exit comes, but %v", err)
	require.NoError(t, err)
	return exit
}

func (s *Subject) checkStillRuns(t T, id, why string) {
	t.Helper()
	got, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err, why)
	assert.Equal(t, sandbox.StateRunning, got.State, why)
}

func checkLingerKeeps(t T, s *Subject) {
	id := s.startLingering(t)
	exit := s.awaitExit(t, id)
	require.NotNil(t, exit.Code, "a program that exits has a code")
	assert.Equal(t, 3, *exit.Code)
	s.checkStillRuns(t, id, "it shall linger")
	s.endSandbox(t, id)
}

// checkLingerFollow checks that the exit can be read as soon as the log has ended.
func checkLingerFollow(t T, s *Subject) {
	id := s.startLingering(t)
	var got []sandbox.LogLine
	var err error
	ctx := s.callContext(t)
	require.True(t, s.returnsInTime(func() {
		got, err = readLogs(ctx, requireAbility[providers.LogReader](t, s), id, providers.LogQuery{Follow: true})
	}) && ctx.Err() == nil, "follow goes on after the program has ended")
	require.NoError(t, err, "the end of the program is a plain end of its log")
	assert.Equal(t, []string{"one", "two"}, lineTexts(got))
	exit, err := requireAbility[providers.ExitReader](t, s).Exit(s.callContext(t), id)
	require.NoError(t, err)
	assert.NotNil(t, exit, "its log has ended, and its exit is not told")
	s.checkStillRuns(t, id, "it shall linger")
}

func checkLingerExec(t T, s *Subject) {
	id := s.startLingering(t)
	s.awaitExit(t, id)
	for range 2 { // also when no process ran in between
		got := s.execCommand(s.callContext(t), id, "", shProgram("echo after; exit 4"))
		require.NoError(t, got.err, "a command after the program's end")
		require.NotNil(t, got.exit.Code)
		assert.Equal(t, 4, *got.exit.Code)
		assert.Equal(t, "after\n", got.stdout.String())
	}
	s.checkStillRuns(t, id, "it shall linger")
}

// checkLingerExit checks that the end of the sandbox does not change the exit of the program. It may
// replace it, without a code.
func checkLingerExit(t T, s *Subject) {
	id := s.startLingering(t)
	before := s.awaitExit(t, id)
	again, err := requireAbility[providers.ExitReader](t, s).Exit(s.callContext(t), id)
	require.NoError(t, err)
	require.NotNil(t, again)
	assert.Equal(t, before.Code, again.Code, "the exit has changed")
	s.endSandbox(t, id)
	var after []*sandbox.Exit
	if exit, err := requireAbility[providers.ExitReader](t, s).Exit(s.callContext(t), id); err == nil {
		require.NotNil(t, exit, "what has ended has an exit")
		after = append(after, exit)
	}
	if got, err := s.P.Get(s.callContext(t), id); err == nil && got.Exit != nil {
		after = append(after, got.Exit)
	}
	for _, exit := range after {
		if exit.Code != nil {
			assert.Equal(t, 3, *exit.Code, "what ended the sandbox became its program's exit")
			assert.Equal(t, before.Class, exit.Class, "what ended the sandbox became its program's exit")
		}
	}
}

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
	s.awaitState(t, id, "deleted", s.c.EndLimit, func(_ sandbox.Sandbox, err error) bool {
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
	s.awaitState(t, id, "deleted", s.c.EndLimit, func(_ sandbox.Sandbox, err error) bool { return isNotFound(err) })
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
	require.True(t, s.c.Eventually(s.c.EndLimit, func() bool {
		proof, err = v.VerifyEnd(s.callContext(t), id, endQuery(remove))
		return err == nil && proof.Ended == sandbox.True
	}), "an end is never proved: %s, %v", proof.Reason, err)
	assert.NotEmpty(t, proof.Evidence, "a proof has evidence")
}
