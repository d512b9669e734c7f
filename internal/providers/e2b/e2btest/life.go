package e2btest

import (
	"net/http"
	"strconv"
	"time"

	"sbx/internal/providers/wiretest"
)

// Run has a program run in a sandbox since its start, as another client started it
// over envd: its output
// reaches that client alone, and neither the API's log nor a file keeps it.
func (f *Fake) Run(id string, args ...string) {
	f.mu.Lock()
	b := f.known(id)
	f.mu.Unlock()
	if b == nil {
		f.t.Errorf("e2b fake: there is no sandbox %s to run a program in", id)
		return
	}
	var req startRequest
	req.Process.Cmd, req.Process.Args = args[0], args[1:]
	if _, _, err := f.spawn(b, req, &frames{over: true}); err != nil {
		f.t.Errorf("e2b fake: %v", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	b.logs[len(b.logs)-1].at = b.started.Add(time.Second)
}

// Use sets the processor's figure of a sandbox, in percent of its whole machine.
func (f *Fake) Use(id string, cpuPercent float64) {
	f.Show(id, Figures{CPUPercent: cpuPercent, MemoryMiB: 200})
}

// Show sets what the metrics of a sandbox show from now on, and what they have shown.
func (f *Fake) Show(id string, figures Figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.known(id)
	if b == nil {
		f.t.Errorf("e2b fake: there is no sandbox %s with figures", id)
		return
	}
	if figures.MemoryTotalMiB == 0 {
		figures.MemoryTotalMiB = 512
	}
	b.figures, b.since = figures, f.o.Now()
}

// processes is envd's process.Process/List: the programs that envd started and that
// run. What those started is not in it.
func (f *Fake) processes(w http.ResponseWriter, _ *http.Request, b *box) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rows := []any{}
	for pid, p := range b.procs {
		select {
		case <-p.run.Done():
		default:
			row := map[string]any{"pid": pid, "config": map[string]any{"cmd": p.args[0], "args": p.args[1:]}}
			if p.tag != "" {
				row["tag"] = p.tag
			}
			rows = append(rows, row)
		}
	}
	answer := map[string]any{}
	if len(rows) > 0 { // a list without members is left out, as protobuf's JSON does
		answer["processes"] = rows
	}
	wiretest.JSON(w, http.StatusOK, answer)
}

// sampleEvery is the grid of the metrics API.
const sampleEvery = 5 * time.Second

// metrics gives a sample every sampleEvery between start and end, as far as the
// sandbox has run by then; without a range the newest.
func (f *Fake) metrics(w http.ResponseWriter, r *http.Request) {
	b := f.find(r.PathValue("id"))
	switch {
	case b == nil:
		missing(w, r.PathValue("id"))
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
			rows = append(rows, f.sample(b, past))
		}
	}
	wiretest.JSON(w, http.StatusOK, append(rows, f.sample(b, at)))
}

func (f *Fake) sample(b *box, at time.Time) map[string]any {
	used, total := b.memoryAt(at), b.figures.MemoryTotalMiB
	if f.o.Legacy {
		return map[string]any{"timestamp": at, "cpuCount": 2, "cpuUsedPct": b.figures.CPUPercent, "memUsedMiB": used >> 20, "memTotalMiB": total}
	}
	return map[string]any{
		"timestamp": at, "timestampUnix": at.Unix(), "cpuCount": 2, "cpuUsedPct": b.figures.CPUPercent,
		"memUsed": used, "memTotal": total << 20, "memCache": int64(20 << 20), "diskUsed": int64(1 << 30), "diskTotal": int64(10 << 30),
	}
}
