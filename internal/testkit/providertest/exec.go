package providertest

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

type execResult struct {
	stdout, stderr bytes.Buffer
	exit           sandbox.Exit
	err            error
}

func (s *Subject) execCommand(ctx context.Context, id, stdin string, c providers.Command) *execResult {
	e := &execResult{}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &e.stdout, &e.stderr
	if commander, ok := providers.As[providers.Commander](s.P); ok {
		e.exit, e.err = commander.Exec(ctx, id, c)
	}
	return e
}

func shProgram(script string) providers.Command {
	return providers.Command{Args: []string{"sh", "-c", script}}
}

func checkExecStreams(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	got := s.execCommand(s.callContext(t), id, "", shProgram("echo out; echo err >&2; exit 3"))
	require.NoError(t, got.err, "a program that fails is no error of the call")
	require.NotNil(t, got.exit.Code)
	assert.Equal(t, 3, *got.exit.Code)
	assert.Equal(t, "out\n", got.stdout.String(), "stdout alone")
	assert.Equal(t, "err\n", got.stderr.String(), "stderr alone")
	well := s.execCommand(s.callContext(t), id, "", shProgram("exit 0"))
	require.NoError(t, well.err)
	require.NotNil(t, well.exit.Code, "success has a code, too")
	assert.Zero(t, *well.exit.Code)
}

// ownCodes are exit codes that mean a failure of a launcher, a reader, a limit or a connection
// elsewhere. Where the exit was observed, each is the program's own.
func ownCodes() []int { return []int{124, 125, 141, 255} }

func checkOwnExit(t T, exit *sandbox.Exit, code int) {
	require.NotNil(t, exit.Code, "a program that exits with %d has a code", code)
	assert.Equal(t, code, *exit.Code, "it exited with %d", code)
	assert.Equal(t, sandbox.ClassAgentError, exit.Class, "%d is the program's own exit code", code)
}

func checkExecOwnCodes(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	for _, code := range ownCodes() {
		got := s.execCommand(s.callContext(t), id, "", shProgram("exit "+strconv.Itoa(code)))
		require.NoError(t, got.err, "exit %d", code)
		checkOwnExit(t, &got.exit, code)
	}
}

func checkExecStdin(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	text := strings.Repeat("0123456789abcde\n", 8192) // more than the capacity of a pipe
	got := s.execCommand(s.callContext(t), id, text, providers.Command{Args: []string{"cat"}})
	require.NoError(t, got.err)
	require.Equal(t, len(text), got.stdout.Len())
	assert.True(t, bytes.Equal([]byte(text), got.stdout.Bytes()), "stdin came back changed")
}

func checkExecEnv(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	c := shProgram("echo got $SBX_CHECK")
	c.Env = []string{"SBX_CHECK=seen"}
	got := s.execCommand(s.callContext(t), id, "", c)
	require.NoError(t, got.err)
	assert.Equal(t, "got seen\n", got.stdout.String())
}

func checkExecMissing(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	got := s.execCommand(s.callContext(t), id, "", providers.Command{Args: []string{"no-such-program-7f3a"}})
	assert.Equal(t, fault.KindCommandNotFound, fault.KindOf(got.err), "exit %v, %v", got.exit.Code, got.err)
}

func checkExecCanceled(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := &trigger{fire: cancel}
	var err error
	require.True(t, s.returnsInTime(func() {
		c := shProgram("echo begun; sleep 600")
		c.Stdout = said
		if commander, ok := providers.As[providers.Commander](s.P); ok {
			_, err = commander.Exec(ctx, id, c)
		}
	}), "exec goes on after ctx has ended")
	assert.Equal(t, fault.KindCanceled, fault.KindOf(err), "%v", err)
	s.checkStillRuns(t, id, "the sandbox ended with the command")
}

type trigger struct{ fire func() }

// Write implements io.Writer.
func (w *trigger) Write(b []byte) (int, error) {
	w.fire()
	return len(b), nil
}

// expiryTolerance is the tolerance of an expiry: providers count from different moments and in whole
// seconds.
const expiryTolerance = 5 * time.Second

