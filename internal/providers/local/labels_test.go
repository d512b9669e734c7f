//go:build unix

package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// TestManyEditsOfLabelsLoseNone, also beside those of another client of the same folder.
func TestManyEditsOfLabelsLoseNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, err := b.Create(t.Context(), sandbox.Spec{Command: []string{"sleep", "600"}, Labels: map[string]string{"team": "a"}})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 16 {
		c := open(t, b.state, nil)
		wg.Go(func() {
			_, err := c.EditLabels(t.Context(), s.ID, func(l map[string]string) { l[fmt.Sprint("k", i)] = "v" })
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	now, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Len(t, now.Labels, 17, "%v", now.Labels)
}

// TestLabelsOutliveTheEnd: the supervisor writes its last record without them, and a later edit is refused.
func TestLabelsOutliveTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, err := b.Create(t.Context(), sandbox.Spec{Command: []string{"sleep", "600"}})
	require.NoError(t, err)
	keepIt := func(l map[string]string) { sandbox.SetKeep(l, "true") }
	_, err = b.EditLabels(t.Context(), s.ID, keepIt)
	require.NoError(t, err)
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}))
	now, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.True(t, now.State.Ended())
	assert.Equal(t, "true", now.Labels[sandbox.LabelKeep])
	_, err = b.EditLabels(t.Context(), s.ID, func(l map[string]string) { sandbox.SetKeep(l, "") })
	assert.Equal(t, fault.KindGone, fault.KindOf(err), "%v", err)
}

// TestLabelsBesideADelete: an edit finds its sandbox or says that there is none, and brings no folder back.
func TestLabelsBesideADelete(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, err := b.Create(t.Context(), sandbox.Spec{Command: []string{"sleep", "600"}})
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		done <- b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test", Delete: true, Grace: time.Second})
	}()
	for i := 0; ; i++ {
		if _, err = b.EditLabels(t.Context(), s.ID, func(l map[string]string) { l["n"] = strconv.Itoa(i) }); err != nil {
			break
		}
	}
	kind := fault.KindOf(err)
	assert.True(t, kind == fault.KindGone || kind == fault.KindNotFound, "%v", err)
	require.NoError(t, <-done)
	assert.NoDirExists(t, filepath.Join(b.state, "local", s.ID))
}

// TestLabelsThatCannotBeReadAreNoLabels that protect nothing.
func TestLabelsThatCannotBeReadAreNoLabels(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, err := b.Create(t.Context(), sandbox.Spec{Command: []string{"sleep", "600"}, Labels: map[string]string{"team": "a"}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b.state, "local", s.ID, "labels.json"), []byte(`{"team":`), 0o600))
	now, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Equal(t, "a", now.Labels["team"])
	assert.Contains(t, now.Labels, sandbox.LabelUnreadable)
	_, err = b.EditLabels(t.Context(), s.ID, func(l map[string]string) { l["x"] = "y" })
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
}
