//go:build unix

package supervisor

import (
	"slices"
	"syscall"
	"time"

	"sbx/internal/providers/local/identity"
)

// stillness is how long a tree may show no reaction to TERM before it counts as
// one that will not end by itself: no process came or went, none used the
// processor, and none was about to.
const stillness = 250 * time.Millisecond

// persuade sends TERM to the whole tree and waits for it to end: for the grace
// at most, and unless patient no longer than it reacts. A program that ignores TERM, or
// takes note of it and goes on as before, buys no time with that. Patient is what an
// operator has said: then the whole grace is granted while a process is left, since one
// that ignores TERM may be about to finish all the same.
func (s *supervisor) persuade(grace time.Duration, patient bool) {
	if grace <= 0 {
		return
	}
	s.signalTree(syscall.SIGTERM)
	over := time.NewTimer(grace)
	defer over.Stop()
	w := termWait{reaction: newReaction(s.now()), patient: patient}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if s.waitedEnough(&w) {
			return
		}
		if w.ignoring > 0 && !patient {
			pause = time.Millisecond // it is over soon, one way or the other
		}
		again := time.NewTimer(pause)
		select {
		case report, open := <-s.stub.reports:
			again.Stop()
			s.note(report.Exited)
			if !open || report.Exited != nil {
				return
			}
		case <-over.C:
			again.Stop()
			return
		case <-again.C:
		}
	}
}

// termWait is what the wait for the effect of TERM has seen so far.
type termWait struct {
	reaction *reaction
	patient  bool
	ignoring int // looks in a row that found only processes that ignore TERM
}

// waitedEnough looks once more at the tree; true when a longer wait promises nothing.
func (s *supervisor) waitedEnough(w *termWait) bool {
	tree := s.tree()
	still := w.reaction.none(tree, s.now())
	if len(tree) == 0 && !s.rec.ProgramEnded() { // its stub has yet to report the end
		w.ignoring = 0
		return s.now().Sub(w.reaction.since) >= drainLimit
	}
	if w.ignoring++; s.anyoneTakesTerm(tree) {
		w.ignoring = 0
	}
	if w.patient {
		return w.ignoring >= ignoringLooks && len(tree) == 0
	}
	return w.ignoring >= ignoringLooks || still
}

// reaction watches a tree for any sign that TERM has an effect.
type reaction struct {
	since time.Time // of the last sign
	pids  []int
	ticks uint64
}

func newReaction(now time.Time) *reaction { return &reaction{since: now} }

// none says that the tree has been still for too long.
func (r *reaction) none(tree []identity.Stat, now time.Time) bool {
	var pids []int
	var ticks uint64
	moving := false
	for _, p := range tree {
		pids = append(pids, p.PID)
		ticks += p.UTimeSTimeTicks
		moving = moving || p.State == 'R' || p.State == 'D' // it waits for a processor or a disk
	}
	slices.Sort(pids)
	if moving || !slices.Equal(pids, r.pids) || ticks != r.ticks {
		r.since, r.pids, r.ticks = now, pids, ticks
	}
	return now.Sub(r.since) >= stillness
}
