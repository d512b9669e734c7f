package e2b_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/tiertest"
	"sbx/internal/testkit/wiretest"
)

// TestALostCommandIsFoundAgain: after a broken stream the command still runs in envd, and its exit
// is read with a new stream; the output in between is lost, which is an error.
func TestALostCommandIsFoundAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		connect wiretest.Fault
		code    int
		kind    fault.Kind
		class   sandbox.Class
		gap     bool
	}{
		"found":           {wiretest.Fault{Times: -1}, 3, fault.KindUnavailable, sandbox.ClassAgentError, true},
		"lost once more":  {wiretest.Fault{Trouble: wiretest.TroubleTruncate, Times: 1}, 3, fault.KindUnavailable, sandbox.ClassAgentError, true},
		"lost for good":   {wiretest.Fault{Trouble: wiretest.TroubleTruncate}, -1, fault.KindUnavailable, sandbox.ClassTransport, true},
		"not found again": {wiretest.Fault{Status: 404}, -1, fault.KindUnavailable, sandbox.ClassTransport, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := e2btest.New(t, e2btest.Options{})
			c, ok := open(t, f, e2b.Type()).(providers.Commander)
			require.True(t, ok)
			f.Break(wiretest.Fault{Route: "POST /process.Process/Start", Trouble: wiretest.TroubleTruncate, Times: 1})
			if tc.connect.Times >= 0 {
				tc.connect.Route = "POST /process.Process/Connect"
				f.Break(tc.connect)
			}
			var stderr bytes.Buffer
			exit, err := c.Exec(t.Context(), f.Add(e2btest.Seed{}), providers.Command{Args: []string{"sh", "-c", "sleep 1; exit 3"}, Stderr: &stderr})
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Equal(t, tc.class, exit.Class)
			if tc.code >= 0 {
				require.NotNil(t, exit.Code)
				assert.Equal(t, tc.code, *exit.Code)
			} else {
				assert.Nil(t, exit.Code, "what was not seen has no code")
			}
			assert.Equal(t, tc.gap, bytes.Contains(stderr.Bytes(), []byte("some output is missing")))
		})
	}
}

// TestACommandWhoseReaderLeaves: a command ends when its output cannot be written.
func TestACommandWhoseReaderLeaves(t *testing.T) {
	t.Parallel()
	f := e2btest.New(t, e2btest.Options{})
	c, ok := open(t, f, e2b.Type()).(providers.Commander)
	require.True(t, ok)
	id := f.Add(e2btest.Seed{})
	_, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"sh", "-c", "while echo y; do sleep 0.01; done"}, Stdout: full{}})
	require.ErrorContains(t, err, "its output cannot be written: no space left")
	require.Eventually(t, func() bool { return len(f.Processes(id)) == 0 }, tiertest.Limit(t), moment)
}

const (
	patient = 2 * time.Minute
	moment  = 5 * time.Millisecond
)

// full is a writer that fails.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }
