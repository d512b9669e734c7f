package fault_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
)

// TestNoPrefixComesTwice: an error that is placed on each floor says once where it was.
func TestNoPrefixComesTwice(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"prod: exec a: it is over":                 fault.Placed(fault.New(fault.KindGone, "it is over").At("prod", "exec a"), "prod", "exec a"),
		"prod: usage a: exec a: it is over":        fault.Placed(fault.New(fault.KindGone, "it is over").At("prod", "exec a"), "prod", "usage a"),
		"prod: create: no answer; it is there":     fault.Placed(fault.New(fault.KindGone, "%w; it is there", fault.New(fault.KindGone, "no answer").At("prod", "create")), "prod", "create"),
		"prod: exec a: its end is unknown: no way": fault.Placed(fault.New(fault.KindGone, "its end is unknown: %w", fault.New(fault.KindGone, "no way").At("prod", "exec a")), "prod", "exec a"),
		"prod: exec a: lost (twice); gone":         fault.New(fault.KindGone, "lost (prod: exec a: twice); prod: exec a: gone").At("prod", "exec a"),
		"prod: exec a: no: preprod: exec a: yes":   fault.New(fault.KindGone, "no: preprod: exec a: yes").At("prod", "exec a"),
		"prod: exec a: no: prod: get a: yes":       fault.New(fault.KindGone, "no: prod: get a: yes").At("prod", "exec a"),
		"prod: it is over":                         fault.Placed(fault.New(fault.KindGone, "it is over").At("prod", ""), "prod", ""),
		"prod: exec a: production: exec a is over": fault.New(fault.KindGone, "production: exec a is over").At("prod", "exec a"),
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	wait := fault.New(fault.KindUnavailable, "slow down")
	wait.RetryAfter = time.Minute
	if got := fault.RetryAfterOf(fault.Placed(fault.Placed(wait, "prod", "a"), "prod", "b")); got != time.Minute {
		t.Errorf("the wait is lost: %s", got)
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	auth, gone := fault.New(fault.KindAuth, "no key"), fault.New(fault.KindGone, "expired")
	plain := errors.New("plain")
	for name, tc := range map[string]struct {
		err  error
		want fault.Kind
		code int
	}{
		"nil":               {nil, fault.KindNone, 0},
		"plain":             {plain, fault.KindUnknown, 1},
		"a fault":           {auth, fault.KindAuth, 4},
		"wrapped":           {fmt.Errorf("while: %w", gone), fault.KindGone, 6},
		"outer kind wins":   {fault.New(fault.KindRefused, "no: %w", auth), fault.KindRefused, 11},
		"a fault of none":   {&fault.Error{Err: plain}, fault.KindUnknown, 1},
		"joined alike":      {errors.Join(auth, auth), fault.KindAuth, 4},
		"joined apart":      {errors.Join(auth, gone), fault.KindPartial, 3},
		"a join, wrapped":   {fmt.Errorf("all: %w", errors.Join(auth, gone)), fault.KindPartial, 3},
		"a sentinel beside": {fmt.Errorf("%w: here: %w", plain, gone), fault.KindGone, 6},
		"canceled":          {fmt.Errorf("reading: %w", context.Canceled), fault.KindCanceled, 130},
		"deadline":          {context.DeadlineExceeded, fault.KindTimeout, 124},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, fault.KindOf(tc.err))
			assert.Equal(t, tc.code, fault.ExitCode(tc.err))
		})
	}
}

func TestErrorTextNamesProviderAndOperation(t *testing.T) {
	t.Parallel()
	err := fault.New(fault.KindUnverified, "still running after %s", "30s").At("prod", "terminate abc").WithHint("look again with `%s`", "sbx ls")
	assert.Equal(t, "prod: terminate abc: still running after 30s", err.Error())
	assert.Equal(t, "look again with `sbx ls`", fault.HintOf(fmt.Errorf("top: %w", err)))
	assert.Equal(t, "no such sandbox", (&fault.Error{Kind: fault.KindNotFound}).Error())
	assert.Empty(t, fault.HintOf(errors.New("plain")))
}

func TestTableIsSortedAndEveryKindHasOneRow(t *testing.T) {
	t.Parallel()
	seen := map[fault.Kind]bool{}
	last := -1
	for _, row := range fault.Table() {
		assert.Greater(t, row.Code, last, "codes rise")
		assert.False(t, seen[row.Kind], "%s stands twice", row.Kind)
		assert.NotEmpty(t, row.Meaning)
		assert.Equal(t, row, row.Kind.Row())
		seen[row.Kind], last = true, row.Code
	}
	assert.Equal(t, fault.KindUnknown, fault.Kind("no such kind").Row().Kind)
	assert.True(t, fault.Retryable(fault.New(fault.KindUnavailable, "503")))
	assert.False(t, fault.Retryable(fault.New(fault.KindGone, "410")))
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, row := range fault.Table() {
		want := row.Kind == fault.KindCanceled || row.Kind == fault.KindTerminated || row.Kind == fault.KindTimeout
		assert.Equal(t, want, fault.Interrupted(fault.New(row.Kind, "it ended")), row.Kind)
	}
}
