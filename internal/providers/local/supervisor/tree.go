//go:build unix

package supervisor

import (
	"slices"
	"syscall"

	"sbx/internal/providers/local/identity"
)

// inGroup are the PIDs of everything in the sandbox's cgroup; none without one.
func (s *supervisor) inGroup() []int {
	if s.group == nil {
		return nil
	}
	pids, _ := s.group.PIDs() // a group that is gone holds nobody
	return pids
}

// tree is a look at everything that runs below the stub or, where its namespace
// does not hold who forks away, below this process: as a subreaper it is an
// ancestor of all that its stub started. A look is no proof
// (identity.Proc.Offspring).
func (s *supervisor) tree() []identity.Stat {
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

// signalTree asks every process of the tree once, never one that took over a
// number in between.
func (s *supervisor) signalTree(sig syscall.Signal) {
	tree := s.tree()
	inGroup := s.inGroup() // after the tree: who is not in it stands outside for good
	if s.group != nil {
		_, _ = s.group.Signal(sig) // who cannot be asked is killed next
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
	_ = h.Signal(sig) // a process that is gone needs no signal; the kill that follows verifies
}

// anyoneTakesTerm says whether a process is left that does not ignore TERM.
func (s *supervisor) anyoneTakesTerm(tree []identity.Stat) bool {
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

// overLimit is the watchdog's look: resident memory of the whole tree against
// the limit.
func (s *supervisor) overLimit() bool {
	var resident int64
	for _, d := range s.tree() {
		resident += d.RSSBytes
	}
	s.last = lastSample{bytes: resident, at: s.now().UTC()}
	if resident <= s.rec.Limits.MemoryBytes {
		return false
	}
	s.watchHit = resident
	return true
}
