package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func asIs(text string) string { return text }

// fill gives every field a value: another number or text each time, times, and two elements.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 3, 1, 12, 0, *n%60, *n, time.UTC)))
		return
	case error:
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.String:
		v.SetString(fmt.Sprintf("text%d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	default:
	}
}

func filled[T any]() T {
	var v T
	n := 0
	fill(reflect.ValueOf(&v).Elem(), &n)
	return v
}

// throughJSON is what a file gives back.
func throughJSON[T any](t *testing.T, v T) T {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	var back T
	require.NoError(t, json.Unmarshal(text, &back))
	return back
}

// TestEveryFactIsRecorded: a field that is added to what the rules read must be recorded, or stand here
// as one that is left out on purpose.
func TestEveryFactIsRecorded(t *testing.T) {
	t.Parallel()
	row := filled[sandbox.Sandbox]()
	row.State, row.Labels, row.Command, row.Owner, row.Limits.DiskBytes, row.Limits.Isolation = sandbox.StateRunning, nil, nil, "", nil, ""
	row.Exit.Evidence = nil
	for i := range row.Troubles {
		row.Troubles[i].Evidence = nil
	}
	facts := filled[fleet.Facts]()
	facts.Sandbox = row
	facts.Sandbox.LastActivityAt, facts.Sandbox.ActivityBasis, facts.Sandbox.State = row.LastActivityAt.Add(time.Hour), sandbox.BasisOutput, sandbox.StateTerminated
	facts.Work.Evidence = nil
	known := triage.Patterns()
	facts.Logs.Hits = []triage.Hit{{Pattern: known[3], Count: 4, Last: row.CreatedAt}, {Pattern: known[5], Count: 1}}
	facts.Logs.Error, facts.Logs.Call, facts.Logs.Repeat.Line = "", "", ""
	for _, samples := range [][]sandbox.Usage{facts.Samples, facts.Recorded.Samples} {
		for i := range samples {
			samples[i].MemoryPeakBytes, samples[i].Duration = nil, nil
			samples[i].At = row.CreatedAt.Add(time.Duration(i) * 1234 * time.Microsecond)
		}
	}
	p := &Profile{Name: row.Provider, Type: row.ProviderType}
	b := throughJSON(t, NewSandbox(row, fleet.Judged{At: row.CreatedAt, Facts: &facts}, 10, asIs))
	got := b.Recorded(p, Patterns())
	assert.Equal(t, row, got.Row)
	assert.Equal(t, row.CreatedAt, got.At)
	assert.Equal(t, facts, *got.Facts)
}

// TestEveryFigureIsRecorded likewise, of a profile.
func TestEveryFigureIsRecorded(t *testing.T) {
	t.Parallel()
	stats := filled[fleet.ProviderStats]()
	stats.Err, stats.ItemsErr = nil, nil
	stats.Items, stats.Shared = []sandbox.Sandbox{{ID: "a"}}, nil // they are shared by the rounds of a dashboard alone
	h := &stats.History                                           // the counts are those of the provider, or of the listing
	h.Active, h.Provisioning, h.Terminating, h.TotalCreated, h.TotalDestroyed, h.TimedOut = nil, nil, nil, nil, nil, nil
	h.OverStuckAge, h.OverProvisioningAge, h.Missing, h.CleanupNotFound, h.QuotaUsed, h.Quota = nil, nil, nil, nil, nil, nil
	quota := fleet.ProviderQuota{Provider: stats.Provider, Quotas: filled[[]providers.Quota]()}
	p := throughJSON(t, NewProfile(stats, true, &quota, asIs))
	assert.Equal(t, stats, *p.ProviderStats(stats.Items))
	back, has := p.ProviderQuota()
	assert.True(t, has)
	assert.Equal(t, quota, back)

	log := filled[triage.CleanupLog]()
	log.Doubts = nil
	for i := range log.Runs {
		log.Runs[i].Error = "it failed"
	}
	assert.Equal(t, &log, throughJSON(t, NewLog(&log)).CleanupLog())
	assert.Nil(t, NewLog(nil).CleanupLog())
}

// minimal is the least that a reader takes.
const minimal = `{"schema":"sbx.snapshot/v1","at":"2026-03-01T12:00:00Z","settings":[],"providers":[{"provider":"p","judged":false,"records":{},"sandboxes":[{"id":"a","state":"running"}]}],"concluded":{"verdict":"true","listed":1,"stuck":[],"suspected":[],"unjudged":[],"flags":[],"causes":[],"alerts":[],"checks":[],"plan":[]}}`

