package local_test

import (
	"testing"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// BenchmarkCreate times one create: lock, record, supervisor, stub, limits,
// program running.
func BenchmarkCreate(b *testing.B) {
	client := newBench(b)
	for b.Loop() {
		client.create(b, sandbox.Spec{Command: []string{"sleep", "600"}})
	}
}

// BenchmarkKill times the end of a tree that ignores TERM and has forked away,
// from the request to the proof that it is empty.
func BenchmarkKill(b *testing.B) {
	client := newBench(b)
	for b.Loop() {
		b.StopTimer()
		s := client.create(b, sandbox.Spec{Command: []string{"sh", "-c", `trap "" TERM; (setsid sh -c "sleep 600 & sleep 600" &); sleep 600`}})
		b.StartTimer()
		if err := client.Terminate(b.Context(), s.ID, providers.TerminateOptions{By: "benchmark"}); err != nil {
			b.Fatal(err)
		}
	}
}
