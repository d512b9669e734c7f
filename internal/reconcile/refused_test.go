package reconcile_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
)

// openRequests are unconfirmed requests of other processes.
type openRequests struct {
	all    map[sandbox.Ref]sandbox.EndRequest
	broken error
}

func (o openRequests) Unconfirmed(context.Context) (map[sandbox.Ref]sandbox.EndRequest, error) {
	return o.all, o.broken
}
func (openRequests) Keep(context.Context, sandbox.Ref, sandbox.EndRequest) error { return nil }
func (openRequests) Forget(context.Context, sandbox.Ref) error                   { return nil }

// TestNoRecordIsMarkedForWhatWasRefused: the provider denies a sandbox whose DELETE it has
// refused. Its machine may run, so its record is no ghost.
func TestNoRecordIsMarkedForWhatWasRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		open openRequests
		mark bool
	}{
		"asked and refused":   {openRequests{all: map[sandbox.Ref]sandbox.EndRequest{{Provider: "prod", ID: "x"}: {Detail: "HTTP 500"}}}, false},
		"cannot be known":     {openRequests{broken: errors.New("disk")}, false},
		"another was refused": {openRequests{all: map[sandbox.Ref]sandbox.EndRequest{{Provider: "prod", ID: "y"}: {}}}, true},
		"nothing was":         {openRequests{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.requests = tc.open
			s.on(recorded("x", is), recorded("a", is)).box("a", old)
			row := only(t, s.proved(t), "x")
			if tc.mark {
				assert.Equal(t, reconcile.ActMark, row.Action, row.Reason)
				return
			}
			assert.Equal(t, reconcile.ActReport, row.Action, row.Reason)
			assert.Equal(t, fault.KindUnverified, fault.KindOf(row.Err))
		})
	}
}

// TestARefusalAfterThePlanKeepsTheRecord: open requests are read again before a record is
// marked.
func TestARefusalAfterThePlanKeepsTheRecord(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.on(recorded("x", is), recorded("a", is)).box("a", old)
	plan := s.proved(t)
	s.requests = openRequests{all: map[sandbox.Ref]sandbox.EndRequest{{Provider: "prod", ID: "x"}: {Detail: "HTTP 500"}}}
	for _, d := range s.fix(t, plan) {
		if d.Ref.ID == "x" {
			assert.Equal(t, sandbox.OutcomeFailed, d.Outcome, d.Reason)
		}
	}
	assert.Empty(t, s.marked)
}
