package commands

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
)

// TestEnterTildePointLeaves, as in ssh; every other key goes on.
func TestEnterTildePointLeaves(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]struct {
		on   string
		left bool
	}{
		"ls\r":       {"ls\r", false},
		"~.":         {"", true},
		"ls\r~.more": {"ls\r", true},
		"a~.":        {"a~.", false},
		"\r~~.":      {"\r~.", false},
		"\r~a~.":     {"\r~a~.", false},
		"\n~.":       {"\n", true},
		"cd ~\r~/x":  {"cd ~\r~/x", false},
		"\r~\r~.":    {"\r~\r", true},
	} {
		whole := escape{fresh: true}
		on, left := whole.pass([]byte(typed))
		assert.Equal(t, want.on, string(on), "%q", typed)
		assert.Equal(t, want.left, left, "%q", typed)
		one := escape{fresh: true} // the same, key by key
		var text []byte
		for i := range typed {
			var more []byte
			if more, left = one.pass([]byte{typed[i]}); left {
				break
			}
			text = append(text, more...)
		}
		assert.Equal(t, want.on, string(text), "%q", typed)
		assert.Equal(t, want.left, left, "%q", typed)
	}
}

// TestAShellThatShowsNothingIsGivenUp after the time limit of a provider, and can be left before.
func TestAShellThatShowsNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]struct {
		code int
		text string
	}{
		"":       {7, "shows no shell within 20s"},
		"ls\r~.": {130, "left the shell; what runs in the sandbox goes on"},
	} {
		bubble.Run(t, "typed "+typed, func(t *testing.T) {
			b, c := commanded(sandbox.Exit{})
			b.tty = true
			c.run = func(ctx context.Context, _ providers.Command) {
				<-ctx.Done()
			}
			b.adjust = func(d *Deps) {
				d.Process.Stdin.Reader = io.MultiReader(strings.NewReader(typed), blocked(t.Context().Done()))
			}
			began := time.Now()
			r := b.run(t, "shell prod/aaaa")
			assert.Equal(t, want.code, r.code, r.stderr)
			assert.Contains(t, r.stderr, want.text)
			assert.Contains(t, r.stderr, "connecting to prod/aaaa; Enter ~ . leaves")
			assert.LessOrEqual(t, time.Since(began), 20*time.Second)
		})
	}
}

// TestAShellThatWasSeenIsNotGivenUp, however long it takes.
func TestAShellThatWasSeenIsNotGivenUp(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "an hour", func(t *testing.T) {
		b, c := commanded(sandbox.Exit{Code: new(0)})
		b.tty = true
		c.run = func(ctx context.Context, cmd providers.Command) {
			_, err := cmd.Stdout.Write([]byte("$ "))
			require.NoError(t, err)
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			text, _ := io.ReadAll(cmd.Stdin)
			assert.Equal(t, "exit\r", string(text))
		}
		b.stdin = "exit\r"
		assert.Equal(t, 0, b.run(t, "shell prod/aaaa").code)
	})
}

// blocked is a terminal on which nobody types until it is closed.
type blocked <-chan struct{}

func (b blocked) Read([]byte) (int, error) {
	<-b
	return 0, io.EOF
}