func checkCreateSpec(t T, s *Subject) {
	spec := sandbox.Spec{
		Name: "applied", TaskID: "t-7f3a", AgentType: "conformance",
		Labels: map[string]string{"sbx-check": "applied"}, TTL: 10 * time.Minute,
	}
	before := time.Now()
	id := s.startSandbox(t, spec)
	got, err := s.P.Get(s.callContext(t), id)
	after := time.Now()
	require.NoError(t, err)
	assert.Equal(t, spec.Name, got.Name)
	assert.Equal(t, spec.TaskID, got.TaskID)
	assert.Equal(t, spec.AgentType, got.AgentType)
	assert.Equal(t, "applied", got.Labels["sbx-check"])
	assert.WithinRange(t, got.ExpiresAt, before.Add(spec.TTL-expiryTolerance), after.Add(spec.TTL+expiryTolerance), "the expiry follows the TTL")
	_, source := got.Age(time.Now().Add(expiryTolerance))
	assert.NotEqual(t, sandbox.AgeUnknown, source, "a created sandbox has an age")
}

func checkCreateIDs(t T, s *Subject) {
	seen := map[string]bool{}
	for range s.c.Many {
		id := s.startSandbox(t, sandbox.Spec{Name: "same"})
		assert.False(t, seen[id], "%s was given twice", id)
		seen[id] = true
	}
}

// checkCreateLabels checks that a sandbox can be found by its labels, as after a lost answer of a
// create.
func checkCreateLabels(t T, s *Subject) {
	marks := map[string]string{sandbox.LabelTask: "t-7f3a", sandbox.LabelNonce: "n-7f3ac2-1"}
	s.startSandbox(t, sandbox.Spec{})
	id := s.startSandbox(t, sandbox.Spec{TaskID: marks[sandbox.LabelTask], Labels: marks})
	for key, value := range marks {
		found := 0
		for b, err := range s.P.List(s.callContext(t), providers.Query{Labels: map[string]string{key: value}}) {
			require.NoError(t, err)
			if b.ID == id {
				found++
				assert.Equal(t, value, b.Labels[key])
			} else {
				assert.NotEqual(t, value, b.Labels[key], "another bears its mark")
			}
		}
		assert.Equal(t, 1, found, "it is not found by %s=%s", key, value)
	}
}

// checkCreateMissingProgram checks that a missing program is an error of the create that leaves no
// sandbox.
func checkCreateMissingProgram(t T, s *Subject) {
	s.startSandbox(t, sandbox.Spec{})
	before := len(s.readList(t))
	launcher := requireAbility[providers.Launcher](t, s)
	_, err := launcher.Create(s.callContext(t), sandbox.Spec{Command: []string{"no-such-program-7f3a"}})
	assert.Equal(t, fault.KindCommandNotFound, fault.KindOf(err), "%v", err)
	after := 0
	for _, b := range s.readList(t) {
		if !b.State.Ended() && b.State != sandbox.StateTerminating {
			after++
		}
	}
	assert.LessOrEqual(t, after, before, "it leaves a sandbox that idles")
}

func checkCreateSecrets(t T, s *Subject) {
	const value = "hidden-7f3ac2"
	id := s.startSandbox(t, sandbox.Spec{Env: []string{"SBX_SECRET=" + value}})
	if _, ok := providers.As[providers.LogReader](s.P); ok {
		got, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), id, providers.LogQuery{})
		require.NoError(t, err)
		assert.NotContains(t, fmt.Sprintf("%+v", got), value, "logs show an environment value")
	}
	got, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprintf("%+v", got), value, "get shows an environment value")
	assert.NotContains(t, fmt.Sprintf("%+v", s.readList(t)), value, "list shows an environment value")
	if r, ok := providers.As[providers.EventReader](s.P); ok {
		events, err := r.Events(s.callContext(t), id)
		require.NoError(t, err)
		assert.NotContains(t, fmt.Sprintf("%+v", events), value, "events show an environment value")
	}
}
