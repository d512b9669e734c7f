package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
	"sbx/internal/triage"
)

// TestOldSamplesShowNothing: neither those outside the time that was asked for, nor a history that ended three of its
// intervals ago, nor a figure that no provider would call the present one. It loops in all of them and rests now.
func TestOldSamplesShowNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		until  time.Duration // age of the newest stored sample
		live   time.Duration // age of the figure that is read
		unread bool
	}{
		"the present":                {0, 0, false},
		"two intervals old":          {10 * time.Second, 0, false},
		"a minute behind":            {59 * time.Second, 0, false},
		"of an hour ago":             {time.Hour, 0, false},
		"and none of the present is": {time.Hour, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := time.Now().Add(-2 * time.Hour)
				p := &lateSamples{Provider: fake.New(fake.Options{Name: "prod", PartialLogs: true}), until: tc.until}
				p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "abcd", CreatedAt: made, StartedAt: made}, Usage: func(now time.Time) sandbox.Usage {
					return sandbox.Usage{At: now.Add(-tc.live), CPUPercent: new(4.0)}
				}})
				s, err := p.Get(t.Context(), "abcd")
				require.NoError(t, err)
				o := of(p).ObserveLife(t.Context(), s)
				v := o.Judge(triage.DefaultThresholds(), time.Now())
				assert.Equal(t, tc.until <= 10*time.Second, v.Stuck == sandbox.True, v.Reason)
				if tc.unread {
					require.Error(t, o.LookErr())
					assert.Equal(t, sandbox.Unknown, v.Activity)
				}
			})
		})
	}
}

// lateSamples stores the samples of fifteen minutes of a busy loop that ended some time ago, whatever is asked for.
type lateSamples struct {
	*fake.Provider

	until time.Duration
}

func (l *lateSamples) UsageHistory(context.Context, string, time.Time) ([]sandbox.Usage, error) {
	var all []sandbox.Usage
	for at := 15 * time.Minute; at >= 0; at -= 5 * time.Second {
		all = append(all, sandbox.Usage{At: time.Now().Add(-l.until - at), CPUPercent: new(120.0)})
	}
	return all, nil
}
