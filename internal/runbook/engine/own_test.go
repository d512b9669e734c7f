package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/runbook/engine"
	"sbx/internal/testkit/fake"
)

// On a clock that only waits move, all time of a run is that of reads, waits and acts.
func TestReadsWaitsAndActsAreNoTimeOfTheEngine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{Latency: 100 * time.Millisecond}, looping("k3v9x2mq7a"), calm("k3v9x2mq7b"))
		run := newSite(t, "", p).run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Yes: true, MaxDelete: 5}, &person{})
		assert.NotEmpty(t, run.Acts())
		assert.Greater(t, run.Took, time.Second)
		assert.Zero(t, run.Own)
	})
}
