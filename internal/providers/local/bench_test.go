//go:build unix

package local_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

// BenchmarkCreate times one create: lock, record, supervisor, stub, limits,
// program running (budget: p50 25 ms).
func BenchmarkCreate(b *testing.B) {
	client := newBench(b)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		client.create(b, sandbox.Spec{Command: []string{"sleep", "600"}})
		took = append(took, time.Since(began))
	}
	median(b, took)
}

// BenchmarkKill times the end of a tree that ignores TERM and has forked away,
// from the request to the proof that it is empty (budget: p50 15 ms).
func BenchmarkKill(b *testing.B) {
	client := newBench(b)
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		s := client.create(b, sandbox.Spec{Command: []string{"sh", "-c", stubborn}})
		client.waitFor(b, s.ID, "up")
		b.StartTimer()
		began := time.Now()
		if err := client.Terminate(b.Context(), s.ID, providers.TerminateOptions{By: "benchmark"}); err != nil {
			b.Fatal(err)
		}
		if got, err := client.Get(b.Context(), s.ID); err != nil || !got.State.Ended() {
			b.Fatal(got.State, err)
		}
		took = append(took, time.Since(began))
	}
	median(b, took)
}

func median(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
}

// listed is how many sandboxes the listing benchmarks read.
const listed = 500

// BenchmarkList500 reads 500 running sandboxes as `ls` does: leftovers looked
// for, records decoded and viewed (budget: twice BenchmarkBareLoop500).
func BenchmarkList500(b *testing.B) {
	client := newBench(b)
	populate(b, client.store())
	for b.Loop() {
		if _, err := client.Sweep(b.Context()); err != nil {
			b.Fatal(err)
		}
		n := 0
		for _, err := range client.List(b.Context(), providers.Query{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != listed {
			b.Fatal(n)
		}
	}
}

// BenchmarkBareLoop500 is what the same files cost a plain Go loop that reads
// and decodes them.
func BenchmarkBareLoop500(b *testing.B) {
	client := newBench(b)
	populate(b, client.store())
	for b.Loop() {
		entries, err := os.ReadDir(client.store().Root)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range entries {
			raw, err := os.ReadFile(filepath.Join(client.store().Root, e.Name(), "record.json"))
			if err != nil {
				b.Fatal(err)
			}
			var r record.Record
			if err := json.Unmarshal(raw, &r); err != nil || r.ID != e.Name() {
				b.Fatal(err)
			}
		}
	}
}

// populate writes records of running sandboxes whose locks this process holds,
// so that they count as alive.
func populate(b *testing.B, s record.Store) {
	b.Helper()
	for i := range listed {
		id := fmt.Sprintf("bench%05d", i)
		lock, err := s.Prepare(id)
		require.NoError(b, err)
		b.Cleanup(func() { lock.Close() })
		now := time.Now().UTC()
		r := record.Record{
			Schema: record.Schema, Version: "bench", ID: id, Name: "worker", State: sandbox.StateRunning,
			Command: strings.Fields("claude --print --output-format stream-json work"), Workdir: s.Work(id),
			Labels: map[string]string{"team": "agents", "repo": "example"}, TaskID: "t-" + id, AgentType: "implementation",
			CreatedAt: now, StartedAt: now, ExpiresAt: now.Add(time.Hour),
			Limits: record.Limits{MemoryBytes: 512 << 20, CPU: 2, PIDs: 512, TTLSeconds: 600, Enforcement: sandbox.EnforcementHybrid, Isolation: "pid+mount namespaces"},
			Cgroup: json.RawMessage(`{"enforcement":"hybrid","id":"` + id + `","dirs":[]}`),
		}
		r.Note(now, "created", "")
		r.Note(now, "started", "limits by hybrid")
		require.NoError(b, errors.Join(s.Write(r), os.WriteFile(filepath.Join(s.Dir(id), "output.log"), []byte("x\n"), 0o600), s.SetDue(id, r.ExpiresAt)))
	}
	b.Cleanup(func() { _ = os.RemoveAll(s.Root) })
}
