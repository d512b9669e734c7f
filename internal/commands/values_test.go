package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/output"
	"sbx/internal/testkit/fake"
)

// TestValuesAsPeopleTypeThem are understood by each flag that takes such a value; a bare
// number is refused, with the reason.
func TestValuesAsPeopleTypeThem(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"ls --older-than 200ms", "ls --older-than 1.5h", "ls --before 2026-11-20", "ls --after yesterday",
		"ls --before 11:00", "ls --after 1h", "cleanup --older-than 1.5h", "cleanup --before yesterday", "tasks --since yesterday", "tasks --since 1.5h", "report --since 2026-11-19",
		"logs prod/aaaa --since yesterday", "logs prod/aaaa --since 11:30", "top --samples 1 --interval 200ms", "ls --timeout 5000ms",
		"create --memory 512MB -- true", "create --memory 512Mi -- true", "create --memory 1.5G --disk 8GiB -- true",
	} {
		p := fake.New(fake.Options{Name: "prod", Now: atNoon})
		p.Add(written("aaaa", "one"))
		r := newBench(fake.New(fake.Options{Name: "local", Type: "local", Now: atNoon}), p).run(t, line)
		assert.Equal(t, 0, r.code, "%s: %s", line, r.stderr)
	}
	for line, why := range map[string]string{
		"ls --older-than 10":           `"10" is not a duration: the unit is missing`,
		"ls --older-than yesterday":    `"yesterday" is a time, not an age`,
		"cleanup --older-than 11:30":   "write --before 11:30",
		"cleanup --younger-than 11:30": "write --after 11:30",
		"cleanup --older-than 23:00":   "later today (UTC)",
		"ls --before 10":               `"10" is not a date or time: the unit is missing`,
		"tasks --since 24":             `"24" is not a duration: the unit is missing`,
		"logs prod/aaaa --since 10":    `"10" is not a date or time: the unit is missing`,
		"create --memory 512 -- true":  `"512" is not a size: the unit is missing`,
		"create --memory 1h -- true":   `"1h" is not a size: unknown unit "h"`,
		"ls --older-than 10minutes":    `unknown unit "minutes"`,
		"ls --after 23:00":             "later today (UTC)",
		"create --ttl 200ms -- true":   "too short",
		"cleanup --every 5ms --yes":    "too short",
		"ls --columns age":             "did you mean age_seconds?",
		"ls --columns memory":          "did you mean memory_mb?",
		"stats --columns age":          "did you mean age_min_seconds or age_p50_seconds",
		"ls -o template={{.foo.bar}}":  `template: line 1: .foo.bar: there is no key "foo"`,
		"cleanup --max-delete x":       "correct the flag",
	} {
		b, _ := oneFake(written("aaaa", "one"))
		b.now = func() time.Time { return noon }
		r := b.run(t, line)
		assert.Equal(t, 2, r.code, line)
		assert.Contains(t, r.stderr, why, line)
		for _, text := range []string{"strconv", "template: template", "arg(s)", "config explain", "parsing time"} {
			assert.NotContains(t, r.stderr, text, line)
		}
		assert.Equal(t, 1, strings.Count(r.stderr, "error:"), line)
	}
	for format, why := range map[string]string{
		"template={{.foo":       "bad template: line 1: unclosed action",
		"template={{nosuch 1}}": `bad template: line 1: function "nosuch" not defined`,
		"jq=.[":                 "bad jq expression: it ends too early",
	} {
		_, err := output.ParseFormat(t.Context(), format)
		assert.ErrorContains(t, err, why, format)
	}
}
