package commands

import (
	"encoding/json"
	"errors"
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
	"sbx/internal/incident"
	"sbx/internal/journal"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
)

// incidentBench is a fleet of prod; its clock goes on by a second each time it is read.
func incidentBench(t *testing.T) (*bench, *fake.Provider) {
	t.Helper()
	b, p := herdBench(t, 3)
	var ticks atomic.Int64
	b.now = func() time.Time { return noon.Add(time.Duration(ticks.Add(1)) * time.Second) }
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
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &document), r.stdout+r.stderr)
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

// TestASpanOfTimeIsReported without any run of a runbook.
func TestASpanOfTimeIsReported(t *testing.T) {
	t.Parallel()
	b, p := incidentBench(t)
	for _, line := range []string{"stats", "diagnose", "verify", "create -- sleep 1"} {
		b.run(t, line)
	}
	require.Equal(t, 0, b.run(t, "terminate prod/prod0000 --yes").code)
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503 TOKEN=abcdef")})
	require.NotEqual(t, 0, b.run(t, "stats").code)
	r := b.run(t, "incident report --since 1h -o json")
	require.Equal(t, 0, r.code, r.stderr)
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

	report := r.item(t)
	assert.Nil(t, report["id"])
	assert.Len(t, report["acts"], 3)
	assert.NotEmpty(t, report["verification"])
	assert.NotEmpty(t, report["figures"])
	assert.Empty(t, report["problems"])
	assert.Equal(t, "sandbox-stuck", report["runbook"])
	assert.Empty(t, b.run(t, "incident report --since 2h --until 1h -o json").kinds(t), "nothing was done then")
	assert.Empty(t, b.run(t, "incident report --since 1h --provider local -o json").item(t)["acts"], "nothing was done there")
	page := b.runArgs(t, "incident", "report", "--since", "1h", "--title", "agents hang").stdout
	assert.Contains(t, page, "# Incident 2026-11-20 11:0")
	assert.Contains(t, page, ": agents hang\n")
	assert.Contains(t, page, "Nobody was told by sbx.")
}

// TestASpanThatIsNoneIsRefused, and so is a run beside it.
func TestASpanThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	for _, line := range []string{
		"--until 10m", "--since 10m --until 1h", "--since 3000-01-01", "--since 1h --until 3000-01-01", "--since nonsense", "b-1 --since 1h", "--since 1h --format pdf",
		"--since 1h --template x -o json",
	} {
		assert.Equal(t, 2, b.run(t, "incident report "+line).code, line)
	}
	for _, line := range []string{"", "b-1", "i-1", "x"} {
		r := b.run(t, "incident report "+line)
		assert.Equal(t, 5, r.code, line)
		assert.Contains(t, r.stderr, "hint: ", line)
	}
}

