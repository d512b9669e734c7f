package ops

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCountsArePrintedForPeople(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "0 of 999", partText(0, 999))
	assert.Equal(t, "3,412 of 10,000", partText(3412, 10000))
	assert.Equal(t, "1,000,007 of 1,002,003", partText(1000007, 1002003))
}
