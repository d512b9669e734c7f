package cli

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/testkit/tiertest"
)

// signalled is a process whose signals a test sends, and the number of those that watch them.
func signalled() (p process.Process, send chan os.Signal, watching *atomic.Int32) {
	send, watching = make(chan os.Signal), new(atomic.Int32)
	p.Signals = func() (<-chan os.Signal, func()) {
		watching.Add(1)
		return send, func() { watching.Add(-1) }
	}
	return p, send, watching
}

func TestAnInterruptIsAcknowledgedBeforeTheNextOneCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, send, watching := signalled()
		ctx, w := watchSignals(&p)
		said := make(chan string, 9)
		w.acknowledgeWith(func(text string) { said <- text })
		send <- syscall.SIGTERM
		synctest.Wait()
		require.Error(t, ctx.Err())
		assert.Equal(t, 143, w.exitCode())
		assert.Empty(t, said, "a verb that ends at once needs no words")
		time.Sleep(acknowledgeAfter)
		synctest.Wait()
		assert.Len(t, said, 1)
		send <- os.Interrupt // the same decision: it is received, and nothing comes of it
		assert.EqualValues(t, 1, watching.Load())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Zero(t, watching.Load(), "the next one has the system's own effect")
		assert.Equal(t, 143, w.exitCode(), "the code is that of the first")
		w.stop()
	})
}

func TestAnOperationAcknowledgesItsOwnInterrupt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, send, _ := signalled()
		_, w := watchSignals(&p)
		w.acknowledgeWith(func(text string) { t.Errorf("said beside the operation: %s", text) })
		_, done := p.Signals()
		send <- os.Interrupt
		time.Sleep(3 * time.Second)
		synctest.Wait()
		done()
		w.stop()
	})
}

// saidLines gives what is written to it.
type saidLines chan string

func (s saidLines) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}

// TestAnInterruptIsAcknowledgedWithQuiet: the next one counts only after these words.
func TestAnInterruptIsAcknowledgedWithQuiet(t *testing.T) {
	t.Parallel()
	opening, release := make(chan struct{}), make(chan struct{})
	slow := providers.Type{Name: "slow", Always: true, Open: func(context.Context, providers.Profile, providers.Deps) (providers.Provider, error) {
		close(opening)
		<-release
		return nil, fault.New(fault.KindUnavailable, "it is slow")
	}}
	p, send, _ := signalled()
	said := make(saidLines, 100)
	p.Args, p.Home, p.Workdir, p.Now = []string{"sbx", "-q", "ls"}, t.TempDir(), t.TempDir(), time.Now
	p.Stdout.Writer, p.Stderr.Writer = io.Discard, said
	code := make(chan int)
	go func() { code <- Run(p, []providers.Type{slow}) }()
	<-opening
	send <- os.Interrupt
	select {
	case text := <-said:
		assert.Contains(t, text, "interrupt again to leave it as it is")
	case <-time.After(tiertest.Limit(t)):
		t.Error("it was not acknowledged")
	}
	close(release)
	<-code
}
