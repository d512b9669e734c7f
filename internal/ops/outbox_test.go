package ops_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/alert"
	"sbx/internal/notify"
	"sbx/internal/ops/look"
	"sbx/internal/store"
	"sbx/internal/testkit/opstest"
)

// roundTimes is an observer that keeps when each round of a verb was over.
type roundTimes struct {
	opstest.Recorder

	began time.Time
	at    []time.Duration
}

func (r *roundTimes) Note(string) { r.at = append(r.at, time.Since(r.began)) }

// TestRoundsDoNotWaitForServices: a service that hangs is given up in the pause between two rounds, and
// delays a round by no more than its bound where the pause is shorter.
func TestRoundsDoNotWaitForServices(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Minute, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := opstest.NewSite(t, opstest.Calm, opstest.Crowd(21))
			r := &roundTimes{began: time.Now()}
			env := s.Env(t)
			st := store.Memory(time.Now)
			env.Store = func(bool) (store.Store, error) { return st, nil }
			env.Notifier = opstest.Hanging(notify.Targets{WebhookURL: "http://hook.example/x"})
			_, err := look.Verify(t.Context(), env, look.VerifyRequest{UntilOK: 8 * time.Minute, Every: every}, r)
			require.NoError(t, err)
			assert.NotEmpty(t, r.Warnings, "nobody was told")
			var longest time.Duration
			for i := 1; i < len(r.at); i++ {
				longest = max(longest, r.at[i]-r.at[i-1])
			}
			bound := every
			if every < notify.Limit {
				bound = notify.Limit + 2*alert.StoreLimit
			}
			assert.LessOrEqual(t, longest, bound+time.Second, "a look takes a part of a second")
		})
	}
}
