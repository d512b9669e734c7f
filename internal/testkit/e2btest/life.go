package e2btest

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/internal/testkit/wiretest"
)

// Run starts a program in a sandbox as another client does over envd: only that client receives its
// output, and neither the API's log nor a file has it.
func (f *Fake) Run(id string, args ...string) {
	f.mu.Lock()
	b := f.findAny(id)
	f.mu.Unlock()
	if b == nil {
		f.t.Errorf("e2b fake: there is no sandbox %s to run a program in", id)
		return
	}
	var req startRequest
	req.Process.Cmd, req.Process.Args = args[0], args[1:]
	f.mu.Lock()
	f.calls++
	op := f.calls
	f.mu.Unlock()
	if _, err := f.startProcess(b, req, &frameWriter{over: true}, op); err != nil {
		f.t.Errorf("e2b fake: %v", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, l := range b.logs {
		if l.fields["operation_id"] == strconv.Itoa(op) && l.fields["event_type"] == "process_start" {
			b.logs[i].at = b.started.Add(time.Second)
		}
	}
}

// Use sets the CPU use of a sandbox, in percent of its machine.
func (f *Fake) Use(id string, cpuPercent float64) {
	f.Show(id, Figures{CPUPercent: cpuPercent, MemoryMiB: 200})
}

// Show sets the metrics of a sandbox, also those of the past.
func (f *Fake) Show(id string, figures Figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.findAny(id)
	if b == nil {
		f.t.Errorf("e2b fake: there is no sandbox %s with figures", id)
		return
	}
	if figures.MemoryTotalMiB == 0 {
		figures.MemoryTotalMiB = 512
	}
	b.figures, b.since = figures, f.o.Now()
}

// handleProcesses is envd's process.Process/List: the running programs that envd has started, without
// their children.
func (f *Fake) handleProcesses(w http.ResponseWriter, _ *http.Request, b *box) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rows := []any{}
	for pid, p := range b.procs {
		if p.run.HasEnded() {
			continue
		}
		row := map[string]any{"pid": pid, "config": map[string]any{"cmd": p.args[0], "args": p.args[1:]}}
		if p.tag != "" {
			row["tag"] = p.tag
		}
		rows = append(rows, row)
	}
	answer := map[string]any{}
	if len(rows) > 0 { // protobuf's JSON omits an empty list
		answer["processes"] = rows
	}
	wiretest.JSON(w, http.StatusOK, answer)
}

// sampleEvery is the interval of the metrics API.
const sampleEvery = 5 * time.Second

// handleMetrics answers a sample for every sampleEvery of the requested range in which the sandbox
// ran; without a range the newest one.
func (f *Fake) handleMetrics(w http.ResponseWriter, r *http.Request) {
	b := f.findLiving(r.PathValue("id"))
	switch {
	case b == nil:
		refuseUnknown(w, r.PathValue("id"))
		return
	case f.o.NoMetrics:
		http.NotFound(w, r)
		return
	case f.o.NoSamples || b.paused:
		wiretest.JSON(w, http.StatusOK, []any{})
		return
	}
	at := f.o.Now()
	rows := []any{}
	if start, err := strconv.ParseInt(r.URL.Query().Get("start"), 10, 64); err == nil {
		from := time.Unix(start, 0)
		if b.started.After(from) {
			from = b.started
		}
		for past := from; past.Before(at); past = past.Add(sampleEvery) {
			rows = append(rows, f.metricsSample(b, past))
		}
	}
	wiretest.JSON(w, http.StatusOK, append(rows, f.metricsSample(b, at)))
}

// handleManyMetrics answers the newest sample of each sandbox; one without samples is missing.
func (f *Fake) handleManyMetrics(w http.ResponseWriter, r *http.Request) {
	ids := strings.Split(r.URL.Query().Get("sandbox_ids"), ",")
	switch {
	case f.o.NoMetrics:
		http.NotFound(w, r)
		return
	case len(ids) > 100 || ids[0] == "":
		refuseCall(w, http.StatusBadRequest, "validation error: sandbox_ids has 1 to 100 ids")
		return
	}
	found := map[string]any{}
	for _, id := range ids {
		if b := f.findLiving(id); b != nil && !b.paused && !f.o.NoSamples {
			found[id] = f.metricsSample(b, f.o.Now())
		}
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"sandboxes": found})
}

func (f *Fake) metricsSample(b *box, at time.Time) map[string]any {
	used, total := b.memoryAt(at), b.figures.MemoryTotalMiB
	if f.o.Legacy {
		return map[string]any{"timestamp": at, "cpuCount": 2, "cpuUsedPct": b.figures.CPUPercent, "memUsedMiB": used >> 20, "memTotalMiB": total}
	}
	return map[string]any{
		"timestamp": at, "timestampUnix": at.Unix(), "cpuCount": 2, "cpuUsedPct": b.figures.CPUPercent,
		"memUsed": used, "memTotal": total << 20, "memCache": int64(20 << 20), "diskUsed": int64(1 << 30), "diskTotal": int64(10 << 30),
	}
}

// lossyEdge is the edge in front of envd. It loses each n-th stream, in turn before the first byte,
// after the start event and after the first output. The process still runs; its client sees a broken
// connection.
type lossyEdge struct {
	mu      sync.Mutex
	streams int
}

func (f *Fake) loseStreams(serve func(http.ResponseWriter, *http.Request, *box)) func(http.ResponseWriter, *http.Request, *box) {
	return func(w http.ResponseWriter, r *http.Request, b *box) {
		f.edge.mu.Lock()
		f.edge.streams++
		n := f.edge.streams
		f.edge.mu.Unlock()
		f.mu.Lock()
		every := f.o.LosesEvery
		f.mu.Unlock()
		if every <= 0 || n%every != 0 {
			serve(w, r, b)
			return
		}
		ctx, cut := context.WithCancel(r.Context())
		defer cut()
		serve(&cutWriter{ResponseWriter: w, left: n / every % 3, cut: cut}, r.WithContext(ctx), b)
		panic(http.ErrAbortHandler)
	}
}

// cutWriter writes some frames and drops the following ones.
type cutWriter struct {
	http.ResponseWriter

	mu   sync.Mutex
	left int // frames to write
	cut  context.CancelFunc
}

// Write writes a frame, or ends the stream.
func (c *cutWriter) Write(frame []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		c.cut()
		return len(frame), nil
	}
	c.left--
	return c.ResponseWriter.Write(frame)
}

// Unwrap is called by http.ResponseController.
func (c *cutWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