// TestARunIsReported by default, by its id and by the beginning of it; what is noted behind its end is about it.
func TestARunIsReported(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	r := b.run(t, "runbook run sandbox-stuck --yes --max-delete 5")
	id := fmt.Sprint(b.run(t, "runbook runs -o json").list(t, "items")[0]["run_id"])
	assert.Contains(t, r.stderr, "run "+id+"; `sbx incident report "+id+"` reports it")
	assert.NotContains(t, r.stderr, "is open")
	assert.NotContains(t, b.run(t, "runbook run sandbox-stuck --dry-run").stderr, "incident report")
	require.Equal(t, 0, b.run(t, "incident note --answer changes a-retry-loop").code)
	for _, word := range []string{"", id, id[:len(id)-2]} {
		report := b.run(t, "incident report "+word+" -o json").item(t)
		assert.Equal(t, id, report["id"])
		assert.Equal(t, "sandbox-stuck", report["runbook"])
		assert.NotEmpty(t, report["steps"])
		assert.Contains(t, fmt.Sprint(report["questions"]), "a-retry-loop")
	}
	assert.Contains(t, b.run(t, "__complete incident report b").stdout, id)
	_, err := os.Stat(filepath.Join(b.home, "incidents"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestAnIncidentOfBeforeIsReported by its id, from its start to its end, or as far as it was kept; nothing is
// added to it.
func TestAnIncidentOfBeforeIsReported(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	require.Equal(t, 0, b.run(t, "terminate prod/prod0000 --yes").code)
	old := func(id string, events ...incident.Event) {
		w, err := journal.Create(journal.Dir(filepath.Join(b.home, "incidents", id)), id, b.now)
		require.NoError(t, err)
		for _, e := range events {
			e.Actor = incident.Actor{Who: "alice", Host: "h1"}
			require.NoError(t, w.Append(string(e.Kind), e))
		}
		require.NoError(t, w.Close())
	}
	begin := func(at time.Time) incident.Event {
		return incident.Event{Kind: incident.Started, At: at, Start: &incident.Start{Schema: incident.Schema, Title: "agents hang", Severity: "critical", Runbook: "sandbox-stuck"}}
	}
	said := func(kind incident.Kind, at time.Time, text string) incident.Event {
		return incident.Event{Kind: kind, At: at, Text: text}
	}
	old("i-open", begin(noon.Add(-time.Hour)), said(incident.Acknowledged, noon.Add(-50*time.Minute), ""), said(incident.Noted, noon.Add(-time.Minute), "rolled back"))
	old("i-closed", begin(noon.Add(-3*time.Hour)), said(incident.Closed, noon.Add(-2*time.Hour), "a load test"))
	old("i-forgotten", begin(noon.Add(-72*time.Hour)), said(incident.Noted, noon.Add(-70*time.Hour), "rolled back"))
	for id, want := range map[string]struct {
		kinds []string
		until any
		acts  int
	}{
		"i-open":      {[]string{"started", "acknowledged", "note", "acted"}, nil, 1},
		"i-closed":    {[]string{"started", "closed"}, "2026-11-20T10:00:00Z", 0},
		"i-forgotten": {[]string{"started", "note"}, "2026-11-17T14:00:00Z", 0},
	} {
		r := b.run(t, "incident report "+id+" -o json")
		require.Equal(t, 0, r.code, r.stderr)
		assert.Equal(t, want.kinds, r.kinds(t), id)
		report := r.item(t)
		assert.Equal(t, "agents hang", report["title"])
		assert.Equal(t, "critical", report["severity"])
		assert.Equal(t, "alice", report["started_by"])
		assert.Equal(t, want.until, report["until"], id)
		assert.Len(t, report["acts"], want.acts, id)
	}
	assert.Regexp(t, `(?m)^\| acknowledged \| 2026-11-20 11:10:00Z`, b.run(t, "incident report i-o").stdout)
	assert.Contains(t, b.run(t, "__complete incident report i-").stdout, "i-forgotten")

	file := filepath.Join(b.home, "incidents", "i-open", "i-open.jsonl")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 0, b.run(t, "incident note found later").code)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	assert.Contains(t, b.run(t, "incident report i-open").stdout, "found later")
	assert.NotContains(t, b.run(t, "doctor").stdout, "i-open")

	require.NoError(t, os.WriteFile(file, []byte("garbage\n{}\n"), 0o600))
	r := b.run(t, "incident report i-open")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "> **Incomplete:** the record ends here, since it was changed")
	assert.Contains(t, r.stdout, "> **Incomplete:** when it was started cannot be read")
}

// TestTheVerbsThatAreGoneSayWhatToDoNow, with the flags that they had.
func TestTheVerbsThatAreGoneSayWhatToDoNow(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	for line, hint := range map[string]string{
		"start": "sbx runbook run sandbox-stuck", "start --title 'agents hang' --severity critical": "sbx incident report --since 14:00 --until 15:00",
		"ack": "sbx incident note --mark acknowledged", "ack i-1": "sbx incident note", "close --as false-alarm": "sbx incident report --since", "close i-1": "nothing is open",
		"status": "sbx runbook status", "status -o json": "sbx runbook status", "show i-1": "sbx incident report", "ls": "sbx runbook runs", "list -o wide": "sbx runbook runs",
	} {
		r := b.run(t, "incident "+line)
		assert.Equal(t, 2, r.code, line)
		assert.Empty(t, r.stdout, line)
		assert.Contains(t, r.stderr, "is gone", line)
		assert.Contains(t, r.stderr, hint, line)
	}
	r := b.run(t, "incident notes")
	assert.Equal(t, 2, r.code)
	assert.Contains(t, r.stderr, "did you mean `sbx incident note`")
}

// TestANoteIsKept where the store is: on this host, or for all hosts that share one.
func TestANoteIsKept(t *testing.T) {
	t.Parallel()
	host, _ := incidentBench(t)
	r := host.run(t, "incident note rolled back")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "noted on this host")
	item := host.run(t, "incident note --mark mitigated --at 5m --provider prod back -o json").item(t)
	assert.Equal(t, false, item["shared"])
	assert.Equal(t, "mitigated", item["milestone"])
	assert.Equal(t, []any{"prod"}, item["providers"])
	report := host.run(t, "incident report --since 1h -o json")
	assert.Equal(t, []string{"note", "note"}, report.kinds(t))
	assert.Contains(t, fmt.Sprint(report.item(t)["moments"]), "a note: back")
	assert.Equal(t, []string{"note"}, host.run(t, "incident report --since 1h --provider local -o json").kinds(t), "one is about prod alone")

	one, _ := incidentBench(t)
	two, _ := incidentBench(t)
	for _, b := range []*bench{one, two} {
		b.configureAnew(t, onlyProd+"store: {url: \"postgres://u@db.example/x\"}\n")
	}
	one.kept(one.now)
	two.store = one.store
	assert.Contains(t, one.run(t, "incident note seen by all").stdout, "noted in the shared store")
	assert.Contains(t, two.run(t, "incident report --since 1h").stdout, "seen by all")
}

