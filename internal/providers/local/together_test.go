//go:build unix

package local

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTogetherKeepsTheOrderAndLosesNothing(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, readAhead - 1, readAhead, readAhead + 1, 3*readAhead + 7} {
		var ids, got []string
		for i := range n {
			ids = append(ids, fmt.Sprintf("id%04d", i))
		}
		for id, upper := range readInOrder(ids, strings.ToUpper) {
			assert.Equal(t, strings.ToUpper(id), upper)
			got = append(got, id)
		}
		assert.Equal(t, ids, got)
	}
}

func TestTogetherStopsWithItsConsumer(t *testing.T) {
	t.Parallel()
	ids := make([]string, 10*readAhead)
	read := make(chan string, len(ids))
	for range readInOrder(ids, func(id string) string { read <- id; return id }) {
		break
	}
	assert.Len(t, read, readAhead)
}
