package reconcile_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"sbx/internal/testkit/schedule"
)

// The scheduler of the exploration. Two reconciles run as they are; each of their
// calls to the store, to the records and to the provider waits until the scheduler
// lets it go, one at a time. What the scheduler may do next is a transition; which one
// it takes is a choice that schedule.Explore goes through.
//
// Two prunings keep the tree small, both without losing a history:
//
//   - Sleep sets: of two orders of calls that do not depend on each other one is
//     played. Calls depend on each other when they are of one process, or touch the
//     same thing and one of them writes. That is the usual partial-order reduction:
//     every history has an equivalent one that is played.
//   - A crash is tried before writes alone: after the last write of a process its
//     reads show in nothing that anybody else can see.

// freezeFor is long enough that two observations count.
const freezeFor = 6 * time.Minute

// harms limits the faults on one path.
const (
	mayFreeze = 1
	mayCrash  = 1
	mayBreak  = 1
)

// errDead is the error of every call of a crashed process.
var errDead = errors.New("the process is dead")

// reconciler is one process.
type reconciler struct {
	name   string
	cancel context.CancelFunc
	frozen bool
	dead   bool
	done   bool

	gets    map[string]time.Time // the last read of each by its id
	records time.Time            // the last reading of the records
	whole   bool                 // the listing and all records so far were complete
}

// pending is one call that waits for the scheduler.
type pending struct {
	by     *reconciler
	what   string // and its object
	writes bool
	run    chan struct{}
}

// transition is one possible next event.
type transition struct {
	kind string // step, freeze, thaw, crash
	by   *reconciler
	call *pending // of a step
}

func (t transition) String() string {
	text := t.kind
	if t.by != nil {
		text += " " + t.by.name
	}
	if t.call != nil {
		text += " " + t.call.what
	}
	return text
}

// dependent reports whether the order of two transitions may matter.
func dependent(a, b transition) bool {
	switch {
	case a.kind == "thaw" || b.kind == "thaw": // time passes for all processes
		return true
	case a.by == b.by, a.kind == b.kind && a.kind != "step": // there is one freeze and one crash in all
		return true
	case a.kind != "step" || b.kind != "step":
		return false
	}
	return a.call.conflicts(b.call)
}

// conflicts reports whether two calls touch the same thing and one of them writes. A thing
// without an object means all of its kind: a listing, all counts of a cause.
func (c *pending) conflicts(other *pending) bool {
	if !c.writes && !other.writes {
		return false
	}
	mine, theirs := thing(c.what), thing(other.what)
	return mine[0] == theirs[0] && (mine[1] == "" || theirs[1] == "" || mine[1] == theirs[1])
}

// thing is what a call touches: the kind and the object. "get box1", "terminate box1" and
// "list" touch sandboxes, "sight orphan/box1" and "sightings orphan" counts of orphans.
// Records are never written here, so "records" depends on nothing.
func thing(what string) [2]string {
	verb, object, _ := strings.Cut(what, " ")
	switch verb {
	case "sight", "forget", "sightings":
		cause, key, _ := strings.Cut(object, "/")
		return [2]string{"sightings of " + cause, key}
	case "records":
		return [2]string{"records", ""}
	}
	return [2]string{"sandboxes", object}
}

// scheduler plays one path.
type scheduler struct {
	c       *schedule.Choices
	mu      sync.Mutex
	procs   []*reconciler
	waiting []*pending
	sleep   []transition
	frozen  int
	crashed int
	broken  int
	trail   []string
	wrong   []string
}

// gate blocks a call until it is scheduled; an error where its process has died.
func (s *scheduler) gate(p *reconciler, what string, writes bool) error {
	s.mu.Lock()
	if p.dead {
		s.mu.Unlock()
		return errDead
	}
	call := &pending{p, what, writes, make(chan struct{})}
	s.waiting = append(s.waiting, call)
	s.mu.Unlock()
	<-call.run
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.dead {
		return errDead
	}
	return nil
}

