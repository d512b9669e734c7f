package identity

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// ErrTooWide says that a search for processes to end returned init or an ancestor of the
// caller, so that no process of that search was signalled.
var ErrTooWide = errors.New("the search names init or an ancestor of the caller: nobody is signalled")

// End kills all processes that find returns, until it returns no living one, and returns how
// many it killed. It is for trees without a cgroup; find is called again after each step and
// may search by Descendants, by Marked or by both. New processes are stopped before the first
// kill, so that a fork bomb cannot outrun the search. The caller itself is left out. When ctx
// ends, the processes found so far are killed, and the context's error is returned.
//
// Errors: ErrTooWide, before any process of that search is signalled; fs.ErrPermission when
// one may not be signalled, after the others are killed; errors of find.
func (p Proc) End(ctx context.Context, find func() ([]Stat, error)) (int, error) {
	met := map[Stat]bool{}
	for {
		living, err := p.livingOthers(find)
		if err != nil || len(living) == 0 {
			return len(met), err
		}
		if p.stopNew(living, met) && ctx.Err() == nil {
			continue // search again: stopped processes fork no more
		}
		held, err := p.withHandles(living, func(h *Handle) error { return h.Signal(syscall.SIGKILL) })
		if err != nil || held == 0 { // 0: all of them have ended
			return len(met), err
		}
		if _, err := p.withHandles(living, func(h *Handle) error { return h.Wait(ctx) }); err != nil {
			return len(met), err
		}
	}
}

// livingOthers leaves out dead processes and the caller. It refuses the whole search when it
// returned init or an ancestor of the caller: no sandbox contains those, so the search is
// wrong, and its other results are not trusted either.
func (p Proc) livingOthers(find func() ([]Stat, error)) ([]Stat, error) {
	all, err := find()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	above, err := p.ancestorSet(os.Getpid())
	if err != nil {
		return nil, err
	}
	living := make([]Stat, 0, len(all))
	for _, s := range all {
		switch {
		case s.PID == os.Getpid() || s.Dead():
		case above[s.PID]:
			return nil, ErrTooWide
		default:
			living = append(living, s)
		}
	}
	return living, nil
}

// ancestorSet is the set of the ancestors of pid, and init in any case.
func (p Proc) ancestorSet(pid int) (map[int]bool, error) {
	above := map[int]bool{1: true}
	for s, err := p.Stat(pid); ; s, err = p.Stat(s.PPID) {
		switch {
		case errors.Is(err, ErrDead): // it ended meanwhile, or /proc hides it
			return above, nil
		case err != nil:
			return nil, err
		case s.PPID <= 1 || above[s.PPID]:
			return above, nil
		}
		above[s.PPID] = true
	}
}

// stopNew stops the processes that were not met before and reports whether there was one. A
// process that cannot be stopped is left to the kill, which reports it.
func (p Proc) stopNew(living []Stat, met map[Stat]bool) bool {
	fresh := false
	for _, s := range living {
		who := Stat{PID: s.PID, StartTicks: s.StartTicks}
		if met[who] {
			continue
		}
		met[who], fresh = true, true
		_, _ = p.withHandles([]Stat{s}, func(h *Handle) error { return h.Signal(sigstop) })
	}
	return fresh
}

// withHandles opens every process in turn and returns how many it could open; processes that
// have ended meanwhile are skipped.
func (p Proc) withHandles(list []Stat, do func(*Handle) error) (held int, failed error) {
	for _, s := range list {
		h, err := p.Open(s)
		if err == nil {
			held++
			err = errors.Join(do(h), h.Close())
		}
		if !errors.Is(err, ErrDead) && !errors.Is(err, ErrForeign) {
			failed = errors.Join(failed, err)
		}
	}
	return held, failed
}
