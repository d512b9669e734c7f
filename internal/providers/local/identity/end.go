package identity

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// End kills everybody that find names, until it names nobody who lives, and says
// how many it met. It is for where no cgroup holds a tree together; find is
// asked again after each step, so it may search by Descendants, by Marked or by
// both. Who is found is stopped before the first kill, so that a program that
// forks cannot outrun the search. The caller itself is left out. When ctx ends,
// what was found is killed all the same, and the context's error returned. A
// process that may not be signalled is an error (fs.ErrPermission) after the
// others are killed.
func (p Proc) End(ctx context.Context, find func() ([]Stat, error)) (int, error) {
	met := map[Stat]bool{}
	for {
		living, err := others(find)
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

// others leaves out the dead and the caller.
func others(find func() ([]Stat, error)) ([]Stat, error) {
	all, err := find()
	if err != nil {
		return nil, err
	}
	living := make([]Stat, 0, len(all))
	for _, s := range all {
		if !s.Dead() && s.PID != os.Getpid() {
			living = append(living, s)
		}
	}
	return living, nil
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
		_, _ = p.each([]Stat{s}, func(h *Handle) error { return h.Signal(syscall.SIGSTOP) })
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
