package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/incident"
	"sbx/internal/ops"
	"sbx/internal/runbook/engine"
	"sbx/internal/testkit/fake"
)

// TestAPersonAcknowledgesAnIncidentThatIsOpen: the run that started it had nobody.
func TestAPersonAcknowledgesAnIncidentThatIsOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", prod(fake.Options{}, calm("a")))
	acknowledged := func() int {
		i, err := ops.FindIncident(s.env(t), "", false)
		require.NoError(t, err)
		n := 0
		for _, e := range i.Events {
			if e.Kind == incident.Acknowledged {
				n++
			}
		}
		return n
	}
	book := shipped(t, "sandbox-stuck")
	s.run(t, engine.Request{Book: book}, &person{})
	assert.Zero(t, acknowledged())
	for range 2 {
		s.run(t, engine.Request{Book: book}, &person{answer: typesWords})
		assert.Equal(t, 1, acknowledged(), "the first person counts")
	}
}
