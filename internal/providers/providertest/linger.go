package providertest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func lingerChecks() []Check {
	return []Check{
		{"linger_keeps_the_sandbox", "exit", lingerKeeps},
		{"linger_ends_a_follow_with_the_program", "logs", lingerFollow},
		{"linger_lets_commands_in", "exec", lingerExec},
		{"linger_keeps_the_exit", "exit", lingerExit},
	}
}

// linger brings a sandbox into being that stays behind its program, which writes
// two lines and fails.
func (s *Subject) linger(t T) string {
	t.Helper()
	for _, needed := range []string{"create", "exit"} {
		if !able(s.P, needed) {
			t.Skipf("%s has no %s", s.P.Type(), needed)
		}
	}
	return s.start(t, sandbox.Spec{Command: []string{"sh", "-c", "echo one; sleep 0.1; echo two; exit 3"}, Linger: true})
}

// exited waits for the end of a program.
func (s *Subject) exited(t T, id string) *sandbox.Exit {
	t.Helper()
	r := ability[providers.ExitReader](t, s)
	var exit *sandbox.Exit
	var err error
	require.True(t, s.c.Eventually(s.c.Limit, func() bool {
		exit, err = r.Exit(s.context(t), id)
		return exit != nil
	}), "no exit comes, but %v", err)
	require.NoError(t, err)
	return exit
}

// stays says that the sandbox runs on behind its program.
func (s *Subject) stays(t T, id string) {
	t.Helper()
	got, err := s.P.Get(s.context(t), id)
	require.NoError(t, err, "it shall linger")
	assert.Equal(t, sandbox.StateRunning, got.State, "it shall linger")
}

func lingerKeeps(t T, s *Subject) {
	id := s.linger(t)
	exit := s.exited(t, id)
	require.NotNil(t, exit.Code, "a program that exits has a code")
	assert.Equal(t, 3, *exit.Code)
	s.stays(t, id)
	s.end(t, id)
}

// lingerFollow: whoever has read to the end can ask for the exit at once.
func lingerFollow(t T, s *Subject) {
	id := s.linger(t)
	var got []sandbox.LogLine
	var err error
	ctx := s.context(t)
	require.True(t, s.returns(func() {
		got, err = logs(ctx, ability[providers.LogReader](t, s), id, providers.LogQuery{Follow: true})
	}) && ctx.Err() == nil, "follow goes on after the program has ended")
	require.NoError(t, err, "the end of the program is a plain end of its log")
	assert.Equal(t, []string{"one", "two"}, texts(got))
	exit, err := ability[providers.ExitReader](t, s).Exit(s.context(t), id)
	require.NoError(t, err)
	assert.NotNil(t, exit, "its log has ended, and its exit is not told")
	s.stays(t, id)
}

func lingerExec(t T, s *Subject) {
	id := s.linger(t)
	s.exited(t, id)
	for range 2 { // also when nothing at all ran inside in between
		got := s.exec(s.context(t), id, "", shell("echo after; exit 4"))
		require.NoError(t, got.err, "a command after the program's end")
		require.NotNil(t, got.exit.Code)
		assert.Equal(t, 4, *got.exit.Code)
		assert.Equal(t, "after\n", got.stdout.String())
	}
	s.stays(t, id)
}

// lingerExit: how the sandbox ended says nothing of the program. It may be all that
// is left to be told, and is then no code.
func lingerExit(t T, s *Subject) {
	id := s.linger(t)
	before := s.exited(t, id)
	again, err := ability[providers.ExitReader](t, s).Exit(s.context(t), id)
	require.NoError(t, err)
	require.NotNil(t, again)
	assert.Equal(t, before.Code, again.Code, "the exit has changed")
	s.end(t, id)
	var after []*sandbox.Exit
	if exit, err := ability[providers.ExitReader](t, s).Exit(s.context(t), id); err == nil {
		require.NotNil(t, exit, "what has ended has an exit")
		after = append(after, exit)
	}
	if got, err := s.P.Get(s.context(t), id); err == nil && got.Exit != nil {
		after = append(after, got.Exit)
	}
	for _, exit := range after {
		if exit.Code != nil {
			assert.Equal(t, 3, *exit.Code, "what ended the sandbox became its program's exit")
			assert.Equal(t, before.Class, exit.Class, "what ended the sandbox became its program's exit")
		}
	}
}
