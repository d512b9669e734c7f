//go:build unix

package local_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/providers/local"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/providertest"
)

// liar is the real provider with one lie over it.
type liar struct {
	*local.Client

	deaf  bool // says yes to an end and does nothing
	hides bool // the list leaves out its last row
	ends  bool // reading a sandbox ends it
	short bool // a sandbox that shall linger ends with its program
	late  bool // following goes on until the sandbox ends
	early bool // following ends while the program writes
}

// Terminate may do nothing, but for the suite's own cleanup, which deletes.
func (l liar) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	if l.deaf && !o.Delete {
		return nil
	}
	return l.Client.Terminate(ctx, id, o)
}

// List may leave out a row.
func (l liar) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	if !l.hides {
		return l.Client.List(ctx, q)
	}
	return func(yield func(sandbox.Sandbox, error) bool) {
		var held *sandbox.Sandbox
		for s, err := range l.Client.List(ctx, q) {
			if err != nil && !yield(s, err) {
				return
			}
			if held != nil && !yield(*held, nil) {
				return
			}
			held = &s
		}
	}
}

// Get may end what it reads.
func (l liar) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	s, err := l.Client.Get(ctx, id)
	if l.ends && err == nil && !s.State.Ended() {
		err = l.Client.Terminate(ctx, id, providers.TerminateOptions{By: "a read"})
	}
	return s, err
}

// Create may forget that the sandbox shall linger.
func (l liar) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec.KeepAfterExit = spec.KeepAfterExit && !l.short
	return l.Client.Create(ctx, spec)
}

// Logs may not heed the program's end.
func (l liar) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		for line, err := range l.Client.Logs(ctx, id, q) {
			if !yield(line, err) || l.early {
				return
			}
		}
		for l.late && q.Follow && ctx.Err() == nil {
			if s, err := l.Get(ctx, id); err != nil || s.State.Ended() {
				return
			}
		}
	}
}

func TestLiarsTurnTheSuiteRed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lie         liar
		check, said string
	}{
		"says yes and does nothing": {liar{deaf: true}, "terminate_ends", "not ended"},
		"hides a row":               {liar{hides: true}, "list_reads_every_page_once", "is listed 0 times"},
		"does not linger":           {liar{short: true}, "linger_keeps_the_sandbox", "it shall linger|not running"},
		"follows for ever":          {liar{late: true}, "linger_ends_a_follow_with_the_program", "follow goes on"},
		"stops to follow":           {liar{early: true}, "linger_ends_a_follow_with_the_program", "two"},
		"reading ends":              {liar{ends: true}, "reading_changes_nothing", "a read changed the sandbox's life"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.False(t, attempt(t, tc.check, liar{}).Failed, "an honest one passes")
			v := attempt(t, tc.check, tc.lie)
			assert.True(t, v.Failed)
			assert.Regexp(t, tc.said, strings.Join(v.Messages, "\n"))
		})
	}
}

// attempt runs one check on the liar.
func attempt(t *testing.T, name string, lie liar) providertest.Verdict {
	t.Helper()
	c := providertest.Config{Limit: 20 * time.Second, New: func(rt providertest.T) providers.Provider {
		client, ok := openFor(rt).(*local.Client)
		require.True(rt, ok)
		lie.Client = client
		return lie
	}}
	if lie.deaf || lie.late {
		c.Limit = 2 * time.Second // it is waited for in vain
	}
	for _, check := range providertest.Checks() {
		if check.Name == name {
			return providertest.Attempt(t.Context(), c, check)
		}
	}
	require.Fail(t, "no check "+name)
	return providertest.Verdict{}
}
