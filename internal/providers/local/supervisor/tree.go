//go:build unix

package supervisor

import (
	"slices"
	"syscall"
	"time"

	"sbx/internal/poll"
	"sbx/internal/providers/local/identity"
)

// inGroup lists the PIDs in the sandbox's cgroup; none without one.
func (s *supervisor) inGroup() []int {
	if s.group == nil {
		return nil
	}
	pids, _ := s.group.PIDs() // a removed group has no processes
	return pids
}

// listTree lists everything that runs below the stub or, where processes can leave its tree,
// below this process: as a subreaper it is an ancestor of all that the stub started. The list
// is no proof (identity.Proc.Offspring).
func (s *supervisor) listTree() []identity.Stat {
	root := s.self.PID
	if s.stub != nil && s.stub.isolated {
		root = s.stub.process.Pid
	}
	all, err := identity.Host().Offspring(root)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(d identity.Stat) bool {
		return (s.stub != nil && d.PID == s.stub.process.Pid) || d.Dead()
	})
}

// signalTree signals every process of the tree once, never one that has reused a PID.
func (s *supervisor) signalTree(sig syscall.Signal) {
	tree := s.listTree()
	inGroup := s.inGroup() // after the tree: a process that is not in it is outside permanently
	if s.group != nil {
		_, _ = s.group.Signal(sig) // a process that cannot be signalled is killed next
	}
	for _, d := range tree {
		if !slices.Contains(inGroup, d.PID) {
			signalOne(d, sig)
		}
	}
}

func signalOne(d identity.Stat, sig syscall.Signal) {
	h, err := identity.Host().Open(d)
	if err != nil {
		return
	}
	defer h.Close()
	_ = h.Signal(sig) // it may have ended; the kill that follows verifies
}

// anyHandlesTerm reports whether a process is left that does not ignore TERM.
func (s *supervisor) anyHandlesTerm(tree []identity.Stat) bool {
	pids := s.inGroup()
	for _, d := range tree {
		if !slices.Contains(pids, d.PID) {
			pids = append(pids, d.PID)
		}
	}
	return slices.ContainsFunc(pids, func(pid int) bool {
		ignores, err := identity.Host().IgnoresTerm(pid)
		return err == nil && !ignores
	})
}

// overLimit is the watchdog's check: resident memory of the whole tree against the limit.
func (s *supervisor) overLimit() bool {
	var resident int64
	for _, d := range s.listTree() {
		resident += d.RSSBytes
	}
	s.last = lastSample{bytes: resident, at: s.now().UTC()}
	if resident <= s.rec.Limits.MemoryBytes {
		return false
	}
	s.watchHit = resident
	return true
}

// stillness is how long a tree may show no reaction to TERM before it is killed: no process
// started or ended, none used the processor, and none was ready to.
const stillness = 250 * time.Millisecond

// terminateTree sends TERM to the whole tree and waits for it to end: for the grace at most,
// and unless patient only while the tree reacts. A program that ignores TERM, or handles it
// without effect, gets no further time. With patient, which the operator requests, the whole
// grace is granted while a process is left, since one that ignores TERM may be about to
// finish.
func (s *supervisor) terminateTree(grace time.Duration, fullGrace bool) {
	if grace <= 0 {
		return
	}
	s.signalTree(syscall.SIGTERM)
	over := time.NewTimer(grace)
	defer over.Stop()
	w := termWait{reaction: newReaction(s.now()), fullGrace: fullGrace}
	for pauses := poll.NewBackoff(time.Millisecond, 50*time.Millisecond); ; {
		if s.waitedEnough(&w) {
			return
		}
		if w.ignoring > 0 && !fullGrace {
			pauses.Reset() // the decision follows within ignoringLooks
		}
		select {
		case report, open := <-s.stub.reports:
			s.noteExit(report.Exited)
			if !open || report.Exited != nil {
				return
			}
		case <-over.C:
			return
		case <-pauses.After():
		}
	}
}

// termWait is the state of the wait for the effect of TERM.
type termWait struct {
	reaction  *reaction
	fullGrace bool
	ignoring  int // consecutive looks that found only processes that ignore TERM
}

// waitedEnough looks at the tree once more; true when waiting longer is pointless.
func (s *supervisor) waitedEnough(w *termWait) bool {
	tree := s.listTree()
	still := w.reaction.isStill(tree, s.now())
	if len(tree) == 0 && !s.rec.ProgramEnded() { // the stub has not reported the end yet
		w.ignoring = 0
		return s.now().Sub(w.reaction.since) >= s.timeScale.Limit(drainLimit)
	}
	if w.ignoring++; s.anyHandlesTerm(tree) {
		w.ignoring = 0
	}
	if w.fullGrace {
		return w.ignoring >= ignoringLooks && len(tree) == 0
	}
	return w.ignoring >= ignoringLooks || still
}

// reaction detects any effect of TERM on a tree.
type reaction struct {
	since time.Time // of the last sign
	pids  []int
	ticks uint64
}

func newReaction(now time.Time) *reaction { return &reaction{since: now} }

// isStill reports whether the tree has shown no reaction for stillness.
func (r *reaction) isStill(tree []identity.Stat, now time.Time) bool {
	var pids []int
	var ticks uint64
	moving := false
	for _, p := range tree {
		pids = append(pids, p.PID)
		ticks += p.UTimeSTimeTicks
		moving = moving || p.State == 'R' || p.State == 'D' // waits for a processor or a disk
	}
	slices.Sort(pids)
	if moving || !slices.Equal(pids, r.pids) || ticks != r.ticks {
		r.since, r.pids, r.ticks = now, pids, ticks
	}
	return now.Sub(r.since) >= stillness
}
