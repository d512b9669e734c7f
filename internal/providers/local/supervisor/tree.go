//go:build unix

package supervisor

import (
	"slices"
	"syscall"

	"sbx/internal/providers/local/identity"
)

// members are the PIDs of everything that runs in the sandbox, the stub apart.
func (s *supervisor) members() []int {
	var pids []int
	if s.group != nil {
		if in, err := s.group.PIDs(); err == nil {
			pids = in
		}
	}
	for _, d := range s.descendants() {
		if !slices.Contains(pids, d.PID) {
			pids = append(pids, d.PID)
		}
	}
	return pids
}

// descendants are found by parentage: as a subreaper the supervisor is an
// ancestor of all that its stub started, however often it forked away.
func (s *supervisor) descendants() []identity.Stat {
	all, err := identity.Host().Descendants(s.self.PID)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(d identity.Stat) bool {
		return (s.stub != nil && d.PID == s.stub.process.Pid) || d.Dead()
	})
}

// signalTree asks every process of the tree, never one that took over a number
// in between.
func (s *supervisor) signalTree(sig syscall.Signal) {
	if s.group != nil {
		_, _ = s.group.Signal(sig) // who cannot be asked is killed next
	}
	for _, d := range s.descendants() {
		signalOne(d, sig)
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

// anyoneHears says whether a process is left that does not ignore TERM.
func (s *supervisor) anyoneHears() bool {
	return slices.ContainsFunc(s.members(), func(pid int) bool {
		deaf, err := identity.Host().IgnoresTerm(pid)
		return err == nil && !deaf
	})
}

// overLimit is the watchdog's look: resident memory of the whole tree against
// the limit.
func (s *supervisor) overLimit() bool {
	var resident int64
	for _, d := range s.descendants() {
		resident += d.RSSBytes
	}
	s.last = lastSample{bytes: resident, at: s.now().UTC()}
	if resident <= s.rec.Limits.MemoryBytes {
		return false
	}
	s.watchHit = resident
	return true
}
