package fleet

import (
	"context"

	"sbx/internal/sandbox"
)

// EndJournal keeps what one call of Terminate asked for and what became of it, so that
// an ending leaves a trace also where its process is killed. Its methods may be called
// from several goroutines. It has no veto: a disk that is full keeps no sandbox alive.
type EndJournal interface {
	// Intent is called right before the request is sent.
	Intent(s sandbox.Sandbox, del bool)
	// Answer is called when the request was answered or given up.
	Answer(ref sandbox.Ref, r sandbox.EndRequest)
	// Result is called once for each target.
	Result(e sandbox.Ending)
	// Close is called after the last result.
	Close(ctx context.Context)
}

// EndOrigin says on whose behalf sandboxes end, for the journal.
type EndOrigin struct {
	RunID  string // "" = a new one
	Verb   string // "terminate", "task", "drill"
	Reason string // why these end: "asked for by name", "task t-..."
	// Journaled says that the caller writes a journal of its own.
	Journaled bool
}

// noJournal is the journal where nothing is kept.
type noJournal struct{}

func (noJournal) Intent(sandbox.Sandbox, bool)           {}
func (noJournal) Answer(sandbox.Ref, sandbox.EndRequest) {}
func (noJournal) Result(sandbox.Ending)                  {}
func (noJournal) Close(context.Context)                  {}

// journalOf opens the journal of one call of Terminate.
func (f *Fleet) journalOf(ctx context.Context, targets []sandbox.Sandbox, o EndOptions) EndJournal { //nolint:ireturn // kept or not
	if len(targets) == 0 || f.o.Journal == nil || o.Origin.Journaled || o.VerifyOnly {
		return noJournal{}
	}
	if j := f.o.Journal(ctx, targets, o); j != nil {
		return j
	}
	return noJournal{}
}
