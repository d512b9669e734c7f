package cleanup_test

import (
	"sbx/internal/cleanup"
	"sbx/internal/journal"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// mutation is one planted mistake; the zero mutation is none.
type mutation struct {
	swallowsListErrors bool // a failed listing just ends
	readsStale         bool // the read just before the end returns the listing's state
	seesEndsAtOnce     bool // every sandbox whose end was requested reads as gone
	asksTwice          bool
	hearsNothing       bool // output of active sandboxes reads as old
	trustsPartialLogs  bool // a log without output counts as one with output
	neverSyncs         bool
	keepsTornLines     bool
	lockAlwaysGrants   bool
	ignoresGuards      bool
	dryRunActs         bool
	alwaysSucceeds     bool
	resumesRefused     bool
	resumesAll         bool   // a resume ignores what is done
	skips              string // this kind of entry is not written
	losesEvery         int    // every n-th outcome is lost

	oneLookProves bool // reconcile counts every observation five times

	compare func(*reconcile.Rules)

	rule  func(*cleanup.Rule)
	world func(*cleanup.Environment)
}

func (m mutation) journal(w *journal.Writer) runs.Journal {
	if m.skips == "" {
		return w
	}
	return forgetful{w, m.skips}
}

// forgetful reports one kind of entry as written, and does not write it.
type forgetful struct {
	runs.Journal

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
