package incident

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Variables that make this binary one of many processes with an incident.
const (
	childDir  = "SBX_INCIDENTTEST_DIR"
	childDoes = "SBX_INCIDENTTEST_DOES" // a name in deeds
	childName = "SBX_INCIDENTTEST_NAME"
)

// perChild is how many notes a process appends.
const perChild = 30

// deeds are what such a process can do.
func deeds() map[string]func(f Folder, name string) error {
	return map[string]func(f Folder, name string) error{
		"append": func(f Folder, name string) error {
			for n := range perChild {
				if err := f.Append(context.Background(), "i-1", note(fmt.Sprintf("%s %d", name, n))); err != nil {
					return err
				}
			}
			return nil
		},
		"append for ever": func(f Folder, name string) error {
			for n := 0; ; n++ {
				if err := f.Append(context.Background(), "i-1", note(fmt.Sprintf("%s %d", name, n))); err != nil {
					return err
				}
				fmt.Println(n) // it is durable
			}
		},
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		_, _ = io.Copy(io.Discard, os.Stdin) // all start when it is closed
		if err := deeds()[os.Getenv(childDoes)](Folder{Dir: dir, Now: time.Now}, os.Getenv(childName)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child makes a process that begins when its standard input is closed.
func child(t *testing.T, f Folder, deed, name string) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childDir+"="+f.Dir, childDoes+"="+deed, childName+"="+name)
	gate, err := cmd.StdinPipe()
	require.NoError(t, err)
	return cmd, gate
}

// TestProcessesAppendAtOnce: several operators and a runbook write to one incident.
func TestProcessesAppendAtOnce(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	var all []*exec.Cmd
	var says []*strings.Builder
	var gates []io.Closer
	for n := range 4 {
		cmd, gate := child(t, f, "append", fmt.Sprintf("p%d", n))
		out := &strings.Builder{}
		cmd.Stderr = out
		require.NoError(t, cmd.Start())
		all, says, gates = append(all, cmd), append(says, out), append(gates, gate)
	}
	for _, gate := range gates {
		require.NoError(t, gate.Close())
	}
	for n, cmd := range all {
		require.NoError(t, cmd.Wait(), says[n].String())
	}
	i := read(t, f, "i-1")
	require.Empty(t, i.Problem)
	require.Len(t, i.Events, 1+4*perChild)
	last := map[string]int{}
	for _, e := range i.Events[1:] {
		var name string
		var n int
		_, err := fmt.Sscan(e.Text, &name, &n)
		require.NoError(t, err)
		assert.Equal(t, last[name], n, "the events of one process are in their order, none is lost")
		last[name]++
	}
}

// killed runs a deed and kills it with -9 after it has said something that many times.
func killed(t *testing.T, f Folder, deed string, after int) (said int) {
	t.Helper()
	cmd, gate := child(t, f, deed, "p")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, gate.Close())
	buffer := make([]byte, 1)
	for said < after {
		_, err := out.Read(buffer)
		require.NoError(t, err)
		if buffer[0] == '\n' {
			said++
		}
	}
	require.NoError(t, cmd.Process.Kill())
	rest, _ := io.ReadAll(out)
	said += strings.Count(string(rest), "\n")
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	return said
}

// TestAKillLosesNothingThatWasRecorded, and keeps nobody from going on.
func TestAKillLosesNothingThatWasRecorded(t *testing.T) {
	t.Parallel()
	f := started(t, "i-1")
	sum := 0
	for round := range 8 {
		sum += killed(t, f, "append for ever", 1+round%3)
		i := read(t, f, "i-1")
		require.Empty(t, i.Problem)
		require.GreaterOrEqual(t, len(i.Events), 1+sum, "what was durable is lost")
		sum = len(i.Events) - 1 // one more may have been written that it could not say
		require.NoError(t, f.Append(t.Context(), "i-1", note("goes on")))
		sum++
	}
}
