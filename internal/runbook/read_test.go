package runbook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/runbook"
)

// minimal is a document without findings.
const minimal = `apiVersion: sbx/v1
kind: Runbook
metadata:
  id: my-alert
  title: My alert
  owner: Agent Team
  updated: 2026-11-23
  review_every: 180d
  eta: 2m
spec:
  meaning: Something is wrong.
  impact: Somebody notices.
  steps:
    - id: count
      collect: [count]
  verification:
    - id: active
      check: verify.active_normal
      eta: 5m
`

func now() time.Time { return time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC) }

// found are the findings about a document, as lines.
func found(t *testing.T, content string) []string {
	t.Helper()
	book, list := runbook.Parse("my.yaml", []byte(content))
	if book != nil {
		list = append(list, book.Lint(runbook.Context{Now: now(), Others: []string{"my-alert", "other"}})...)
	}
	var lines []string
	for _, f := range list {
		require.NotEmpty(t, f.Message)
		lines = append(lines, f.Place()+" "+string(f.Severity)+" "+string(f.Rule)+" "+f.Message)
	}
	return lines
}

func TestAMinimalDocumentIsClean(t *testing.T) {
	t.Parallel()
	assert.Empty(t, found(t, minimal))
}

// TestAllMistakesAtOnce: one run shows every mistake of a document, in order, with a caret.
func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	broken := strings.NewReplacer("owner: Agent Team", "ownr: Agent Team", "eta: 2m", "eta: soon", "collect: [count]", "colect: [count]", "eta: 5m", "eta: 5m\n      gate: maybe").Replace(minimal)
	book, list := runbook.Parse("my.yaml", []byte(broken))
	require.NotNil(t, book)
	require.Len(t, list, 5)
	var text []string
	for _, f := range list {
		text = append(text, append([]string{f.Place() + " " + f.Message + " (" + f.Hint + ")"}, f.Excerpt...)...)
	}
	assert.Equal(t, []string{
		`my.yaml:6:3 unknown key "ownr" (did you mean owner? allowed: id, title, owner, reviewers, updated, review_every, alerts, other_alerts, eta)`,
		"  ownr: Agent Team",
		"  ^^^^",
	}, text[:3])
	assert.Contains(t, strings.Join(text, "\n"), "did you mean collect?")
	assert.Contains(t, strings.Join(text, "\n"), "      gate: maybe\n            ^^^^^")
}

// TestMistakesOfReadingHideNoOthers: what the document says is checked beside what of it cannot be read, and nothing
// is reported that only follows from that.
func TestMistakesOfReadingHideNoOthers(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{
		"my.yaml:5:10 error syntax tags are not accepted; quote a text that begins with !",
		`my.yaml:6:3 error syntax unknown key "ownr"`,
		`my.yaml:7:12 error syntax updated: "23.11.2026" is not a day like 2026-11-23`,
		"my.yaml:4:3 error syntax metadata has no owner",
		`my.yaml:17:7 error syntax unknown key "colect"`,
		`my.yaml:32:11 error syntax unknown key "titel"`,
		`my.yaml:33:41 error syntax stuck: "maybe" is neither true nor false`,
		`my.yaml:35:19 error syntax within: "5" is not a duration: the unit is missing; write it like 200ms, 90s, 10m, 1.5h, 3d, 1w or 1h30m`,
		`my.yaml:39:17 error syntax severity: "bad" is not known`,
		"my.yaml:40:10 error syntax spec.notes must be a list",
		`my.yaml:11:18 error reference no value is called "thresholds.stuck_ag"`,
		`my.yaml:20:14 error expression no name "stats.activ"`,
		"my.yaml:24:7 error eta step wait has no eta",
		"my.yaml:31:11 error eta step end has no eta",
		"my.yaml:33:16 error no-gate step end is destructive and has no gate",
	}, found(t, `apiVersion: sbx/v1
kind: Runbook
metadata:
  id: my-alert
  title: !My alert
  ownr: Agent Team
  updated: 23.11.2026
  review_every: 180d
  eta: 9m
spec:
  meaning: It is {{ thresholds.stuck_ag }} old.
  impact: Somebody notices.
  steps:
    - id: count
      collect: [count]
    - id: records
      colect: [records]
    - id: many
      title: Many
      check: stats.activ > 3
    - id: differ
      title: They differ
      check: records.differ > 0
    - id: wait
      title: Wait
      manual: Wait.
  procedures:
    - id: p
      title: P
      steps:
        - id: end
          titel: End
          act: {action: cleanup, stuck: maybe}
          expect: stats.stuck == 0
          within: 5
  verification:
    - id: active
      check: verify.active_normal
      severity: bad
  notes: none
`))
}

func TestALargeOrDeepDocumentIsRefused(t *testing.T) {
	t.Parallel()
	began := time.Now()
	for _, content := range []string{strings.Repeat("# a comment\n", 1<<20), "spec: " + strings.Repeat("{spec: ", 9000) + strings.Repeat("}", 9000), strings.Repeat("- ", 9000) + "x", ""} {
		_, list := runbook.Parse("my.yaml", []byte(content))
		assert.NotEmpty(t, list)
	}
	assert.Less(t, time.Since(began), time.Minute)
}

// FuzzParse: no text makes reading, linting or filling fail, and each finding has a place in it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	for _, seed := range []string{"spec: {steps: [{act: {action: cleanup}}]}", "metadata: {title: a # b}", "spec:\n  steps:\n    - check: |\n        stats.active > 2\n        and x", "spec: {meaning: '{{ thresholds.stuck_age }} {{'}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		book, list := runbook.Parse("f.yaml", content)
		if book != nil {
			list = append(list, book.Lint(runbook.Context{Now: now()})...)
			_ = book.Fill(book.Spec.Meaning)
		}
		for _, one := range list {
			assert.True(t, one.Line > 0 && one.Column > 0, "%+v", one)
		}
	})
}
