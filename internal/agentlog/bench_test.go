package agentlog

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
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

// BenchmarkSession reads the places of 100,000 events and then the events; kept-MB is what the session holds between.
func BenchmarkSession(b *testing.B) {
	text := sessionOf(100_000)
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
