package fleet_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// rehearser answers rehearsals by id.
type rehearser struct {
	*fake.Provider

	answers map[string]error
	mu      sync.Mutex
	asked   []string
	with    providers.TerminateOptions
	now     int
	most    int // at once
	both    chan struct{}
}

// Rehearse implements providers.Rehearser.
func (r *rehearser) Rehearse(_ context.Context, id string, o providers.TerminateOptions) error {
	r.mu.Lock()
	r.asked, r.with = append(r.asked, id), o
	r.now++
	r.most = max(r.most, r.now)
	r.mu.Unlock()
	if r.both != nil {
		<-r.both
	}
	r.mu.Lock()
	r.now--
	r.mu.Unlock()
	return r.answers[id]
}

func TestRehearsalsThatAreRefused(t *testing.T) {
	t.Parallel()
	r := &rehearser{Provider: fake.New(fake.Options{Name: "prod"}), answers: map[string]error{
		"held0001": fault.New(fault.KindRefused, "it is under legal hold").At("prod", "terminate held0001"),
		"down0001": fault.New(fault.KindUnavailable, "no answer"), "gone0001": fault.New(fault.KindNotFound, "no such sandbox"), "auth0001": fault.New(fault.KindAuth, "the token has expired"),
	}}
	plain := fake.New(fake.Options{Name: "plain"})
	plain.Add(box("also0001", ""))
	var targets []sandbox.Sandbox
	for _, id := range []string{"held0001", "down0001", "gone0001", "auth0001", "good0001"} {
		targets = append(targets, sandbox.Sandbox{Provider: "prod", ID: id})
	}
	targets = append(targets, sandbox.Sandbox{Provider: "plain", ID: "also0001"}, sandbox.Sandbox{Provider: "nobody", ID: "x"})
	got := of(r, plain).Rehearse(t.Context(), targets, fleet.EndOptions{Delete: true, Grace: 7})
	assert.Equal(t, map[sandbox.Ref]string{{Provider: "prod", ID: "held0001"}: "the provider would refuse it: it is under legal hold"}, got)
	assert.Len(t, r.asked, 5, "each once")
	assert.Equal(t, providers.TerminateOptions{Delete: true, Grace: 7}, r.with)
	assert.Empty(t, plain.Calls(), "another provider is asked nothing")
	assert.Empty(t, r.Calls())
}

// What an open breaker refuses is an outage, which says nothing about a sandbox.
func TestRehearsalsDuringAnOutage(t *testing.T) {
	t.Parallel()
	r := &rehearser{Provider: fake.New(fake.Options{Name: "prod"}), answers: map[string]error{}}
	var targets []sandbox.Sandbox
	for i := range 9 {
		id := "abcd000" + strconv.Itoa(i)
		r.answers[id] = fault.New(fault.KindUnavailable, "no answer")
		targets = append(targets, sandbox.Sandbox{Provider: "prod", ID: id})
	}
	assert.Empty(t, with(fleet.Options{Slots: 1}, r).Rehearse(t.Context(), targets, fleet.EndOptions{}))
	assert.Less(t, len(r.asked), 9, "the breaker has opened")
}

func TestRehearsalsTakeSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rehearser{Provider: fake.New(fake.Options{Name: "prod"}), both: make(chan struct{})}
		targets := make([]sandbox.Sandbox, 9)
		for i := range targets {
			targets[i] = sandbox.Sandbox{Provider: "prod", ID: "abcd000" + strconv.Itoa(i)}
		}
		go func() {
			synctest.Wait()
			close(r.both)
		}()
		assert.Empty(t, with(fleet.Options{Slots: 3}, r).Rehearse(t.Context(), targets, fleet.EndOptions{}))
		assert.Len(t, r.asked, 9)
		assert.Equal(t, 3, r.most)
	})
}
