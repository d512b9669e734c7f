package fleet

import (
	"context"
	"slices"
	"time"

	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// secondListing is a listing after reads that found no sandbox. It distinguishes a record without a
// sandbox, which is still listed as running, from a sandbox that has ended since the first listing.
// Observations that need one at the same time share it.
type secondListing struct {
	turn  chan struct{} // holds one element while a listing is read
	began time.Time
	rows  map[string]sandbox.Sandbox // by id
	err   error
}

func newSecondListing() *secondListing { return &secondListing{turn: make(chan struct{}, 1)} }

// readsFindNone says that the provider answered a read of a running sandbox that there is none.
// That is no proof: usage and output are optional abilities, and a server without their routes
// answers 404 too.
func (o Observation) readsFindNone() bool {
	return o.Sandbox.State == sandbox.StateRunning && (showsAbsence(o.Usage.Err) || showsAbsence(o.Logs.Err) || showsAbsence(o.Processes.Err))
}

// foundNoneBeside says that a read of a sandbox was answered that there is none by another route than its record.
func (o Observation) foundNoneBeside(record error) bool {
	return slices.ContainsFunc([]error{o.Usage.Err, o.Logs.Err, o.Processes.Err}, func(err error) bool {
		return showsAbsence(err) && !providers.SameRoute(err, record)
	})
}

// missingPause is how long after its reads the second listing begins: a list may show a sandbox for a
// moment after its end.
const missingPause = 2 * time.Second

// IsGhost says that the provider lists a sandbox as running and does not have it.
func (o Observation) IsGhost() bool { return o.missing }

// settleMissing finds out what a sandbox is of which nothing can be read. Only where the provider
// does not know its id either can it be a mere record (R94), which is listed as running again, or
// have ended, and then it is listed no more. Any other answer proves nothing, nor does that of the record alone: where
// every read begins with it, the list contradicts one source.
func (f *Fleet) settleMissing(ctx context.Context, o *Observation) {
	if !o.readsFindNone() {
		return
	}
	m, err := f.findMember(o.Sandbox.Provider)
	if err != nil {
		return
	}
	_, record := m.getSandbox(ctx, o.Sandbox.ID)
	if !showsAbsence(record) || poll.Sleep(ctx, missingPause) != nil {
		return
	}
	switch row, listed, err := m.listedRow(ctx, o.Sandbox.ID); {
	case err != nil:
	case !listed:
		o.Sandbox.State = sandbox.StateTerminated
	case row.State == sandbox.StateRunning:
		o.missing = o.foundNoneBeside(record)
	default:
		o.Sandbox.State = row.State
	}
}

// listedRow is a sandbox in a listing that began after the call; false = it is not listed.
func (m *member) listedRow(ctx context.Context, id string) (sandbox.Sandbox, bool, error) {
	called, l := time.Now(), m.second
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return sandbox.Sandbox{}, false, context.Cause(ctx)
	}
	if l.began.Before(called) {
		l.began, l.rows, l.err = time.Now(), map[string]sandbox.Sandbox{}, nil
		for s, err := range m.streamRows(ctx, "list again", providers.Query{}) {
			if err != nil {
				l.err = err
				break
			}
			l.rows[s.ID] = s
		}
	}
	for spelled, row := range l.rows {
		if m.sameID(id, spelled) {
			row.ID = id
			return row, true, l.err
		}
	}
	return sandbox.Sandbox{}, false, l.err
}
