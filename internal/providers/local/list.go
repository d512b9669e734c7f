package local

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

// hiddenAfter is how long an ended sandbox stays in a listing without `--all`.
const hiddenAfter = time.Hour

// List reads every record. A sandbox with an unreadable record is listed in an unknown state
// and does not affect the others.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		ids, err := c.store.IDs()
		if err != nil {
			yield(sandbox.Sandbox{}, c.classifyError("list", err))
			return
		}
		for _, r := range readInOrder(ids, c.readListItem) {
			switch {
			case ctx.Err() != nil:
				yield(sandbox.Sandbox{}, c.classifyError("list", ctx.Err()))
				return
			case r.err != nil:
				if !yield(sandbox.Sandbox{}, c.classifyError("list", r.err)) {
					return
				}
			case r.found && c.matchesQuery(r.sandbox, q) && !yield(r.sandbox, nil):
				return
			}
		}
	}
}

// listReading is the result of reading one sandbox.
type listReading struct {
	sandbox sandbox.Sandbox
	found   bool
	err     error
}

func (c *Client) readListItem(id string) listReading {
	s, found, err := c.readSandbox(id)
	if errors.Is(err, record.ErrGarbage) {
		return listReading{sandbox: c.unreadableSandbox(id, err), found: true}
	}
	return listReading{s, found, err}
}

// unreadableSandbox is what is known of a sandbox with an unreadable record.
func (c *Client) unreadableSandbox(id string, err error) sandbox.Sandbox {
	return sandbox.Sandbox{
		Provider: c.name, ProviderType: TypeName, ID: id, Activity: sandbox.Unknown,
		State: sandbox.StateUnknown, RawState: "unreadable record: " + err.Error(),
	}
}

func (c *Client) matchesQuery(s sandbox.Sandbox, q providers.Query) bool {
	// A sandbox without a recorded end time, as on a full disk, is always listed.
	if !q.All && s.State.Ended() && !s.EndedAt.IsZero() && c.now().Sub(s.EndedAt) > hiddenAfter {
		return false
	}
	if len(q.States) > 0 && !slices.Contains(q.States, s.State) {
		return false
	}
	for key, value := range q.Labels {
		if got, ok := s.Labels[key]; !ok || (value != "" && got != value) {
			return false
		}
	}
	return true
}

// readSandbox reads one sandbox; false when it does not exist, has no record yet, or is a
// foreign file among the folders.
func (c *Client) readSandbox(id string) (sandbox.Sandbox, bool, error) {
	r, err := c.store.Read(id)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return sandbox.Sandbox{}, false, nil
	}
	if err != nil {
		return sandbox.Sandbox{}, false, err
	}
	alive, err := c.supervisorAlive(r)
	if err != nil {
		return sandbox.Sandbox{}, false, err
	}
	if !alive && !r.State.Ended() {
		// It may have ended since the record was read: the supervisor releases the lock
		// after it has written the last record.
		if again, err := c.store.Read(id); err == nil {
			r = again
		}
	}
	return c.toSandbox(r, alive), true, nil
}

// supervisorAlive reports whether a sandbox's supervisor is alive. A lock that was removed
// or replaced is no evidence; then the supervisor's process is checked: a running sandbox
// that counts as dead would never be ended.
//
// A record that says ended is checked too: it may be wrong, the lock cannot.
func (c *Client) supervisorAlive(r record.Record) (bool, error) {
	held, err := c.store.Held(r.ID)
	switch {
	case held:
		return true, nil
	case r.State.Ended() && err == nil: // the lock is released after the last record
		return false, nil
	case errors.Is(err, record.ErrGarbage), err == nil && !c.store.Unfinished(r.ID):
		alive, err := r.Supervisor.Alive()
		return r.Supervisor.PID > 0 && (alive || err != nil), nil // alive also where it is unknown
	}
	return false, err
}

// Get reads one sandbox by its exact id.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.Sandbox{}, c.classifyError("get "+id, err)
	}
	if err := c.checkExists("get", id); err != nil {
		return sandbox.Sandbox{}, err
	}
	s, found, err := c.readSandbox(id)
	if err != nil {
		return s, c.classifyError("get "+id, err)
	}
	if !found {
		return s, c.notFound(id)
	}
	if s.Exit != nil {
		if r, err := c.store.Read(id); err == nil && r.ProgramEnded() {
			s.Exit = c.exitWithLogs(ctx, r)
		}
	}
	return s, nil
}

// readAhead is how many sandboxes are read before the first one is yielded: enough to use
// every processor, few enough for a consumer that stops early.
const readAhead = 64

// readInOrder reads all sandboxes on every processor and yields the results in order. No
// read runs while the consumer does.
func readInOrder[T any](ids []string, read func(id string) T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for some := range slices.Chunk(ids, readAhead) {
			for i, result := range readInParallel(some, read) {
				if !yield(some[i], result) {
					return
				}
			}
		}
	}
}

func readInParallel[T any](ids []string, read func(id string) T) []T {
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
