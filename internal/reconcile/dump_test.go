package reconcile_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/reconcile"
	"sbx/internal/store"
)

const header = "id,status,sandbox_id,keep_alive,max_duration,created_at,updated_at,completed_at,deleted_at\n"

// wanted is the row that every spelling below encodes.
func wanted() store.TaskRow {
	at := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	return store.TaskRow{
		ID: "t1", Status: "completed", SandboxID: "sbx_1", KeepAlive: true, MaxDurationMinutes: 300,
		CreatedAt: at, UpdatedAt: at.Add(time.Minute), CompletedAt: at.Add(time.Minute),
	}
}

func TestDumpsAreReadInEverySpelling(t *testing.T) {
	t.Parallel()
	object := `{"id":"t1","status":"completed","sandbox_id":"sbx_1","keep_alive":true,"max_duration":300,"created_at":"2026-11-20T09:30:00","updated_at":"2026-11-20T09:31:00Z","completed_at":"2026-11-20 10:31:00+01:00","deleted_at":null}`
	for name, c := range map[string]struct{ file, text string }{
		"psql":          {"d.csv", header + "t1,completed,sbx_1,t,300,2026-11-20 09:30:00,2026-11-20 09:31:00,2026-11-20 09:31:00,\n"},
		"no last line":  {"d.csv", header + "t1,completed,sbx_1,t,300,2026-11-20 09:30:00,2026-11-20 09:31:00,2026-11-20 09:31:00,"},
		"NULL as \\N":   {"d.csv", header + "t1,completed,sbx_1,true,300,2026-11-20 09:30:00,2026-11-20 09:31:00,2026-11-20 09:31:00,\\N\n"},
		"CRLF and BOM":  {"d.csv", "\ufeff" + strings.ReplaceAll(header+"t1,completed,sbx_1,t,300,2026-11-20 09:30:00,2026-11-20 09:31:00,2026-11-20 09:31:00,\n", "\n", "\r\n")},
		"quotes":        {"D.CSV", header + `"t1","completed","sbx_1","TRUE","300","2026-11-20T09:30:00Z","2026-11-20T09:31:00.000Z","2026-11-20 09:31:00+00",""` + "\n"},
		"zones":         {"d.csv", header + "t1,completed,sbx_1,t,300,2026-11-20 10:30:00+01,2026-11-20 04:31:00-0500,2026-11-20T15:01:00+05:30,\n"},
		"another order": {"d.csv", "deleted_at,Prompt,completed_at,updated_at,created_at,max_duration,KEEP_ALIVE, sandbox_id ,status,id\n,\"a \"\"b\"\",\nc\",2026-11-20 09:31:00,2026-11-20 09:31:00,2026-11-20 09:30:00,300,t,sbx_1,completed,t1\n"},
		"jsonl":         {"d.jsonl", object + "\n"},
		"jsonl, blank":  {"d.ndjson", "\ufeff\r\n\n" + object + "\r\n\n"},
		"jsonl, texts":  {"d.jsonl", strings.NewReplacer(`true`, `"t"`, `300`, `"300"`, `null`, `""`).Replace(object)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, err := reconcile.ReadDump(c.file, strings.NewReader(c.text))
			require.NoError(t, err)
			assert.Equal(t, []store.TaskRow{wanted()}, rows)
		})
	}
}

func TestADumpWithoutRowsHasNone(t *testing.T) {
	t.Parallel()
	for file, text := range map[string]string{"d.csv": header, "d.jsonl": ""} {
		rows, err := reconcile.ReadDump(file, strings.NewReader(text))
		require.NoError(t, err)
		assert.Empty(t, rows)
	}
}

func TestNullsAreWhereTheyMayBe(t *testing.T) {
	t.Parallel()
	rows, err := reconcile.ReadDump("d.csv", strings.NewReader(header+"t1,pending,,\\N,\\N,2026-11-20 09:30:00,2026-11-20 09:31:00,\\N,\\N\n"))
	require.NoError(t, err)
	want := wanted()
	want.Status, want.SandboxID, want.KeepAlive, want.MaxDurationMinutes, want.CompletedAt = "pending", "", false, 0, time.Time{}
	assert.Equal(t, []store.TaskRow{want}, rows)
}

