package providertest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func lifeChecks() []Check {
	return []Check{
		{"what_was_written_is_no_silence", "logs", writtenIsNoSilence},
		{"what_another_client_runs_is_no_silence", "exec", foreignIsNoSilence},
	}
}

// claim is what a provider's own signs say of a sandbox at one moment.
type claim struct {
	silent bool // every sign that could have shown work is older than a given time
	by     string
}

// silence asks for all signs of life of a sandbox, and whether they prove that
// nothing has worked in it since then. It weighs them as the fleet does.
func (s *Subject) silence(t T, id string, since time.Time) claim {
	t.Helper()
	box, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	last, proof, by := box.LastActivityAt, box.ActivityBasis.ProvesSilence(), "last activity by "+string(box.ActivityBasis)
	if reader, ok := providers.As[providers.LogReader](s.P); ok && reader.CapturesOutput(box) {
		lines, err := logs(s.context(t), reader, id, providers.LogQuery{})
		require.NoError(t, err)
		proof, by = true, by+", its log"
		for _, l := range lines {
			if l.At.IsZero() {
				return claim{} // a line without a time proves nothing
			}
			if l.At.After(last) {
				last = l.At
			}
		}
	}
	if lister, ok := providers.As[providers.ProcessLister](s.P); ok {
		if running, err := lister.Processes(s.context(t), id); err != nil || len(running) > 0 {
			proof = false
		}
	}
	return claim{silent: proof && last.Before(since), by: by}
}

// clockSlack is how far two clocks and the grain of a timestamp may be apart.
const clockSlack = 2 * time.Second

// writtenIsNoSilence: a program that writes is not silent, or its silence is unknown.
func writtenIsNoSilence(t T, s *Subject) {
	began := time.Now()
	id := s.write(t, "one", "two")
	var got claim
	assert.True(t, s.c.Eventually(s.c.Limit, func() bool {
		got = s.silence(t, id, began.Add(-clockSlack))
		return !got.silent
	}), "it wrote a moment ago, and is called silent by %s", got.by)
}

// foreignIsNoSilence: what runs for another client, and writes to it, is not silent,
// or its silence is unknown.
func foreignIsNoSilence(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{Command: []string{"sleep", "600"}})
	began := time.Now()
	ctx, cancel := context.WithCancel(s.context(t))
	wrote := &firstWrite{came: make(chan struct{})}
	var over sync.WaitGroup
	defer s.returns(over.Wait) // one that does not heed ctx is another check's affair
	defer cancel()
	over.Go(func() {
		_, err := ability[providers.Commander](t, s).Exec(ctx, id, providers.Command{
			Args: []string{"sh", "-c", "echo tick; sleep 600"}, Stdout: wrote,
		})
		if ctx.Err() == nil {
			t.Errorf("the command ended by itself: %v (%s)", err, fault.KindOf(err))
		}
	})
	select {
	case <-wrote.came:
	case <-ctx.Done():
		assert.Fail(t, "what the command writes does not arrive")
		return
	}
	got := s.silence(t, id, began)
	assert.False(t, got.silent, "a command runs and wrote a moment ago, and %s would prove that nothing does", got.by)
}

// firstWrite closes a channel at the first byte.
type firstWrite struct {
	came chan struct{}
	once sync.Once
}

// Write notes that something came.
func (w *firstWrite) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.came) })
	return len(b), nil
}
