package task

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// TestASandboxThatIsKeptSaysSo: hosts that do not share the store read it from the labels.
func TestASandboxThatIsKeptSaysSo(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	spec := Spec{KeepAlive: time.Hour, Limits: Limits{Attempt: 10 * time.Minute}}
	one := New("t-1", "", spec, Owner{}, at)
	box := one.sandboxSpec(Attempt{Nonce: "n", IntentAt: at}, nil)
	assert.True(t, sandbox.KeptAtMost(box.Labels).Equal(at.Add(box.TTL)), "it cannot outlive what its provider gives it")
	one.Spec.KeepAlive = 0
	assert.Zero(t, sandbox.KeptAtMost(one.sandboxSpec(Attempt{Nonce: "n", IntentAt: at}, nil).Labels))
}
