package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A file of nested aliases would unfold to 9^9 items.
func TestAliasBombIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("l0: &l0 [x]\n")
	for i := 1; i <= 9; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 9), ", "))
	}
	b.WriteString("use: *l9\n")
	w := newWorld(t)
	w.user(b.String())
	started := time.Now()
	assert.Contains(t, w.fails(), "aliases are not accepted")
	assert.Less(t, time.Since(started), 5*time.Second)
}

func TestDeepNestingIsRefused(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		strings.Repeat("[", 200_000), "use: " + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000), strings.Repeat("a: {", 100_000),
	} {
		w := newWorld(t)
		w.user(content)
		assert.Contains(t, w.fails(), "config.yaml:1:")
	}
}

func TestAFileFullOfMistakesIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var b strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&b, "key%d: x\n", i)
	}
	w.user(b.String())
	text := w.fails()
	assert.Equal(t, maxMistakes, strings.Count(text, "\n"))
	assert.Contains(t, text, "and 4900 more mistakes")
}
