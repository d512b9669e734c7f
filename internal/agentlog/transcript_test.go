package agentlog

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// transcripts are the files below testdata: made by hand from public descriptions of both forms.
func transcripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.jsonl")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 20)
	return files
}

func readTranscript(t *testing.T, file string, o Options) *Session {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	s, err := readText(t, string(text), o)
	require.NoError(t, err)
	return s
}

// page is all that is told of a session.
func page(t *testing.T, s *Session, file string) string {
	t.Helper()
	var b strings.Builder
	var c Counter
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, s.Each(f, false, func(e *Event, _ *Beats) error {
		c.Add(e)
		failed := map[bool]string{true: " FAILED"}[e.Failed]
		fmt.Fprintf(&b, "%d %s %s %s%s: %s\n", e.Line, e.At.Format("15:04:05.000"), e.Source, e.Type, failed, e.What)
		for line := range strings.Lines(e.Diff) {
			b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
		}
		return nil
	}))
	stats := c.Stats()
	fmt.Fprintf(&b, "form %s, sessions %s, %d events, %d errors, tools %v\n", s.Form, strings.Join(s.Sessions, " "), stats.Events, stats.Errors, stats.Tools)
	if s.Tokens != nil {
		fmt.Fprintf(&b, "tokens %+v\n", *s.Tokens)
	}
	for _, warning := range s.Warnings() {
		b.WriteString("warning: " + warning + "\n")
	}
	return b.String()
}

// TestTranscripts holds what is told of each file to a golden page, also where its events are read again by their places.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	for _, file := range transcripts(t) {
		got := page(t, readTranscript(t, file, Options{Diffs: true}), file)
		golden := strings.TrimSuffix(file, ".jsonl") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, file)
		assert.Equal(t, got, page(t, readTranscript(t, file, Options{Diffs: true, Places: true}), file), "%s, by places", file)
	}
}

// independent are the figures of a file, counted without what the reader knows: with maps of encoding/json.
type independent struct {
	tools map[string]int
	calls map[string]map[string]float64
}

func countIndependently(t *testing.T, file string) independent {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	c := independent{map[string]int{}, map[string]map[string]float64{}}
	seen := map[string]bool{}
	for line := range bytes.Lines(text) {
		var l struct {
			Type       string `json:"type"`
			RequestID  string `json:"requestId"`  //nolint:tagliatelle // the form of others
			ForkedFrom any    `json:"forkedFrom"` //nolint:tagliatelle // likewise
			Message    struct {
				ID      string          `json:"id"`
				Model   string          `json:"model"`
				Content json.RawMessage `json:"content"`
				Usage   map[string]any  `json:"usage"`
			} `json:"message"`
		}
		if json.Unmarshal(line, &l) != nil || l.ForkedFrom != nil || l.Type != "assistant" {
			continue
		}
		var blocks []struct {
			Type string `json:"type"`
			ID   string `json:"id"`
			Name string `json:"name"`
		}
		_ = json.Unmarshal(l.Message.Content, &blocks)
		for _, block := range blocks {
			if block.Type == "tool_use" && !seen[block.ID] {
				seen[block.ID] = true
				c.tools[block.Name]++
			}
		}
		if l.Message.Usage == nil || l.Message.Model == "<synthetic>" || l.RequestID == "req_btw" {
			continue
		}
		used := c.calls[l.Message.ID]
		if used == nil {
			used = map[string]float64{}
			c.calls[l.Message.ID] = used
		}
		for key, value := range l.Message.Usage {
			if n, ok := value.(float64); ok {
				used[key] = max(used[key], n)
			}
		}
	}
	return c
}

// TestFiguresOfTranscripts are those of a count that knows nothing of this package.
func TestFiguresOfTranscripts(t *testing.T) {
	t.Parallel()
	for _, file := range transcripts(t) {
		if !strings.Contains(file, "/claude/") {
			continue
		}
		want := countIndependently(t, file)
		s := readTranscript(t, file, Options{})
		tools := map[string]int{}
		for _, tool := range StatsOf(s.Events).Tools {
			tools[tool.Name] = tool.Count
		}
		assert.Equal(t, want.tools, tools, file)
		sum := func(key string) int64 {
			var n float64
			for _, call := range want.calls {
				n += call[key]
			}
			return int64(n)
		}
		tokens := Tokens{}
		if s.Tokens != nil {
			tokens = *s.Tokens
		}
		tokens.Rule = ""
		assert.Equal(t, Tokens{
			Calls: len(want.calls), Input: sum("input_tokens"), CacheRead: sum("cache_read_input_tokens"), CacheWrite: sum("cache_creation_input_tokens"), Output: sum("output_tokens"),
		}, tokens, file)
	}
}

