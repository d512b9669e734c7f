package output

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestDivert: while a program draws on the terminal, it alone gets what is said, and no progress is drawn.
func TestDivert(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(place{width: 60})
		p := s.printer(t, "table", func(o *Options) { o.Secrets = []string{"hunter2hunter2"} })
		g := p.Progress("listing")
		advance(2 * time.Second)
		var told []string
		restore := p.Divert(func(text string) { told = append(told, text) })
		before := s.err.String()
		p.Warn("the store is busy: hunter2hunter2")
		p.Note("cleaned up")
		p.Trace("GET /sandboxes")
		advance(time.Minute)
		g.Done()
		assert.Equal(t, []string{"warning: the store is busy: [redacted]", "cleaned up"}, told)
		assert.Equal(t, before, s.err.String(), "not a byte comes between")
		assert.Empty(t, lastLine(s), "the progress line was wiped")
		restore()
		p.Warn("later")
		assert.Len(t, told, 2)
		assert.Contains(t, s.err.String(), "warning: later\n")
	})
}

// TestDivertLeavesAFileAlone: stderr that is redirected has everything.
func TestDivertLeavesAFileAlone(t *testing.T) {
	t.Parallel()
	s := newStage(place{})
	p := s.printer(t, "table")
	defer p.Divert(func(string) {})()
	p.Warn("the store is busy")
	p.Trace("GET /sandboxes")
	assert.Equal(t, "sbx: warning: the store is busy\nsbx: GET /sandboxes\n", s.err.String())
}
