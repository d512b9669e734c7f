package task

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// usageOf is a sandbox with this usage after so many seconds.
type usageOf struct {
	Sandboxes

	began time.Time
	mib   func(seconds float64) float64
	reads int
}

func (u *usageOf) Usage(context.Context, sandbox.Ref) (sandbox.Usage, error) {
	u.reads++
	if u.mib == nil {
		return sandbox.Usage{}, fault.New(fault.KindUnsupported, "no figures")
	}
	now := time.Now()
	return sandbox.Usage{At: now, MemoryBytes: new(int64(u.mib(now.Sub(u.began).Seconds()) * sandbox.MiB)), MemoryLimitBytes: new(int64(1024 * sandbox.MiB))}, nil
}

type told struct {
	Observer

	lines []string
}

func (o *told) Message(text string) { o.lines = append(o.lines, text) }

// TestMemoryPressureIsToldBeforeTheKill: once a minute, and not of memory that is large and stays so.
func TestMemoryPressureIsToldBeforeTheKill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mib  func(float64) float64
		want []string // within 85 s
		most int      // samples
	}{
		"grows":       {func(s float64) float64 { return 100 + 15*s }, []string{"its memory is filling up: 625 of 1024 MiB, full in 27s"}, 40},
		"grows fast":  {func(s float64) float64 { return min(1024, 100+30*s) }, []string{"its memory is filling up: 550 of 1024 MiB, full in 16s"}, 40},
		"is large":    {func(float64) float64 { return 990 }, nil, 45},
		"is small":    {func(float64) float64 { return 100 }, nil, 9},
		"not known":   {nil, nil, 1},
		"goes down":   {func(s float64) float64 { return 1000 - 5*s }, nil, 45},
		"grows later": {func(s float64) float64 { return 300 + 20*max(0, s-45) }, []string{"its memory is filling up: 700 of 1024 MiB, full in 16s"}, 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				box, ear := &usageOf{began: time.Now(), mib: c.mib}, &told{}
				r := NewRunner(Options{Sandboxes: box, Observer: ear}, nil, nil)
				ctx, stop := context.WithTimeout(t.Context(), 85*time.Second)
				defer stop()
				r.watchMemory(ctx, sandbox.Ref{})
				assert.Equal(t, c.want, ear.lines)
				assert.LessOrEqual(t, box.reads, c.most)
			})
		})
	}
}
