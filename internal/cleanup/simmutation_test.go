package cleanup_test

import (
	"sbx/internal/cleanup"
	"sbx/internal/journal"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
)

// mutation is one planted mistake; the zero mutation is none.
type mutation struct {
	swallowsListErrors bool // a listing that fails just ends
	readsStale         bool // the read just before gives what the listing had
	seesEndsAtOnce     bool // whatever was asked to end reads as gone
	asksTwice          bool
	hearsNothing       bool // output of what works reads as old
	trustsPartialLogs  bool // a log that does not hold output counts as one that does
	neverSyncs         bool
	keepsTornLines     bool
	lockAlwaysGrants   bool
	ignoresGuards      bool
	dryRunActs         bool
	alwaysSucceeds     bool
	resumesRefused     bool
	resumesAll         bool   // resume forgets what is done
	skips              string // this kind of entry is never written
	losesEvery         int    // every so-many-th outcome is lost

	oneLookProves bool // reconcile sees everything five times at once

	compare func(*reconcile.Rules)

	rule  func(*cleanup.Rule)
	world func(*cleanup.Environment)
}

func (m mutation) journal(w *journal.Writer) cleanup.Journal {
	if m.skips == "" {
		return w
	}
	return forgetful{w, m.skips}
}

// forgetful says of one kind of entry that it is written, and does not write it.
type forgetful struct {
	cleanup.Journal

	skips string
}

func (f forgetful) Append(kind string, data any) error {
	if kind == f.skips {
		return nil
	}
	return f.Journal.Append(kind, data)
}

func (m mutation) ending(e sandbox.Ending, n int) (sandbox.Ending, bool) {
	return e, m.losesEvery == 0 || n%m.losesEvery != m.losesEvery-1
}

func (m mutation) targets(targets []cleanup.Target) []cleanup.Target {
	if m.resumesAll {
		for i := range targets {
			targets[i].Settled = nil
		}
	}
	return targets
}
