package providertest

import (
	"bytes"
	"context"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func execChecks() []Check {
	return []Check{
		{"exec_returns_code_and_streams", "exec", execStreams},
		{"exec_reads_stdin", "exec", execStdin},
		{"exec_passes_env", "exec", execEnv},
		{"exec_of_missing_command", "exec", execMissing},
		{"exec_in_unknown_is_not_found", "exec", execUnknown},
		{"exec_ends_with_ctx", "exec", execCanceled},
	}
}

type executed struct {
	stdout, stderr bytes.Buffer
	exit           sandbox.Exit
	err            error
}

func (s *Subject) exec(ctx context.Context, id, stdin string, c providers.Command) *executed {
	e := &executed{}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &e.stdout, &e.stderr
	if commander, ok := providers.As[providers.Commander](s.P); ok {
		e.exit, e.err = commander.Exec(ctx, id, c)
	}
	return e
}

func shell(script string) providers.Command {
	return providers.Command{Args: []string{"sh", "-c", script}}
}

func execStreams(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	got := s.exec(s.context(t), id, "", shell("echo out; echo err >&2; exit 3"))
	require.NoError(t, got.err, "a program that fails is no error of the call")
	require.NotNil(t, got.exit.Code)
	assert.Equal(t, 3, *got.exit.Code)
	assert.Equal(t, "out\n", got.stdout.String(), "stdout alone")
	assert.Equal(t, "err\n", got.stderr.String(), "stderr alone")
	well := s.exec(s.context(t), id, "", shell("exit 0"))
	require.NoError(t, well.err)
	require.NotNil(t, well.exit.Code, "success has a code, too")
	assert.Zero(t, *well.exit.Code)
}

func execStdin(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	text := strings.Repeat("0123456789abcde\n", 8192) // more than any pipe holds
	got := s.exec(s.context(t), id, text, providers.Command{Args: []string{"cat"}})
	require.NoError(t, got.err)
	require.Equal(t, len(text), got.stdout.Len())
	assert.True(t, bytes.Equal([]byte(text), got.stdout.Bytes()), "stdin came back changed")
}

func execEnv(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	c := shell("echo got $SBX_CHECK")
	c.Env = []string{"SBX_CHECK=seen"}
	got := s.exec(s.context(t), id, "", c)
	require.NoError(t, got.err)
	assert.Equal(t, "got seen\n", got.stdout.String())
}

func execMissing(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	got := s.exec(s.context(t), id, "", providers.Command{Args: []string{"no-such-program-7f3a"}})
	assert.Equal(t, fault.KindCommandNotFound, fault.KindOf(got.err), "exit %v, %v", got.exit.Code, got.err)
}

func execUnknown(t T, s *Subject) {
	got := s.exec(s.context(t), unknownID, "", providers.Command{Args: []string{"true"}})
	assert.Equal(t, fault.KindNotFound, fault.KindOf(got.err), "%v", got.err)
}

func execCanceled(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := &trigger{fire: cancel}
	var err error
	require.True(t, s.returns(func() {
		c := shell("echo begun; sleep 600")
		c.Stdout = said
		if commander, ok := providers.As[providers.Commander](s.P); ok {
			_, err = commander.Exec(ctx, id, c)
		}
	}), "exec goes on after ctx has ended")
	assert.Equal(t, fault.KindCanceled, fault.KindOf(err), "%v", err)
	got, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, got.State, "the sandbox ended with the command")
}

// trigger fires at the first byte that is written to it.
type trigger struct{ fire func() }

// Write fires.
func (w *trigger) Write(b []byte) (int, error) {
	w.fire()
	return len(b), nil
}
