package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
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

// Variables that make this binary one of many processes with a store.
const (
	childDir  = "SBX_STORETEST_DIR"
	childURL  = "SBX_STORETEST_URL"
	childDoes = "SBX_STORETEST_DOES" // a name in deeds
)

// deeds are what such a process can do.
func deeds() map[string]func(ctx context.Context, o store.Options) error {
	return map[string]func(ctx context.Context, o store.Options) error{"use": use, "race": race, "count": count, "count for ever": countForEver}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		_, _ = io.Copy(io.Discard, os.Stdin) // all start when it is closed
		o := store.Options{StateDir: dir, URL: os.Getenv(childURL)}
		if err := deeds()[os.Getenv(childDoes)](context.Background(), o); err != nil {
			fmt.Fprintf(os.Stderr, "%v (%s; hint: %s)\n", err, fault.KindOf(err), fault.HintOf(err))
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// children starts one process per deed, which act when the gate is closed. It returns the
// commands and their output.
func children(t *testing.T, o store.Options, deeds ...string) (list []*exec.Cmd, says []io.ReadCloser, gate io.Closer) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	waiting, open, err := os.Pipe()
	require.NoError(t, err)
	defer waiting.Close()
	for _, deed := range deeds {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), childDir+"="+o.StateDir, childURL+"="+o.URL, childDoes+"="+deed)
		cmd.Stdin, cmd.Stderr = waiting, os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		list, says = append(list, cmd), append(says, out)
	}
	return list, says, open
}

// together runs processes that all must succeed, and returns their output.
func together(t *testing.T, o store.Options, deed string, n int) string {
	t.Helper()
	list, says, gate := children(t, o, slices.Repeat([]string{deed}, n)...)
	require.NoError(t, gate.Close())
	said := make([]bytes.Buffer, n)
	var wg sync.WaitGroup
	for i, cmd := range list {
		wg.Go(func() {
			_, err := said[i].ReadFrom(says[i])
			assert.NoError(t, errors.Join(err, cmd.Wait()), "process %d", i)
		})
	}
	wg.Wait()
	var all strings.Builder
	for i := range said {
		all.Write(said[i].Bytes())
	}
	return all.String()
}

// untilUnlocked repeats what others kept locked for too long: on a busy machine the last of
// many processes may wait longer than one call does.
func untilUnlocked(do func() error) error {
	for deadline := time.Now().Add(3 * time.Minute); ; {
		if err := do(); fault.KindOf(err) != fault.KindLocked || time.Now().After(deadline) {
			return err
		}
	}
}

func use(ctx context.Context, o store.Options) error {
	var d *store.Database
	err := untilUnlocked(func() (err error) { d, err = store.Open(ctx, o); return err })
	if err != nil {
		return err
	}
	id := strconv.Itoa(os.Getpid())
	if err := untilUnlocked(func() error { return d.PutRecord(ctx, store.Record{Provider: "prod", ID: id}) }); err != nil {
		return err
	}
	if err := untilUnlocked(func() error { _, err := d.CountSeen(ctx, "orphan", "prod/a", time.Unix(1, 0), 0); return err }); err != nil {
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

// TestManyProcessesOnAFreshFileAndAnOlderOne runs before the parallel tests: they write
// too, and these processes may wait for each other for five seconds only.
func TestManyProcessesOnAFreshFileAndAnOlderOne(t *testing.T) { //nolint:paralleltest // see above
	manyProcesses(t, store.Options{StateDir: t.TempDir() + "/not/there yet"}, 0)
	manyProcesses(t, olderFile(t), 1)
}

// manyProcesses starts them at once: none fails, one gets the lease, and nothing is lost.
func manyProcesses(t *testing.T, o store.Options, before int) {
	t.Helper()
	assert.Equal(t, "holder of fence 1\n", together(t, o, "use", processes))
	d := opened(t, o)
	records, err := d.Records(t.Context(), "")
	require.NoError(t, err)
	assert.Len(t, records, before+processes)
	seen, err := d.SeenCounts(t.Context(), "orphan")
	require.NoError(t, err)
	assert.Equal(t, processes, seen["prod/a"].Count)
}
