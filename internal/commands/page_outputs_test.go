package commands

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/testkit/fake"
)

// shownOn is the block of a page that begins with a line.
func shownOn(t *testing.T, name, first string) []string {
	t.Helper()
	raw, err := os.ReadFile("../../docs/" + name)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(raw), "\n"+first)
	require.True(t, found, first)
	text, _, _ := strings.Cut(first+rest, "\n```")
	return strings.Split(text, "\n")
}

// withoutFigures is a line without what differs from one fleet to another: ids, names of profiles, figures and spaces.
func withoutFigures(line string) string {
	line = regexp.MustCompile(`[a-z]+/[a-z0-9]+(, [a-z]+/[a-z0-9]+)*`).ReplaceAllString(line, "REF")
	line = regexp.MustCompile(`\b(local|prod)\b`).ReplaceAllString(line, "PROFILE")
	line = regexp.MustCompile(`\b[0-9]+[smh]?\b%?`).ReplaceAllString(line, "N")
	return strings.TrimSpace(regexp.MustCompile(` +`).ReplaceAllString(line, " "))
}

// assertPrinted wants each line of a page in a text.
func assertPrinted(t *testing.T, shown []string, printed string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(printed) {
		lines = append(lines, withoutFigures(strings.TrimRight(line, "\n")))
	}
	for _, line := range shown {
		assert.Contains(t, lines, withoutFigures(line), "%q", line)
	}
}

// TestThePlanOfThePage: docs/CLEANUP.md shows the plan of such a fleet.
func TestThePlanOfThePage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		named := func(s fake.Seed, name, task string, labels map[string]string) fake.Seed {
			s.Sandbox.Name, s.Sandbox.TaskID, s.Sandbox.Labels = name, task, labels
			return s
		}
		p := fake.New(fake.Options{Name: "local", Type: "local", Now: atNoon})
		kept, team := map[string]string{"sbx/keep": "true"}, map[string]string{"team": "search"}
		alive, unread := using("alive00001", 20*time.Minute, growing(0.3, 0, 20)), running("unread0001", time.Hour)
		alive.Sandbox.LastActivityAt = noon.Add(-2 * time.Second)
		p.Add(named(running("yffcekshxh", 21*time.Minute), "worker", "T-7", team), named(running("qxcsyrklt5", 14*time.Minute), "", "T-9", team),
			named(running("kept000001", time.Hour), "", "", kept), named(running("kept000002", time.Hour), "", "", kept), alive, unread, running("young00001", time.Minute))
		p.Break(fake.Fault{Op: fake.OpLogs, ID: "unread0001", Err: fault.New(fault.KindUnsupported, "it has no log")})
		b := newBench(p)
		b.tty, b.width, b.stdin, b.env = true, 100, "\n", []string{"NO_COLOR=1"}
		assertPrinted(t, shownOn(t, "CLEANUP.md", "Would stay: 5"), b.run(t, "cleanup --older-than 10m").stdout)
	})
}
