package store_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// childDir and childURL turn this binary into one of many processes that use a
// store at the same time.
const (
	childDir = "SBX_STORETEST_DIR"
	childURL = "SBX_STORETEST_URL"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		_, _ = io.Copy(io.Discard, os.Stdin) // the gate: all begin when it opens
		os.Exit(child(context.Background(), dir, os.Getenv(childURL)))
	}
	os.Exit(m.Run())
}

// child uses a store that it finds fresh or not, and says whether it got the lease.
func child(ctx context.Context, dir, url string) int {
	if err := use(ctx, store.Options{StateDir: dir, URL: url}); err != nil {
		fmt.Fprintf(os.Stderr, "%v (%s; hint: %s)\n", err, fault.KindOf(err), fault.HintOf(err))
		return 1
	}
	return 0
}

func use(ctx context.Context, o store.Options) error {
	d, err := store.Open(ctx, o)
	if err != nil {
		return err
	}
	id := strconv.Itoa(os.Getpid())
	if err := d.PutRecord(ctx, store.Record{Provider: "prod", ID: id}); err != nil {
		return err
	}
	if _, err := d.Sight(ctx, "orphan", "prod/a", time.Unix(1, 0), 0); err != nil {
		return err
	}
	switch lease, err := d.Acquire(ctx, "cleanup", id, time.Hour); fault.KindOf(err) {
	case fault.KindNone:
		fmt.Println("holder of fence", lease.Fence)
	case fault.KindLocked:
	default:
		return err
	}
	return d.Close()
}

func TestManyProcessesOnAFreshFile(t *testing.T) {
	t.Parallel()
	manyProcesses(t, store.Options{StateDir: t.TempDir() + "/not/there yet"})
}

// manyProcesses starts 64 at once: none fails, one gets the lease, nothing of any
// of them is lost.
func manyProcesses(t *testing.T, o store.Options) {
	t.Helper()
	const processes = 64
	self, err := os.Executable()
	require.NoError(t, err)
	waiting, gate, err := os.Pipe()
	require.NoError(t, err)
	defer waiting.Close()
	outputs := make([]bytes.Buffer, processes)
	var wg sync.WaitGroup
	for i := range outputs {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), childDir+"="+o.StateDir, childURL+"="+o.URL)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = waiting, &outputs[i], &outputs[i]
		require.NoError(t, cmd.Start())
		wg.Go(func() {
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, outputs[i].String())
			}
		})
	}
	require.NoError(t, gate.Close())
	wg.Wait()
	var said strings.Builder
	for i := range outputs {
		said.Write(outputs[i].Bytes())
	}
	assert.Equal(t, "holder of fence 1\n", said.String())
	d := opened(t, o)
	records, err := d.Records(t.Context(), "")
	require.NoError(t, err)
	assert.Len(t, records, processes)
	seen, err := d.Sightings(t.Context(), "orphan")
	require.NoError(t, err)
	assert.Equal(t, processes, seen["prod/a"].Count)
}
