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
	ignoring, reaction := 0, newReaction(s.now())
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		tree := s.tree()
		if ignoring++; s.anyoneTakesTerm(tree) {
			ignoring = 0
		}
		if ignoring >= ignoringLooks && (!patient || len(tree) == 0) || (!patient && reaction.none(tree, s.now())) {
			return
		}
		if ignoring > 0 && !patient {
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