func TestABrokenDumpIsNoDump(t *testing.T) {
	t.Parallel()
	good := "t1,completed,sbx_1,t,300,2026-11-20 09:30:00,2026-11-20 09:31:00,,\n"
	object := `{"id":"t1","status":"error","sandbox_id":"s","keep_alive":false,"max_duration":5,"created_at":"2026-11-20T09:30:00","updated_at":"2026-11-20T09:31:00","completed_at":null,"deleted_at":null}` + "\n"
	for name, c := range map[string]struct{ file, text, want string }{
		"no ending":         {"dump", good, "must end in .csv or .jsonl"},
		"empty":             {"d.csv", "", "d.csv:1: it is empty"},
		"no header":         {"d.csv", good, "d.csv:1: no column id, status"},
		"a missing column":  {"d.csv", strings.Replace(header, "keep_alive,", "", 1), "d.csv:1: no column keep_alive"},
		"a column twice":    {"d.csv", "id," + header, `d.csv:1: the column "id" occurs twice`},
		"another separator": {"d.csv", strings.ReplaceAll(header, ",", ";"), "d.csv:1: no column"},
		"too few fields":    {"d.csv", header + good + "t2,completed\n", "d.csv:3: wrong number of fields"},
		"an open quote":     {"d.csv", header + good + `"t2,completed` + "\n", `d.csv:3: extraneous or missing "`},
		"no truth":          {"d.csv", header + good + strings.Replace(good, ",t,", ",yes,", 1), `d.csv:3: keep_alive: "yes" is neither t nor f`},
		"no minutes":        {"d.csv", header + strings.Replace(good, ",300,", ",-3,", 1), `d.csv:2: max_duration: "-3" is not a number`},
		"many minutes":      {"d.csv", header + strings.Replace(good, ",300,", ",99999999,", 1), "d.csv:2: max_duration"},
		"no time":           {"d.csv", header + strings.Replace(good, "2026-11-20 09:30:00", "yesterday", 1), `d.csv:2: created_at: not a time: "yesterday"`},
		"no time at all":    {"d.csv", header + strings.Replace(good, "2026-11-20 09:30:00", "", 1), "d.csv:2: created_at: it must not be empty"},
		"infinity":          {"d.csv", header + strings.Replace(good, "2026-11-20 09:30:00", "infinity", 1), "d.csv:2: created_at"},
		"two words":         {"d.csv", header + strings.Replace(good, "sbx_1", "sbx 1", 1), "d.csv:2: sandbox_id"},
		"a control word":    {"d.csv", header + strings.Replace(good, "sbx_1", "sbx\x1b1", 1), "d.csv:2: sandbox_id"},
		"no id":             {"d.csv", header + strings.Replace(good, "t1", "", 1), "d.csv:2: id: it must not be empty"},
		"after a long cell": {"d.csv", strings.Replace(header, "\n", ",x\n", 1) + strings.Replace(good, "\n", ",\"a\nb\nc\"\n", 1) + "t2\n", "d.csv:5: wrong number"},
		"jsonl, cut off":    {"d.jsonl", object + object[:40], "d.jsonl:2: not a JSON object"},
		"jsonl, an array":   {"d.jsonl", "[" + object + "]", "d.jsonl:1: not a JSON object; each line"},
		"jsonl, two":        {"d.jsonl", strings.TrimSpace(object) + object, "d.jsonl:1: not a JSON object"},
		"jsonl, a column":   {"d.jsonl", object + strings.Replace(object, `"deleted_at":null`, `"x":1`, 1), "d.jsonl:2: no column deleted_at"},
		"jsonl, an object":  {"d.jsonl", strings.Replace(object, `"status":"error"`, `"status":{}`, 1), "d.jsonl:1: status: not a text"},
		"jsonl, half a min": {"d.jsonl", strings.Replace(object, ":5,", ":5.5,", 1), "d.jsonl:1: max_duration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, err := reconcile.ReadDump(c.file, strings.NewReader(c.text))
			assert.Nil(t, rows)
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			require.ErrorContains(t, err, c.want)
			assert.Contains(t, fault.HintOf(err), "select id, status")
		})
	}
}

func TestADumpThatCannotBeReadToItsEndIsNoDump(t *testing.T) {
	t.Parallel()
	rows, err := reconcile.ReadDump("d.csv", iotest.TimeoutReader(strings.NewReader(header+strings.Repeat("x", 4096))))
	assert.Nil(t, rows)
	require.ErrorIs(t, err, iotest.ErrTimeout)
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
}

func fuzzDump(f *testing.F, name string, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := reconcile.ReadDump(name, strings.NewReader(text))
		var known *fault.Error
		if err != nil && (rows != nil || !errors.As(err, &known) || known.Kind != fault.KindUsage) {
			t.Fatalf("rows %v beside %v", rows, err)
		}
		for _, r := range rows {
			if r.ID == "" || r.Status == "" || r.CreatedAt.IsZero() || r.UpdatedAt.IsZero() || r.MaxDurationMinutes < 0 || strings.ContainsAny(r.ID+r.SandboxID, " \n\x00") {
				t.Fatalf("%+v from %q", r, text)
			}
		}
		again, err2 := reconcile.ReadDump(name, strings.NewReader("\ufeff"+text))
		if (err == nil) != (err2 == nil) && !strings.HasPrefix(text, "\ufeff") || len(again) != len(rows) && err2 == nil && err == nil {
			t.Fatalf("a mark of its order changes what it says: %v, %v", err, err2)
		}
	})
}

func FuzzReadCSV(f *testing.F) {
	fuzzDump(f, "d.csv", header, header+"t1,completed,sbx_1,t,300,2026-11-20 09:30:00,2026-11-20 09:31:00,,\\N\r\n", "\"id\",", "id;x\n")
}

func FuzzReadJSONL(f *testing.F) {
	fuzzDump(f, "d.jsonl", "{}", "null", `{"id":"t1","status":"error","sandbox_id":null,"keep_alive":false,"max_duration":5,"created_at":"2026-11-20T09:30:00","updated_at":"2026-11-20T09:31:00","completed_at":null,"deleted_at":""}`)
}
