package cli

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// TestKeptUntil: the list of what tasks have kept says it best, and a label where no
// store here knows the task.
func TestKeptUntil(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Second)
	dir := t.TempDir()
	open := func(bool) (store.Store, error) { return store.New(store.Options{StateDir: dir, Now: time.Now}) }
	st, err := open(true)
	require.NoError(t, err)
	kept := sandbox.Ref{Provider: "prod", ID: "kept"}
	require.NoError(t, task.KeepList{Store: st}.Keep(t.Context(), task.Kept{Ref: kept, ExpiresAt: now.Add(time.Hour)}, "t-known"))
	over := task.New("t-known", "", task.Spec{Provider: "prod", Command: []string{"true"}, Attempts: 1}, task.Owner{Host: "h", PID: 1, Who: "w"}, now)
	_, _, err = task.Ledger{Store: st}.Add(t.Context(), over)
	require.NoError(t, err)
	require.NoError(t, st.Close())

	atMost := now.Add(2 * time.Hour)
	label := map[string]string{sandbox.LabelKeptUntil: atMost.Format(time.RFC3339)}
	for name, tc := range map[string]struct {
		s    sandbox.Sandbox
		want time.Time
	}{
		"on the list":               {sandbox.Sandbox{ID: "kept", TaskID: "t-known"}, now.Add(time.Hour)},
		"on the list, with a label": {sandbox.Sandbox{ID: "kept", TaskID: "t-known", Labels: label}, now.Add(time.Hour)},
		"of a task that kept none":  {sandbox.Sandbox{ID: "other", TaskID: "t-known", Labels: label}, time.Time{}},
		"of another host's task":    {sandbox.Sandbox{ID: "far", TaskID: "t-foreign", Labels: label}, atMost},
		"of another's, unlabelled":  {sandbox.Sandbox{ID: "far", TaskID: "t-foreign"}, time.Time{}},
		"of no task":                {sandbox.Sandbox{ID: "x"}, time.Time{}},
		"a label that is no time":   {sandbox.Sandbox{ID: "x", Labels: map[string]string{sandbox.LabelKeptUntil: "soon"}}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.s.Provider = "prod"
			assert.WithinDuration(t, tc.want, newKeptList(open, time.Minute).keptUntil(t.Context(), tc.s), time.Second)
		})
	}
	broken := newKeptList(func(bool) (store.Store, error) { return nil, errors.New("the disk is gone") }, time.Minute)
	assert.Equal(t, atMost, broken.keptUntil(t.Context(), sandbox.Sandbox{Provider: "prod", ID: "kept", TaskID: "t-known", Labels: label}), "what cannot be read changes no label")
	untouched := newKeptList(func(bool) (store.Store, error) { panic("nobody needs the store") }, time.Minute)
	assert.Zero(t, untouched.keptUntil(t.Context(), sandbox.Sandbox{Provider: "prod", ID: "x", TaskID: "T-4711"}), "a task of somebody else's")
}