// breaks chooses how a list fails: 0 = it does not, 1 = at once, 2 = after its first row.
func (s *scheduler) breaks(p *reconciler, what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken >= mayBreak || p.dead {
		return 0
	}
	how := s.c.Pick(3)
	if how > 0 {
		s.broken++
		s.trail = append(s.trail, fmt.Sprintf("%s %s breaks (%d)", p.name, what, how))
	}
	return how
}

// play performs transitions until all processes are done; false where the rest of the path
// is equivalent to an earlier one.
func (s *scheduler) play() bool {
	for {
		synctest.Wait()
		enabled := s.enabled()
		if len(enabled) == 0 {
			if s.over() {
				return true
			}
			time.Sleep(time.Second) // some process waits for time to pass
			continue
		}
		awake := slices.DeleteFunc(enabled, func(t transition) bool {
			return slices.ContainsFunc(s.sleep, func(a transition) bool { return a == t })
		})
		if len(awake) == 0 {
			s.abandon()
			return false
		}
		i := s.c.Pick(len(awake))
		t := awake[i]
		s.sleep = slices.DeleteFunc(append(s.sleep, awake[:i]...), func(a transition) bool { return dependent(a, t) })
		s.take(t)
	}
}

// enabled lists the possible transitions, in a fixed order.
func (s *scheduler) enabled() []transition {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.waiting, func(a, b *pending) int {
		return cmp.Or(cmp.Compare(a.by.name, b.by.name), cmp.Compare(a.what, b.what))
	})
	var all, harms []transition
	for _, call := range s.waiting {
		if !call.by.frozen {
			all = append(all, transition{"step", call.by, call})
		}
	}
	for _, p := range s.procs {
		has := func(fits func(*pending) bool) bool {
			return slices.ContainsFunc(s.waiting, func(c *pending) bool { return c.by == p && fits(c) })
		}
		if p.frozen {
			harms = append(harms, transition{"thaw", p, nil})
		} else if s.frozen < mayFreeze && has(func(*pending) bool { return true }) {
			harms = append(harms, transition{"freeze", p, nil})
		}
		if s.crashed < mayCrash && has(func(c *pending) bool { return c.writes }) {
			harms = append(harms, transition{"crash", p, nil})
		}
	}
	return append(all, harms...)
}

func (s *scheduler) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.procs, func(p *reconciler) bool { return !p.done })
}

func (s *scheduler) take(t transition) {
	s.mu.Lock()
	s.trail = append(s.trail, t.String())
	switch t.kind {
	case "step":
		s.waiting = slices.DeleteFunc(s.waiting, func(c *pending) bool { return c == t.call })
		close(t.call.run)
	case "freeze":
		s.frozen++
		t.by.frozen = true
	case "crash":
		s.crashed++
		s.kill(t.by)
	}
	s.mu.Unlock()
	if t.kind == "thaw" {
		time.Sleep(freezeFor)
		s.mu.Lock()
		t.by.frozen = false
		s.mu.Unlock()
	}
}

// kill ends a process: its further calls have no effect. The lock is held.
func (s *scheduler) kill(p *reconciler) {
	p.dead, p.frozen = true, false
	p.cancel()
	for _, call := range s.waiting {
		if call.by == p {
			close(call.run)
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(c *pending) bool { return c.by == p })
}

// abandon ends all processes without an effect.
func (s *scheduler) abandon() {
	s.mu.Lock()
	for _, p := range s.procs {
		s.kill(p)
	}
	s.mu.Unlock()
	for synctest.Wait(); !s.over(); synctest.Wait() {
		time.Sleep(time.Second)
	}
}

// read yields rows one by one, as far as the scheduler lets the list go.
func read[T any](s *scheduler, p *reconciler, what string, began func(), rows func() iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := s.gate(p, what, false); err != nil {
			yield(none, err)
			return
		}
		began()
		how := s.breaks(p, what)
		n := 0
		for row, err := range rows() {
			if how == 1 || how == 2 && n == 1 {
				break
			}
			if !yield(row, err) {
				return
			}
			n++
		}
		if how > 0 {
			s.mu.Lock()
			p.whole = false
			s.mu.Unlock()
			yield(none, planted("unavailable"))
		}
	}
}
