package local

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"syscall"
	"time"

	"sbx/internal/providers"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

// hiddenAfter is how long an ended sandbox stays in a plain listing (CLI.md:
// `--all` shows ended local ones older than 1 h).
const hiddenAfter = time.Hour

// List reads every record. A sandbox whose record cannot be read is there all the
// same: it is listed in an unknown state, and hides none of the others.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		ids, err := c.store.IDs()
		if err != nil {
			yield(sandbox.Sandbox{}, c.trouble("list", err))
			return
		}
		for _, r := range together(ids, c.readOne) {
			switch {
			case ctx.Err() != nil:
				yield(sandbox.Sandbox{}, c.trouble("list", ctx.Err()))
				return
			case r.err != nil:
				if !yield(sandbox.Sandbox{}, c.trouble("list", r.err)) {
					return
				}
			case r.found && c.wanted(r.sandbox, q) && !yield(r.sandbox, nil):
				return
			}
		}
	}
}

// reading is what came of reading one sandbox.
type reading struct {
	sandbox sandbox.Sandbox
	found   bool
	err     error
}

func (c *Client) readOne(id string) reading {
	s, found, err := c.read(id)
	if errors.Is(err, record.ErrGarbage) {
		return reading{sandbox: c.unreadable(id, err), found: true}
	}
	return reading{s, found, err}
}

// unreadable is all that is known of a sandbox whose record cannot be read.
func (c *Client) unreadable(id string, err error) sandbox.Sandbox {
	return sandbox.Sandbox{
		Provider: c.name, ProviderType: TypeName, ID: id, Activity: sandbox.Unknown,
		State: sandbox.StateUnknown, RawState: "unreadable record: " + err.Error(),
	}
}

func (c *Client) wanted(s sandbox.Sandbox, q providers.Query) bool {
	// Whose end nobody could record yet, as on a full disk, is never old news.
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

// read reads one sandbox; false when it is not there, not yet, or a file that
// somebody left among the folders.
func (c *Client) read(id string) (sandbox.Sandbox, bool, error) {
	r, err := c.store.Read(id)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return sandbox.Sandbox{}, false, nil
	}
	if err != nil {
		return sandbox.Sandbox{}, false, err
	}
	alive, err := c.alive(r)
	if err != nil {
		return sandbox.Sandbox{}, false, err
	}
	if !alive && !r.State.Ended() {
		// It may have ended between the two looks: the lock is let go after
		// the last record is written.
		if again, err := c.store.Read(id); err == nil {
			r = again
		}
	}
	return c.view(r, alive), true, nil
}

// alive says whether a sandbox's supervisor lives. A lock that was removed or
// replaced says nothing, and its holder is asked for by its identity: a sandbox
// that is called dead while it runs would be one that nobody ends.
//
// A record that says ended is asked no less: it may lie, and its lock cannot.
func (c *Client) alive(r record.Record) (bool, error) {
	held, err := c.store.Held(r.ID)
	switch {
	case held:
		return true, nil
	case r.State.Ended() && err == nil: // the lock goes with the last record
		return false, nil
	case errors.Is(err, record.ErrGarbage), err == nil && !c.store.Unfinished(r.ID):
		return r.Supervisor.PID > 0 && stillRuns(r.Supervisor), nil
	}
	return false, err
}

// stillRuns counts what cannot be known as running.
func stillRuns(p identity.Process) bool {
	alive, err := p.Alive()
	return alive || err != nil
}

// Get reads one sandbox by its exact id.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.Sandbox{}, c.trouble("get "+id, err)
	}
	if err := c.present("get", id); err != nil {
		return sandbox.Sandbox{}, err
	}
	s, found, err := c.read(id)
	if err != nil {
		return s, c.trouble("get "+id, err)
	}
	if !found {
		return s, c.notFound(id)
	}
	if s.Exit != nil {
		if r, err := c.store.Read(id); err == nil && r.ProgramEnded() {
			s.Exit = c.explain(ctx, r)
		}
	}
	return s, nil
}
