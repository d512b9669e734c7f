package agentlog

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sessionOf writes a session of that many events of about 480 bytes, as agents report them.
func sessionOf(events int) string {
	var b strings.Builder
	for i := range events {
		switch i % 5 {
		case 0:
			b.WriteString(at(i, "heartbeat", `{"status":"running","event_count":`+strconv.Itoa(i)+`}`))
		case 1:
			b.WriteString(at(i, "tool_use", fmt.Sprintf(`{"turn":%d,"tool":"Bash","input":{"command":"go test ./internal/room%d/... %s"}}`, i/10, i, strings.Repeat("-run x ", 30))))
		case 2:
			b.WriteString(at(i, "tool_completed", fmt.Sprintf(`{"turn":%d,"tool":"Bash","tool_response":{"stdout":"ok room%d %s"},"duration_ms":1500}`, i/10, i, strings.Repeat("0.1s ", 80))))
		case 3:
			b.WriteString(at(i, "file_edited", fmt.Sprintf(`{"turn":%d,"file_path":"internal/room%d/a.go","change_type":"modified","lines_added":5,"lines_removed":2,"full_diff":"%s"}`, i/10, i%200, strings.Repeat(`+line\n`, 80))))
		default:
			b.WriteString(at(i, "assistant_message", fmt.Sprintf(`{"turn":%d,"content":"step %d: %s"}`, i/10, i, strings.Repeat("the next step ", 40))))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// transcriptOf writes a transcript of Claude Code of that many lines.
func transcriptOf(lines int) string {
	var b strings.Builder
	for i := range lines {
		stamp, turn := noon.Add(time.Duration(i)*time.Second).Format("2006-01-02T15:04:05.000Z"), i/4
		fmt.Fprintf(&b, `{"parentUuid":"u%d","isSidechain":false,"cwd":"/work/app","sessionId":"s","version":"2.1.226","uuid":"u%d","timestamp":"%s",`, i-1, i, stamp)
		answer := fmt.Sprintf(`"type":"assistant","requestId":"r%d","message":{"id":"m%d","role":"assistant","model":"x","usage":{"input_tokens":3,"output_tokens":%d},"content":`, turn, turn, i)
		switch i % 4 {
		case 0:
			b.WriteString(answer + `[{"type":"text","text":"` + strings.Repeat("the next step ", 20) + `"}]}}`)
		case 1:
			fmt.Fprintf(&b, `%s[{"type":"tool_use","id":"t%d","name":"Edit","input":{"file_path":"/work/app/room%d/a.go","old_string":"%s","new_string":"y"}}]}}`,
				answer, turn, turn%200, strings.Repeat("x", 200))
		case 2:
			fmt.Fprintf(&b, `"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"updated"}]},`, turn)
			fmt.Fprintf(&b, `"toolUseResult":{"filePath":"/work/app/room%d/a.go","originalFile":"%s","structuredPatch":`, turn%200, strings.Repeat(`line\n`, 200))
			b.WriteString(`[{"oldStart":1,"oldLines":2,"newStart":1,"newLines":2,"lines":["-a","+b"," c"]}]}}`)
		default:
			b.WriteString(`"type":"attachment","attachment":{"type":"hook_success","hookName":"PostToolUse:Edit","hookEvent":"PostToolUse","exitCode":0,"stdout":"ok"}}`)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// BenchmarkSession reads the places of 100,000 events and then the events; kept-MB is what the session holds between.
func BenchmarkSession(b *testing.B) { benchmarkReading(b, sessionOf(100_000)) }

// BenchmarkTranscript reads a transcript of 100,000 lines in the same way.
func BenchmarkTranscript(b *testing.B) { benchmarkReading(b, transcriptOf(100_000)) }

func benchmarkReading(b *testing.B, text string) {
	b.Helper()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		c := NewCollector(Options{Places: true})
		if err := c.ReadLines(b.Context(), strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
		s := c.Session()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "kept-MB")
		if err := s.Each(strings.NewReader(text), false, func(*Event, *Beats) error { return nil }); err != nil {
			b.Fatal(err)
		}
		runtime.KeepAlive(c)
	}
}
