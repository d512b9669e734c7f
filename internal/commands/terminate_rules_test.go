package commands

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/testkit/fake"
)

// TestAWrongClockEndsNothingThatAPipeHasNamed: what a rule of ls has chosen may have been
// chosen by its age. What a person types is not chosen by any age.
func TestAWrongClockEndsNothingThatAPipeHasNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line, stdin string
		code, asked int
	}{
		"one of each":           {"terminate prod/aaaa -", "prod/bbbb\n", 11, 0},
		"piped and typed, both": {"terminate prod/aaaa -", "prod/aaaa\n", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := endBench(t, 2)
			p.SetSkew(3 * time.Minute)
			b.stdin = tc.stdin
			r := b.run(t, tc.line)
			assert.Equal(t, tc.code, r.code, r.stdout+r.stderr)
			assert.Len(t, p.Calls(fake.OpTerminate), tc.asked)
			if tc.code == 11 {
				assert.Contains(t, r.stdout+r.stderr, "name each by hand")
			}
		})
	}
}

// TestWhatCannotBeReadIsDeletedByItsWholeReferenceAlone: what was readable a moment ago is
// not deleted by what was known of it then.
func TestWhatCannotBeReadIsDeletedByItsWholeReferenceAlone(t *testing.T) {
	t.Parallel()
	unreadable := fault.New(fault.KindUnavailable, "%w", providers.ErrUnreadable)
	for name, tc := range map[string]struct {
		line, stdin string
		broken      fake.Fault
		asked       int
	}{
		"from the start, typed":     {"terminate prod/aaaa --delete", "", fake.Fault{Op: fake.OpGet, Times: 2, Err: unreadable}, 1},
		"from the start, piped":     {"terminate - --delete", "prod/aaaa\n", fake.Fault{Op: fake.OpGet, Times: 2, Err: unreadable}, 0},
		"from the start, as a word": {"terminate aaaa --delete", "", fake.Fault{Op: fake.OpGet, Err: unreadable}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := endBench(t, 1)
			b.stdin = tc.stdin
			p.Break(tc.broken)
			r := b.run(t, tc.line)
			assert.Len(t, p.Calls(fake.OpTerminate), tc.asked, r.stdout+r.stderr)
			if tc.asked > 0 {
				require.Equal(t, 0, r.code, r.stdout+r.stderr)
				return
			}
			assert.Equal(t, 7, r.code, r.stdout+r.stderr)
			assert.Contains(t, r.stderr, "whole reference")
		})
	}
}

// TestACleanupByAWrongClockIsNoSuccess: the provider's clock is three hours behind, so that nothing seems old.
func TestACleanupByAWrongClockIsNoSuccess(t *testing.T) {
	t.Parallel()
	b, p := oneFake(quiet("aaaa0001", time.Hour), quiet("aaaa0002", time.Hour))
	b.configure(t, onlyProd)
	p.SetSkew(-3 * time.Hour)
	r := b.run(t, tenMinutes+" -o json")
	assert.Equal(t, 11, r.code, r.stderr)
	assert.Contains(t, r.stdout, "the clock of prod is 3h behind")
	assert.Equal(t, 11, b.run(t, "cleanup --older-than 10m").code, "its plan says so as well")
	assert.NotZero(t, b.run(t, "cron check --layer age").code)
	p.SetSkew(0)
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	assert.Zero(t, b.run(t, "cron check --layer age").code)
}
