package look_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops/look"
	"sbx/internal/store"
	"sbx/internal/testkit/opstest"
)

// verify is a process that verifies, and ends.
func verify(t *testing.T, c *opstest.ClockSite, host string) *look.VerifyResult {
	t.Helper()
	r := &opstest.Recorder{}
	env := c.Start(t, host)
	result, err := look.Verify(t.Context(), env, look.VerifyRequest{}, r)
	require.NoError(t, err)
	env.SendNotifications(t.Context())
	assert.Empty(t, r.Warnings)
	return result
}

// TestAlertOverRestarts is "active > 50 for 30 min": processes that come and go, on several hosts
// and two at once, with a gap in between, notify once that it holds and once that it is over, and
// resolve what they opened.
func TestAlertOverRestarts(t *testing.T) {
	t.Parallel()
	c := opstest.NewClockSite(t, opstest.Calm, opstest.Crowd(51))
	for range 2 { // 8 minutes
		assert.Len(t, verify(t, c, "host-1").Alerts, 2)
		c.Pass(4 * time.Minute)
	}
	verify(t, c, "host-2")
	c.Pass(12 * time.Minute) // nobody looks
	verify(t, c, "host-1")
	c.Pass(10 * time.Minute)
	open := verify(t, c, "host-1").Alerts
	require.Len(t, open, 2)
	assert.Equal(t, "active_escalated at prod: pending for 18m of 30m, data gap 12m", open[1].Describe())
	assert.Equal(t, []string{"sandbox_leak_detected alert host-2"}, c.Said(t))
	c.Pass(10 * time.Minute)
	verify(t, c, "host-1")
	c.Pass(2 * time.Minute)
	var two sync.WaitGroup
	for _, host := range []string{"host-1", "host-2", "host-3"} {
		two.Go(func() { verify(t, c, host) })
	}
	two.Wait()
	c.Pass(3 * time.Minute)
	verify(t, c, "host-3")
	said := c.Said(t)
	require.Len(t, said, 2)
	assert.Contains(t, said[1], "active_escalated alert ")
	message := c.Messages(t)[1]
	assert.Equal(t, []string{"critical", "infrastructure", "alert/active_escalated/prod"}, []string{message.Severity, message.Level, message.Key})
	assert.Contains(t, message.Text, "51 active, limit 50")
	assert.Contains(t, message.Text, "firing for 30m, data gap 12m")
	assert.Contains(t, message.Text, "first to act: the infrastructure team")
	assert.Equal(t, []string{"sbx cleanup --stuck --provider prod"}, message.Next)

	c.Fakes[0] = opstest.Crowd(4)
	for range 3 {
		verify(t, c, "host-2")
		c.Pass(time.Minute)
	}
	assert.Subset(t, c.Said(t), []string{"sandbox_leak_detected recovered host-2", "active_escalated recovered host-2"})
	assert.Len(t, c.Said(t), 4, "once each")
	for _, rule := range []string{"active_escalated", "sandbox_leak_detected"} {
		assert.Equal(t, []string{"trigger", "resolve"}, c.Paged(t, "sbx/alert/"+rule+"/prod"), rule)
	}
}

// TestAlertServiceThatFails: the others do not get it again, and it gets it after a minute.
func TestAlertServiceThatFails(t *testing.T) {
	t.Parallel()
	c := opstest.NewClockSite(t, opstest.Calm, opstest.Crowd(21))
	verify(t, c, "host-1")
	c.Pass(5 * time.Minute)
	c.RefuseMessages(1)
	r := &opstest.Recorder{}
	env := c.Start(t, "host-1")
	_, err := look.Verify(t.Context(), env, look.VerifyRequest{}, r)
	require.NoError(t, err)
	assert.Empty(t, r.Warnings, "the answer waits for no service")
	env.SendNotifications(t.Context())
	require.Len(t, r.Warnings, 1)
	assert.Contains(t, r.Warnings[0], "500")
	assert.Empty(t, c.Said(t))
	assert.Len(t, c.Paged(t, ""), 1)
	c.Pass(30 * time.Second)
	verify(t, c, "host-2")
	assert.Empty(t, c.Said(t), "the first process may still send")
	c.Pass(31 * time.Second)
	verify(t, c, "host-2")
	verify(t, c, "host-3")
	assert.Equal(t, []string{"sandbox_leak_detected alert host-2"}, c.Said(t))
	assert.Len(t, c.Paged(t, ""), 1, "it has got it")
}

// TestAlertWithoutAStore: a verb answers as before, and warns once.
func TestAlertWithoutAStore(t *testing.T) {
	t.Parallel()
	c := opstest.NewClockSite(t, opstest.Calm, opstest.Crowd(51))
	r := &opstest.Recorder{}
	env := c.Start(t, "host-1")
	env.Store = func(bool) (store.Store, error) { return nil, assert.AnError }
	for range 2 {
		result, err := look.Verify(t.Context(), env, look.VerifyRequest{}, r)
		require.NoError(t, err)
		assert.Len(t, result.Checks, 5)
		assert.Empty(t, result.Alerts)
	}
	assert.Equal(t, []string{"an alert could not be stored or sent; the next run tries again: " + assert.AnError.Error()}, r.Warnings)
}