func TestNotesThatAreRefused(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	for line, says := range map[string]string{
		"": "no TEXT", "--mark done x": "allowed: detected", "--at 3000-01-01 x": "in the future",
		"--answer changed x": "did you mean changes", strings.Repeat("x", 4001): "4001 characters",
	} {
		r := b.run(t, "incident note "+line)
		assert.Equal(t, 2, r.code, line)
		assert.Contains(t, r.stderr, says, line)
	}
	assert.Contains(t, b.runArgs(t, "incident", "note", " ").stderr, "the note is empty")
	assert.Empty(t, b.run(t, "incident report --since 1h -o json").kinds(t))
	assert.Contains(t, b.run(t, "__complete incident note --mark m").stdout, "mitigated")
	assert.Contains(t, b.run(t, "__complete incident note --answer ch").stdout, "changes")
}

// TestANoteThatIsNotKeptIsAnError, and a report without notes says that they are missing.
func TestANoteThatIsNotKeptIsAnError(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	b.adjust = func(d *Deps) {
		d.Store = func(bool) (store.Store, error) { return nil, errors.New("the disk is gone") }
	}
	r := b.run(t, "incident note x")
	assert.Equal(t, 1, r.code)
	assert.NotContains(t, r.stdout, "noted")
	assert.Contains(t, r.stderr, "the disk is gone")
	r = b.run(t, "incident report --since 1h")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stdout, "> **Incomplete:** what earlier looks have seen cannot be read: the disk is gone")
}

func TestATemplateOfAReport(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	file := filepath.Join(t.TempDir(), "report.tmpl")
	require.NoError(t, os.WriteFile(file, []byte("{{.item.title}} {{range .item.moments}}{{.milestone}},{{end}}\n"), 0o600))
	r := b.run(t, "incident report --since 1h --title hang --template "+file)
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, "hang detected,acknowledged,mitigated,verified,\n", r.stdout)
	require.NoError(t, os.WriteFile(file, []byte("{{.item.nosuch"), 0o600))
	assert.Equal(t, 2, b.run(t, "incident report --since 1h --template "+file).code)
}

func TestAReportSaysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	runs, err := filepath.Glob(filepath.Join(b.home, "runs", "*.jsonl"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(runs[0], []byte("garbage\n{}\n"), 0o600))
	r := b.run(t, "incident report --since 1h")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout, "> **Incomplete:** an act may be missing")
}

// TestWhatPeopleTypeIsRedacted before it is written, and a title before it is printed.
func TestWhatPeopleTypeIsRedacted(t *testing.T) {
	t.Parallel()
	b, _ := incidentBench(t)
	for _, text := range []string{"see https://bob:hunter22@host.example/", "after PASSWORD=hunter22", "was --token hunter22"} {
		r := b.runArgs(t, "incident", "note", "-o", "json", "--", text)
		require.Equal(t, 0, r.code, r.stderr)
		assert.NotContains(t, r.stdout, "hunter22")
	}
	r := b.runArgs(t, "incident", "report", "--since", "1h", "--title", "PASSWORD=hunter22", "-o", "json")
	assert.NotContains(t, r.stdout, "hunter22")
	assert.GreaterOrEqual(t, strings.Count(r.stdout, "[redacted]"), 4)
}
