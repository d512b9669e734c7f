package local

import (
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// readAhead is how many sandboxes are read before the first of them is handed
// on: enough to keep every processor busy, few enough for a reader who stops.
const readAhead = 64

// together reads all sandboxes on every processor and hands the results on in
// order. Nothing of it runs while the consumer does.
func together[T any](ids []string, read func(id string) T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for some := range slices.Chunk(ids, readAhead) {
			for i, result := range readAll(some, read) {
				if !yield(some[i], result) {
					return
				}
			}
		}
	}
}

func readAll[T any](ids []string, read func(id string) T) []T {
	results := make([]T, len(ids))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(ids)); i = next.Add(1) - 1 {
			results[i] = read(ids[i])
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(ids)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return results
}
