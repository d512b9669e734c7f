package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		want    string // of the mistakes; "" = none
		empty   bool
	}{
		"settings":         {"a: b", "", false},
		"windows":          {"a: b\r\nc: d\r\n", "", false},
		"marker before":    {"---\na: b\n", "", false},
		"marker after":     {"a: b\n...\n", "", false},
		"nothing":          {"", "", true},
		"null":             {"null", "", true},
		"second document":  {"a: b\n---\n", "/c.yaml:2:1: a second document begins here; only one is read", false},
		"anchor on a key":  {"&x a: b", "/c.yaml:1:1: anchors are not accepted; quote a text that begins with &", false},
		"merge":            {"a: &x {b: c}\nd: {<<: *x}", "aliases are not accepted", false},
		"quoted alias":     {"a: '*x'", "", false},
		"quoted tag":       {"a: '!x'", "", false},
		"binary tag":       {"a: !!binary aGk=", "/c.yaml:1:4: tags are not accepted; quote a text that begins with !", false},
		"open quote":       {"a: \"b\nc: d", "not valid YAML", false},
		"unknown escape":   {`a: "\q"`, "not valid YAML: found unknown escape character", false},
		"zero byte":        {"a: \x00", "not valid YAML: control characters are not allowed", false},
		"not UTF-8":        {"a: \xff", "not valid YAML", false},
		"closing only":     {"]", "not valid YAML", false},
		"alias of nothing": {"a:\n  - b\n  - *s3cret", "/c.yaml:3:5: not valid YAML: an alias names no anchor", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, errs := parseYAML("/c.yaml", []byte(tc.content))
			if tc.want == "" {
				require.Empty(t, errs)
				assert.Equal(t, tc.empty, root == nil)
				return
			}
			assert.Nil(t, root, "a tree beside mistakes")
			require.Error(t, errors.Join(errs...))
			assert.Contains(t, errors.Join(errs...).Error(), tc.want)
			assert.NotContains(t, errors.Join(errs...).Error(), "s3c")
		})
	}
}

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
