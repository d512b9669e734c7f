package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/testkit/fake"
)

// incidentBench is a fleet of prod with an open incident; its clock goes on by a second each time it
// is read.
func incidentBench(t *testing.T) (*bench, *fake.Provider) {
	t.Helper()
	b, p := herdBench(t, 3)
	var ticks atomic.Int64
	b.now = func() time.Time { return noon.Add(time.Duration(ticks.Add(1)) * time.Second) }
	require.Equal(t, 0, b.run(t, "incident start --title hang").code)
	return b, p
}

// timelineEvent is a part of an event in the document.
type timelineEvent struct {
	Kind    string              `json:"kind"`
	Verb    string              `json:"verb"`
	Text    string              `json:"text"`
	Figures map[string]*float64 `json:"figures"`
	Acts    []any               `json:"acts"`
}

func (r result) timeline(t *testing.T) []timelineEvent {
	t.Helper()
	var document struct {
		Item struct {
			Timeline []timelineEvent `json:"timeline"`
		} `json:"item"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &document), r.stdout)
	return document.Item.Timeline
}

func (r result) kinds(t *testing.T) []string {
	t.Helper()
	var kinds []string
	for _, e := range r.timeline(t) {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestAnIncidentHasLooksAndActs(t *testing.T) {
	t.Parallel()
	b, p := incidentBench(t)
	for _, line := range []string{"stats", "diagnose", "verify", "create -- sleep 1"} {
		b.run(t, line)
	}
	require.Equal(t, 0, b.run(t, "terminate prod/prod0000 --yes").code)
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503 TOKEN=abcdef")})
	require.NotEqual(t, 0, b.run(t, "stats").code)
	r := b.run(t, "incident show -o json")
	verbs := map[string]timelineEvent{}
	for _, e := range r.timeline(t) {
		if _, known := verbs[e.Verb]; !known {
			verbs[e.Verb] = e
		}
	}
	assert.Contains(t, verbs["stats"].Figures, "active")
	assert.Equal(t, new(3.0), verbs["diagnose"].Figures["listed"])
	assert.Contains(t, verbs["verify"].Text, "of 5 targets missed")
	assert.Equal(t, "acted", verbs["terminate"].Kind)
	assert.Len(t, verbs["cleanup"].Acts, 2)
	assert.Contains(t, r.stdout, "TOKEN=[redacted]", "the last look failed")
	assert.NotContains(t, r.stdout, "abcdef")

	report := b.run(t, "incident report -o json").item(t)
	assert.Len(t, report["acts"], 3)
	assert.NotEmpty(t, report["verification"])
	assert.NotEmpty(t, report["figures"])
	assert.Empty(t, report["problems"])
	assert.Equal(t, "sandbox-stuck", report["runbook"])
}

// TestAnIncidentIsAQuestion: what was seen and done before it was started is in the report of one that was
// detected earlier, and what comes behind its end is not.
func TestAnIncidentIsAQuestion(t *testing.T) {
	t.Parallel()
	b, _ := herdBench(t, 3)
	var ticks atomic.Int64
	b.now = func() time.Time { return noon.Add(time.Duration(ticks.Add(1)) * time.Second) }
	b.run(t, "stats")
	require.Equal(t, 0, b.run(t, "terminate prod/prod0000 --yes").code)
	require.Equal(t, 0, b.run(t, "incident start").code)
	assert.Equal(t, []string{"started"}, b.run(t, "incident show -o json").kinds(t))
	require.Equal(t, 0, b.run(t, "incident close").code)
	require.Equal(t, 0, b.run(t, "incident start --detected 5m").code)
	assert.Equal(t, []string{"seen", "acted", "started"}, b.run(t, "incident show -o json").kinds(t))
	require.Equal(t, 0, b.run(t, "incident close").code)
	b.run(t, "stats")
	require.Equal(t, 0, b.run(t, "terminate prod/prod0001 --yes").code)
	assert.Equal(t, []string{"seen", "acted", "started", "closed"}, b.run(t, "incident show -o json").kinds(t))
}

func TestAnIncidentOfAPersonIsAcknowledged(t *testing.T) {
	t.Parallel()
	b, _ := herdBench(t, 1)
	b.tty = true
	require.Equal(t, 0, b.run(t, "incident start").code)
	assert.Equal(t, []string{"started", "acknowledged"}, b.run(t, "incident show -o json").kinds(t))

	b, _ = herdBench(t, 1)
	require.Equal(t, 0, b.run(t, "incident start").code)
	assert.Equal(t, []string{"started"}, b.run(t, "incident show -o json").kinds(t), "cron works on nothing")
	require.Equal(t, 0, b.run(t, "incident ack").code)
	assert.Equal(t, []string{"started", "acknowledged"}, b.run(t, "incident show -o json").kinds(t))
}

func TestTheRunbookOfAnIncidentIsThatOfItsAlert(t *testing.T) {
	t.Parallel()
	b, _ := herdBench(t, 1)
	item := b.run(t, "incident start --alert create_failing --severity warning --detected 30m -o json").item(t)
	assert.Equal(t, "provisioning-failing", item["runbook"])
	report := b.run(t, "incident report -o json").item(t)
	assert.Contains(t, fmt.Sprint(report["moments"]), "given by")
	assert.Equal(t, "warning", report["severity"])
	assert.NotEmpty(t, report["questions"])
}

func TestIncidentsAreCompleted(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	for _, line := range []string{"incident show i-", "incident report i-", "incident close i-", "incident note --incident i-"} {
		assert.Regexp(t, `(?m)^i-\S+\thang$`, b.run(t, "__complete "+line).stdout, line)
	}
	assert.Contains(t, b.run(t, "__complete incident close --as f").stdout, "false-alarm")
	assert.Contains(t, b.run(t, "__complete incident note --mark m").stdout, "mitigated")
}

func TestATemplateOfAReport(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	file := filepath.Join(t.TempDir(), "report.tmpl")
	require.NoError(t, os.WriteFile(file, []byte("{{.item.title}} {{range .item.moments}}{{.milestone}},{{end}}\n"), 0o600))
	r := b.run(t, "incident report --template "+file)
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, "hang detected,acknowledged,mitigated,verified,closed,\n", r.stdout)
	require.NoError(t, os.WriteFile(file, []byte("{{.item.nosuch"), 0o600))
	assert.Equal(t, 2, b.run(t, "incident report --template "+file).code)
}

func TestAReportSaysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	runs, err := filepath.Glob(filepath.Join(b.home, "runs", "*.jsonl"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(runs[0], []byte("garbage\n{}\n"), 0o600))
	r := b.run(t, "incident report")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "> **Incomplete:** an act may be missing")
}

// TestWhatPeopleTypeIsRedacted before it is written.
func TestWhatPeopleTypeIsRedacted(t *testing.T) {
	t.Parallel()
	b, _ := herdBench(t, 1)
	for _, args := range [][]string{
		{"start", "--title", "after PASSWORD=hunter22"}, {"note", "see https://bob:hunter22@host.example/"}, {"close", "--note", "was --token hunter22"},
	} {
		require.Equal(t, 0, b.runArgs(t, append([]string{"incident"}, args...)...).code, args)
	}
	files, err := filepath.Glob(filepath.Join(b.home, "incidents", "*", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	assert.NotContains(t, string(text), "hunter22")
	assert.Equal(t, 3, strings.Count(string(text), "[redacted]"))
}
