package tui

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/output"
	"sbx/internal/testkit/tiertest"
)

// display is a terminal that tells when it shows a text.
type display struct {
	mu    sync.Mutex
	shown strings.Builder
	text  string
	seen  chan struct{}
}

func (d *display) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shown.Write(b)
	if d.text != "" && strings.Contains(d.shown.String(), d.text) {
		d.text = ""
		close(d.seen)
	}
	return len(b), nil
}

// TestAWarningIsTheNotice: what another goroutine says is shown in the last line, and taken until the end alone.
func TestAWarningIsTheNotice(t *testing.T) {
	t.Parallel()
	ctx, quit := context.WithTimeout(t.Context(), tiertest.Limit(t))
	defer quit()
	screen := &display{text: "warning: the store is busy", seen: make(chan struct{})}
	keys, typed := io.Pipe()
	t.Cleanup(func() { _ = typed.Close() })
	restored := false
	terminal := Terminal{
		Environ: []string{"TERM=xterm-256color"}, Program: "sbx",
		Divert: func(to func(string)) func() {
			go func() {
				to("warning: the store is busy\x1b[2J")
				<-screen.seen
				_, _ = io.WriteString(typed, "q")
			}()
			return func() { restored = true }
		},
	}
	require.NoError(t, terminal.show(ctx, NewModel(ctx, newScene(), noon, "sbx", output.Cells{}), keys, screen, tea.WithWindowSize(80, 24)))
	assert.True(t, restored)
	assert.Contains(t, screen.shown.String(), `the store is busy\x1b[2J`, "escaped")
}