func TestReaderIsStrict(t *testing.T) {
	t.Parallel()
	_, err := Decode([]byte(minimal))
	require.NoError(t, err)
	change := func(from, to string) string {
		require.Contains(t, minimal, from)
		return strings.Replace(minimal, from, to, 1)
	}
	for want, text := range map[string]string{
		"ends too early":               minimal[:len(minimal)/2],
		"invalid JSON at byte 2":       "not JSON",
		"it has no schema":             "{}",
		`its schema is "sbx.ls/v1"`:    change("sbx.snapshot/v1", "sbx.ls/v1"),
		"written by a newer sbx":       change("sbx.snapshot/v1", "sbx.snapshot/v2"),
		`its schema is "sbx.snapshot/`: change("sbx.snapshot/v1", "sbx.snapshot/vx"),
		`unknown key "extra"`:          change(`"settings":[]`, `"settings":[],"extra":1`),
		"invalid JSON at byte":         minimal + "{}",
		"has no time (key at)":         change(`"at":"2026-03-01T12:00:00Z",`, ""),
		"is not a time":                change("2026-03-01T12:00:00Z", "yesterday"),
		`"running a way", which is`:    change(`"running"`, `"running a way"`),
		"without an id":                change(`"id":"a"`, `"id":""`),
		"has p/a twice":                change(`{"id":"a","state":"running"}`, `{"id":"a","state":"running"},{"id":"a","state":"paused"}`),
		"which is no name":             change(`"provider":"p"`, `"provider":"p/q"`),
		`a verdict "maybe"`:            change(`"verdict":"true"`, `"verdict":"maybe"`),
		"(key judged_at)":              change(`"judged":false`, `"judged":true`),
		"must not be of type":          change(`"listed":1`, `"listed":"one"`),
		"has 3 values for 2 samples":   change(`"id":"a"`, `"id":"a","look":{"samples":{"start":"2026-03-01T12:00:00Z","after_us":[0,1],"pids":[1,2,3]}}`),
		"it has -1 processes":          change(`"id":"a"`, `"id":"a","look":{"processes":-1}`),
		`"gone" is no state`:           change(`"id":"a"`, `"id":"a","look":{"state":"gone"}`),
		"microseconds after the first": change(`"id":"a"`, `"id":"a","look":{"samples":{"start":"2026-03-01T12:00:00Z","after_us":[999999999999999999]}}`),
		"larger than 32 MiB":           minimal + strings.Repeat(" ", MaxFile),
	} {
		_, err := Decode([]byte(text))
		if assert.Error(t, err, want) {
			assert.Contains(t, err.Error(), want)
		}
	}
}

// TestTenThousandSandboxes stay far below the limit of a file, also where each was looked at.
func TestTenThousandSandboxes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := rand.New(rand.NewPCG(1, 1))
	size := func(looked, samplesOfEach int) int {
		p := Profile{Name: "prod", Sandboxes: []Sandbox{}}
		for i := range 10_000 {
			row := sandbox.Sandbox{ID: fmt.Sprintf("i%020d", i), State: sandbox.StateRunning, CreatedAt: at, StartedAt: at, Template: "base", TaskID: "T-1", AgentType: "coder"}
			j := fleet.Judged{At: at}
			if i < looked {
				j.Facts = &fleet.Facts{Sandbox: row, Logs: &triage.LogFindings{Lines: 200, Last: at}}
				for n := range samplesOfEach {
					j.Facts.Samples = append(j.Facts.Samples, sandbox.Usage{
						At: at.Add(time.Duration(n) * 5 * time.Second), CPUPercent: new(r.Float64() * 100), MemoryBytes: new(r.Int64N(1 << 30)), MemoryLimitBytes: new(int64(1 << 30)), Source: "metrics API",
					})
				}
			}
			p.Sandboxes = append(p.Sandboxes, NewSandbox(row, j, SamplesEach(looked), asIs))
		}
		text, err := Encode(&Snapshot{Schema: Schema, At: at, Profiles: []Profile{p}})
		require.NoError(t, err)
		_, err = Decode(text)
		require.NoError(t, err)
		return len(text)
	}
	assert.Less(t, size(500, 74), 6<<20, "a usual incident")
	assert.Less(t, size(10_000, 500), 20<<20, "all are looked at, with more samples than are recorded")
}

// FuzzDecode: whatever the bytes, the reader does not panic, and what it takes can be judged and is
// the same after another round.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(`{"schema":"sbx.snapshot/v2"}`))
	f.Add([]byte(strings.Replace(minimal, `"id":"a"`, `"id":"a","judged_at":"2026-03-01T12:00:00Z","look":{"samples":{"start":"2026-03-01T12:00:00Z","after_us":[0,5],"pids":[1]},"logs":{"lines":3,"hits":[{"pattern":"oom","count":1}]}}`, 1)))
	limits := func(sandbox.Sandbox) triage.Thresholds { return triage.DefaultThresholds() }
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Decode(text)
		if err != nil {
			return
		}
		one, err := Encode(s)
		require.NoError(t, err)
		again, err := Decode(one)
		require.NoError(t, err, "%s", one)
		two, err := Encode(again)
		require.NoError(t, err)
		require.True(t, bytes.Equal(one, two))
		for i := range s.Profiles {
			p := &s.Profiles[i]
			var items []fleet.Recorded
			for n := range p.Sandboxes {
				items = append(items, p.Sandboxes[n].Recorded(p, Patterns()))
			}
			fleet.JudgeRecorded(items, fleet.NewProfileFigures(p.Records.Signals(), nil, s.At), limits)
			p.ProviderStats(nil)
			p.ProviderQuota()
		}
		CompareConclusions(s.Concluded, Concluded{})
		s.Log.CleanupLog()
	})
}
