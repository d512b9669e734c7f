package runbook_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/runbook"
)

// TestANewRunbookIsClean, for an alert of sbx, of another system, and for none.
func TestANewRunbookIsClean(t *testing.T) {
	t.Parallel()
	for _, alert := range []string{"", "create_failing", "High Latency: prod #1"} {
		text, err := runbook.New("high-latency", "", "Team: A #1", alert, now())
		require.NoError(t, err)
		assert.Empty(t, found(t, text), text)
		book, _ := runbook.Parse("x.yaml", []byte(text))
		assert.Equal(t, "High latency", book.Metadata.Title)
		if alert != "" {
			assert.Equal(t, []string{alert}, book.AlertNames())
		}
	}
	_, err := runbook.New("High Latency", "", "A", "", now())
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
}