// TestATranscriptIsReadAsItGrows gives the same events in pieces of any size as at once.
func TestATranscriptIsReadAsItGrows(t *testing.T) {
	t.Parallel()
	for _, file := range transcripts(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		text = bytes.TrimRight(text, " ") // a last line without an end waits for it
		whats := func(events []Event) (all []string) {
			for _, e := range events {
				all = append(all, fmt.Sprint(e.Line, e.Type, e.What))
			}
			return all
		}
		whole := NewCollector(Options{Growing: true})
		require.NoError(t, whole.ReadLines(t.Context(), bytes.NewReader(text)))
		parts := NewCollector(Options{Growing: true})
		require.NoError(t, parts.ReadLines(t.Context(), bytes.NewReader(text[:10])))
		var got []string
		for size := 10; size < len(text); size += 97 {
			end := min(size+97, len(text))
			_, err := parts.ReadGrowth(t.Context(), bytes.NewReader(text[:end]), int64(end), false)
			require.NoError(t, err)
			got = append(got, whats(parts.session.Events)...)
		}
		assert.Equal(t, whats(whole.session.Events), got, file)
		assert.Equal(t, whole.Session().Tokens, parts.Session().Tokens, file)
	}
}

// TestTwoAgentsAreCompared: a run of Claude Code and one of Codex that ran one command and made one change.
func TestTwoAgentsAreCompared(t *testing.T) {
	t.Parallel()
	claude := []string{
		`{"type":"user","uuid":"1","sessionId":"s","timestamp":"2026-08-01T10:00:00Z","cwd":"/a","message":{"role":"user","content":"Fix it."}}`,
		`{"type":"assistant","uuid":"2","sessionId":"s","timestamp":"2026-08-01T10:00:01Z","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make test","description":"Test it"}}]}}`,
		`{"type":"assistant","uuid":"3","sessionId":"s","timestamp":"2026-08-01T10:00:02Z","message":{"id":"m2","content":[{"type":"tool_use","id":"t2","name":"Edit","input":{"file_path":"/a/x.go"}}]}}`,
		`{"type":"user","uuid":"4","sessionId":"s","timestamp":"2026-08-01T10:00:03Z","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"ok"}]},"toolUseResult":{"filePath":"/a/x.go","structuredPatch":[{"oldStart":1,"oldLines":2,"newStart":1,"newLines":2,"lines":[" package x","-a","+b"]}]}}`,
	}
	codex := func(added string) []string {
		return []string{
			`{"timestamp":"2026-08-02T10:00:00Z","type":"session_meta","payload":{"id":"c","cwd":"/home/b"}}`,
			`{"timestamp":"2026-08-02T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix it."}]}}`,
			`{"timestamp":"2026-08-02T10:00:02Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"make test\"}","call_id":"k1"}}`,
			`{"timestamp":"2026-08-02T10:00:03Z","type":"event_msg","payload":{"type":"patch_apply_end","call_id":"k2","success":true,"changes":{"/home/b/x.go":{"type":"update","unified_diff":"@@ -2 +2 @@\n-a\n+` + added + `\n"}}}}`,
		}
	}
	o := Options{Keys: true}
	same := Compare(read(t, o, claude...), read(t, o, codex("b")...))
	require.True(t, same.Mixed)
	assert.Equal(t, ToolUse, same.Diverge.A.Type, "the use of the editor")
	assert.Nil(t, same.Acts)
	assert.Equal(t, [2][]string{}, same.OnlyTools)
	assert.Empty(t, same.Files)
	other := Compare(read(t, o, claude...), read(t, o, codex("c")...))
	require.NotNil(t, other.Acts)
	assert.Equal(t, FileEdited, other.Acts.A.Type)
	require.Len(t, other.Files, 1)
	assert.Equal(t, "x.go", other.Files[0].Path)
}

func TestACompressedFileIsNamed(t *testing.T) {
	t.Parallel()
	s, err := readText(t, "\x28\xb5\x2f\xfd\x04\x58\n\x00", Options{})
	require.NoError(t, err)
	assert.True(t, s.Zstd)
	assert.False(t, read(t, Options{}, "garbage").Zstd)
}
