package identity

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// ErrTooWide says that a search for processes to end named init or an ancestor
// of the caller, so that nothing it named is touched.
var ErrTooWide = errors.New("the search names init or an ancestor of the caller: nobody is signalled")

// End kills everybody that find names, until it names nobody who lives, and says
// how many it met. It is for where no cgroup holds a tree together; find is
// asked again after each step, so it may search by Descendants, by Marked or by
// both. Who is found is stopped before the first kill, so that a program that
// forks cannot outrun the search. The caller itself is left out. When ctx ends,
// what was found is killed all the same, and the context's error returned.
//
// Errors: ErrTooWide, before anybody of that search is touched; fs.ErrPermission
// when one may not be signalled, after the others are killed; what find returns.
func (p Proc) End(ctx context.Context, find func() ([]Stat, error)) (int, error) {
	met := map[Stat]bool{}
	for {
		living, err := p.others(find)
		if err != nil || len(living) == 0 {
			return len(met), err
		}
		if p.halt(living, met) && ctx.Err() == nil {
			continue // look again: who is stopped forks no more
		}
		held, err := p.each(living, func(h *Handle) error { return h.Signal(syscall.SIGKILL) })
		if err != nil || held == 0 { // none: the search names who is gone
			return len(met), err
		}
		if _, err := p.each(living, func(h *Handle) error { return h.Wait(ctx) }); err != nil {
			return len(met), err
		}
	}
}

// others leaves out the dead and the caller, and refuses the whole search when
// it names init or an ancestor of the caller: no sandbox holds those, so the
// search is wrong, and whoever else it names is not meant either.
func (p Proc) others(find func() ([]Stat, error)) ([]Stat, error) {
	all, err := find()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	above, err := p.ancestors(os.Getpid())
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

// ancestors is the set of those whom pid descends from, and init in any case.
func (p Proc) ancestors(pid int) (map[int]bool, error) {
	above := map[int]bool{1: true}
	for s, err := p.stat(pid); ; s, err = p.stat(s.PPID) {
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

// halt stops whoever was not met before and says whether there was one. What
// cannot be stopped is left to the kill, which reports it.
func (p Proc) halt(living []Stat, met map[Stat]bool) bool {
	fresh := false
	for _, s := range living {
		who := Stat{PID: s.PID, StartTicks: s.StartTicks}
		if met[who] {
			continue
		}
		met[who], fresh = true, true
		_, _ = p.each([]Stat{s}, func(h *Handle) error { return h.Signal(sigstop) })
	}
	return fresh
}

// each takes hold of every process in turn and says of how many it could; who
// has ended meanwhile is passed over.
func (p Proc) each(list []Stat, do func(*Handle) error) (held int, failed error) {
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
