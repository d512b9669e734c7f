package task_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/testkit/schedule"
)

// turns schedules the calls of all processes to the store, the remote or the provider, one
// at a time. A call takes no time. Time passes only when no call is waiting; calls of a
// frozen process do not count.
type turns struct {
	s       *sim
	mu      sync.Mutex
	waiting []*turn
	arrived chan struct{}

	polls   map[string]poll
	known   map[string]uint64   // the last result of each kind of call, per process
	called  map[*proc]time.Time // the time of each process's last call
	frozen  map[*proc]time.Time // until when
	current *proc               // the process of the last call
	asleep  []sleeper           // processes that have not started
}

// turn is one waiting call.
type turn struct {
	p         *proc
	stack     uint64 // hash of the call stack
	place, op string
	effect    func()
	done      chan struct{}
	over      bool // its caller has ended
}

// standing hashes the call stack of the caller.
func standing() uint64 {
	pcs := make([]uintptr, 64)
	return hashOf(pcs[:runtime.Callers(2, pcs)])
}

// alone reports whether a call reads nothing that changes, and changes nothing: its order
// is irrelevant.
func (t *turn) alone() bool { return t.op == "prepare" || t.op == "logs" }

// poll is what a process has seen by repeating one kind of call.
type poll struct {
	saw   uint64
	times int
}

// samePolls is after how many equal results of one kind of call further ones count as
// waiting.
const samePolls = 3

// waits reports whether a call has seen samePolls times what it would see now.
func (u *turns) waits(t *turn) bool {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	p := u.polls[fmt.Sprint(t.p.n, t.op)]
	return t.op != "swap" && p.times >= samePolls && p.saw == u.touched(t.place)
}

// sleeper is a process that starts later.
type sleeper struct {
	name  string
	start func()
}

// call blocks until it is scheduled, or ctx ends.
func (u *turns) call(ctx context.Context, p *proc, place, op string, effect func()) error {
	if ctx.Value(hears{}) != nil {
		op = "hear"
	}
	t := &turn{p: p, stack: standing(), place: place, op: op, effect: effect, done: make(chan struct{})}
	u.mu.Lock()
	u.waiting = append(u.waiting, t)
	u.mu.Unlock()
	select {
	case u.arrived <- struct{}{}:
	default:
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		u.mu.Lock()
		defer u.mu.Unlock()
		t.over = true
		u.waiting = slices.DeleteFunc(u.waiting, func(other *turn) bool { return other == t })
		if p.gate(op) != nil {
			return errDead
		}
		return ctx.Err()
	}
	return p.gate("answer to " + op)
}

// ready are the calls that may be scheduled now, in a fixed order.
func (u *turns) ready() []*turn {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	ready := slices.DeleteFunc(slices.Clone(u.waiting), func(t *turn) bool { return now.Before(u.frozen[t.p]) })
	slices.SortStableFunc(ready, func(a, b *turn) int {
		if a.p != b.p {
			return a.p.n - b.p.n
		}
		return strings.Compare(a.op, b.op)
	})
	return ready
}

// grant performs a call.
func (u *turns) grant(t *turn) {
	u.mu.Lock()
	u.waiting = slices.DeleteFunc(u.waiting, func(other *turn) bool { return other == t })
	u.mu.Unlock()
	s := u.s
	s.mu.Lock()
	saw := u.touched(t.place)
	if key := fmt.Sprint(t.p.n, t.op); u.polls[key].saw == saw {
		u.polls[key] = poll{saw, u.polls[key].times + 1}
	} else {
		u.polls[key] = poll{saw, 1}
	}
	u.known[fmt.Sprint(t.p.n, t.op)], u.called[t.p] = saw, time.Now()
	s.Logf("%s: %s", t.p, t.op)
	t.effect()
	s.mu.Unlock()
	close(t.done)
}

// touched hashes the state that a call of a place may read or change. The lock of the world
// is held.
func (u *turns) touched(place string) uint64 {
	s := u.s
	switch place {
	case "store":
		row, err := s.mem.Task(context.Background(), "t-1")
		h := fnv.New64a()
		_, _ = h.Write(row.Body)
		return hashOf(h.Sum64(), row.Version, row.LeaseUntil.Sub(s.Began), err == nil)
	case "remote":
		return hashOf(s.fences["t-1"])
	}
	h := hashOf()
	for _, b := range s.boxes {
		h = hashOf(h, b.id, b.alive(time.Now()), b.asked, b.ended, b.over(time.Now()))
	}
	return h
}

func hashOf(words ...any) uint64 {
	h := fnv.New64a()
	for _, w := range words {
		fmt.Fprint(h, w, "|")
	}
	return h.Sum64()
}

// state hashes everything that decides the further course: the position of each process in
// the code, its last result of each kind of call and the time of it, and the true state. Of
// two schedules with the same state only the first is continued. A process depends only on
// its last reads.
func (u *turns) state(left misfortunes) uint64 {
	s := u.s
	s.mu.Lock()
	defer s.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	h := hashOf(time.Since(s.Began), u.touched("store"), u.touched("remote"), u.touched("cloud"), left, len(u.asleep))
	for _, t := range s.order {
		h = hashOf(h, t.closed, t.acked, t.refused, t.published, t.over)
	}
	for _, p := range s.procs {
		h = hashOf(h, p.n, p.dead, p.done)
		if p.dead || p.done {
			continue
		}
		h = hashOf(h, p == u.current, u.frozen[p].Sub(s.Began), u.called[p].Sub(s.Began))
		for _, op := range []string{"list", "read", "hear", "swap", "add", "exit", "get", "terminate", "create", "collect", "look", "push", "poison"} {
			h = hashOf(h, u.known[fmt.Sprint(p.n, op)])
		}
	}
	var waiting []uint64
	for _, t := range u.waiting {
		waiting = append(waiting, hashOf(t.p.n, t.op, t.stack))
	}
	slices.Sort(waiting)
	h = hashOf(h, waiting)
	for _, a := range u.asleep {
		h = hashOf(h, a.name)
	}
	return h
}

// misfortunes are the faults that may still happen, and how often a process may still be
// preempted.
type misfortunes struct{ Freezes, Crashes, Preemptions int }

// step is one possible continuation.
type step struct {
	name string
	do   func()
}

// steps are all possible continuations.
func (u *turns) steps(ready []*turn, left *misfortunes) []step {
	var all []step
	var procs []*proc
	goesOn := slices.ContainsFunc(ready, func(t *turn) bool { return t.p == u.current })
	for _, t := range ready {
		preempts := goesOn && t.p != u.current
		if !preempts || left.Preemptions > 0 {
			all = append(all, step{"", func() {
				if u.current = t.p; preempts {
					left.Preemptions--
				}
				u.grant(t)
			}})
		}
		if !slices.Contains(procs, t.p) {
			procs = append(procs, t.p)
		}
	}
	if len(ready) == 0 && u.active() {
		all = append(all, step{"time passes", u.pass})
	}
	for i, a := range u.asleep {
		if len(ready) == 0 && u.active() {
			break // a start now and one right before the next call differ in time only
		}
		all = append(all, step{"", func() {
			u.asleep = slices.Delete(slices.Clone(u.asleep), i, i+1)
			a.start()
			synctest.Wait()
			u.current = u.newest()
		}})
	}
	for _, p := range procs {
		if left.Freezes > 0 {
			all = append(all, step{fmt.Sprint(p, " is frozen"), func() {
				left.Freezes--
				u.freeze(p)
			}})
		}
		if left.Crashes > 0 {
			all = append(all, step{"", func() {
				left.Crashes--
				u.s.mu.Lock()
				p.die("here")
				u.s.mu.Unlock()
			}})
		}
	}
	return all
}

// newest is the process that started last.
func (u *turns) newest() *proc {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	return u.s.procs[len(u.s.procs)-1]
}

// frozenFor is longer than a lease, a sweep and the deadline of the scene.
const frozenFor = 75 * time.Second

func (u *turns) freeze(p *proc) {
	u.s.mu.Lock()
	p.froze = time.Now()
	u.s.mu.Unlock()
	u.frozen[p] = time.Now().Add(frozenFor)
	u.s.late.Go(func() {
		schedule.Sleep(p.ctx, frozenFor)
		select {
		case u.arrived <- struct{}{}:
		default:
		}
	})
}

// pass lets time pass until a call is waiting.
func (u *turns) pass() {
	select {
	case <-u.arrived:
	case <-time.After(time.Minute):
	}
}

// interleaving is one scene of a runner, a stopper and a sweep.
type interleaving struct {
	*turns

	left misfortunes
	seen *visited
}

// visited are the states that any worker met. nil = states are not remembered.
type visited struct {
	mu     sync.Mutex
	split  int
	states map[uint64]struct{}
}

// first reports whether a state was not met before. Above the split each share passes
// through the same states.
func (v *visited) first(c *schedule.Choices, state uint64) bool {
	if v == nil || c.Depth() < v.split {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, met := v.states[state]; met {
		return false
	}
	v.states[state] = struct{}{}
	return true
}

// play plays one path; false = it reached a known state.
func (x *interleaving) play(c *schedule.Choices) bool {
	s := x.s
	for !x.over() {
		synctest.Wait()
		select {
		case <-x.arrived:
		default:
		}
		ready := x.ready()
		if i := slices.IndexFunc(ready, func(t *turn) bool { return t.alone() || x.waits(t) }); i >= 0 {
			x.grant(ready[i])
			continue
		}
		steps := x.steps(ready, &x.left)
		if len(steps) == 1 {
			steps[0].do()
			continue
		}
		if c.Foreign() || !c.Replaying() && !x.seen.first(c, x.state(x.left)) {
			return false
		}
		next := steps[c.Pick(len(steps))]
		if next.name != "" {
			s.mu.Lock()
			s.Logf("%s", next.name)
			s.mu.Unlock()
		}
		next.do()
	}
	return true
}

// over reports whether every process has ended.
func (x *interleaving) over() bool {
	synctest.Wait()
	return len(x.asleep) == 0 && !x.active()
}

// active reports whether some process has started and not ended.
func (u *turns) active() bool {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	return slices.ContainsFunc(u.s.procs, func(p *proc) bool { return !p.dead && !p.done })
}

// noteless is a provider that ignores recorded requests to end: nothing in the scene reads
// them, and the writes would double the schedules.
type noteless struct{ cloud }

func (n noteless) Terminate(ctx context.Context, targets []sandbox.Sandbox, o fleet.EndOptions) iter.Seq[sandbox.Ending] {
	o.Earlier, o.Before, o.After = nil, nil, nil
	return n.cloud.Terminate(ctx, targets, o)
}

// scene makes a world in which one task is to be run, stopped and swept.
func scene(left misfortunes, seen *visited) *interleaving {
	s := newSim(1)
	s.quiet = true
	s.tune = func(p *proc, o *task.Options) {
		o.SettleTime = func(string) time.Duration { return 2 * time.Second }
		o.Sandboxes = noteless{cloud{p}}
	}
	spec := task.Spec{
		Provider: "cloud", Command: []string{"work"}, Attempts: 1, Push: "origin=work", NoInactivity: true,
		Limits: task.Limits{Attempt: 90 * time.Second, Deadline: time.Minute},
	}
	t := &truth{id: "t-1", spec: spec}
	s.tasks["t-1"], s.order = t, []*truth{t}
	s.scripts = map[string][]program{"t-1": {{length: time.Millisecond, exit: sandbox.ClassOK}}}
	u := &turns{s: s, arrived: make(chan struct{}, 1), known: map[string]uint64{}, polls: map[string]poll{}, frozen: map[*proc]time.Time{}, called: map[*proc]time.Time{}}
	s.turns = u
	for _, e := range []errand{{verb: "run", host: "h1", task: "t-1"}, {verb: "stop", host: "h2", task: "t-1"}, {verb: "sweep", host: "h1"}} {
		u.asleep = append(u.asleep, sleeper{e.verb, func() { s.late.Go(func() { s.run(e) }) }})
	}
	u.asleep[0].start()
	u.asleep = u.asleep[1:]
	return &interleaving{turns: u, left: left, seen: seen}
}

// explored counts the schedules of an exploration.
type explored struct{ ends, joined, deepest int }

// interleave plays one path in a world of its own, and returns the report of a broken rule.
func interleave(t *testing.T, c *schedule.Choices, left misfortunes, seen *visited, met *explored) string {
	t.Helper()
	report := ""
	synctest.Test(t, func(*testing.T) {
		x := scene(left, seen)
		s := x.s
		if x.play(c) && seen.first(c, x.state(x.left)) {
			met.ends++
			s.turns = nil // from here on calls take time again
			s.calm()
			s.mu.Lock()
			s.atTheEnd()
			s.mu.Unlock()
		} else {
			met.joined++
		}
		met.deepest = max(met.deepest, c.Depth())
		s.mu.Lock()
		for _, p := range s.procs {
			p.die("the end of the world")
		}
		if len(s.Broken) > 0 {
			report = fmt.Sprintf("a schedule breaks %d rules; replay it with\n  %s=%d,%d,%d:%s go test -count=1 -run '^TestEveryInterleaving$' ./internal/task\n",
				len(s.Broken), envPath, left.Freezes, left.Crashes, left.Preemptions, c) + "  - " + strings.Join(s.Broken, "\n  - ") + "\nthe schedule:\n" + strings.Join(s.Steps, "\n")
		}
		s.mu.Unlock()
		s.late.Wait()
	})
	return report
}

const (
	// envShares is the number of shares of the schedules, of which a random one is played:
	// 1 = all are. Unset, random schedules are played.
	envShares = "SBX_INTERLEAVINGS"
	// envInterventions is the maximum of freezes, crashes and preemptions in one schedule;
	// 2 when unset.
	envInterventions = "SBX_INTERVENTIONS"
	// envPath replays one schedule.
	envPath = "SBX_PATH"
)

// TestEveryInterleaving plays every order in which the calls of one runner, one stopper
// and one sweep can happen, with at most one freeze and one crash of any of them before
// any call, and at most so many interventions (freezes, crashes and preemptions) in all.
// SBX_INTERLEAVINGS=1 plays them all, SBX_INTERLEAVINGS=N one share of N by chance. Shares
// are of very different sizes; so a run that sets nothing plays schedule.DefaultSeeds schedules of
// each round by chance.
//
// What is not told apart, and why that loses nothing:
//   - two orders of steps after which every process has seen the same, waits for the
//     same, and the world is the same at the same time: only one is followed further;
//   - the place of a call that reads what nobody changes;
//   - that a process starts between two calls, or right before the second of them.
//
// The bounds: a freeze lasts frozenFor; a call takes no time, which passes only when
// every process waits for it or is frozen; a process that has seen the same samePolls
// times by one kind of call is not interrupted by its further looks.
func TestEveryInterleaving(t *testing.T) {
	t.Parallel()
	met := &explored{}
	if word := os.Getenv(envPath); word != "" {
		before, path, _ := strings.Cut(word, ":")
		var left misfortunes
		_, err := fmt.Sscanf(before, "%d,%d,%d", &left.Freezes, &left.Crashes, &left.Preemptions)
		require.NoError(t, err)
		c, err := schedule.Replay(path)
		require.NoError(t, err)
		if report := interleave(t, c, left, &visited{states: map[uint64]struct{}{}}, met); report != "" {
			t.Error(report)
		}
		return
	}
	shares, interventions := schedule.Number(t, envShares, 0), max(2, schedule.Number(t, envInterventions, 2))
	// Simple faults come first: a mistake that needs none is found at once.
	for _, left := range rounds(interventions) { //nolint:paralleltest // one after the other: the simple first
		t.Run(fmt.Sprintf("%d freezes %d crashes %d preemptions", left.Freezes, left.Crashes, left.Preemptions), func(t *testing.T) {
			if shares == 0 {
				walk(t, left)
				return
			}
			bounds := schedule.Bounds{Depth: deepest, SplitDepth: 5}
			if shares > 1 {
				bounds.Shares, bounds.Share = shares, rand.IntN(shares)
			}
			exploreShare(t, bounds, left)
		})
		if t.Failed() {
			return
		}
	}
}

// rounds are the possible faults of one schedule, the simple first: at most one freeze, one
// crash, and preemptions for the rest of the interventions.
func rounds(interventions int) []misfortunes {
	n := interventions
	return []misfortunes{{0, 0, n}, {1, 0, n - 1}, {0, 1, n - 1}, {1, 1, n - 2}}
}

// mostOfAShare bounds the schedules of one round of a share: some shares are a hundred
// times larger than others.
const mostOfAShare = 40_000

// deepest bounds the choices of one schedule, and is never reached.
const deepest = 1000

// walk plays random schedules. A report names the schedule itself.
func walk(t *testing.T, left misfortunes) {
	t.Helper()
	met := &explored{}
	report := ""
	schedule.Walk(schedule.DefaultSeeds, rand.Uint64(), func(c *schedule.Choices) bool {
		report = interleave(t, c, left, nil, met)
		return report == ""
	})
	t.Logf("%d schedules by chance, at most %d choices in one", met.ends, met.deepest)
	if report != "" {
		t.Fatal(report)
	}
}

func exploreShare(t *testing.T, bounds schedule.Bounds, left misfortunes) {
	t.Helper()
	met, seen := &explored{}, &visited{states: map[uint64]struct{}{}}
	if bounds.Shares > 1 {
		seen.split = bounds.SplitDepth
	}
	report, cut := "", false
	began := time.Now()
	played := schedule.Explore(bounds, func(c *schedule.Choices) bool {
		if n := met.ends + met.joined; n > 0 && n%20000 == 0 {
			t.Logf("%d schedules after %s", n, time.Since(began).Round(time.Second))
		}
		report = interleave(t, c, left, seen, met)
		cut = bounds.Shares > 1 && met.ends+met.joined == mostOfAShare
		return report == "" && !cut
	})
	whole := "whole"
	if cut {
		whole = "cut short"
	}
	t.Logf("%d schedules (share %d of %d, %s): %d to their end, %d until they joined one that was played; %d states, at most %d choices in a schedule",
		played, bounds.Share, max(1, bounds.Shares), whole, met.ends, met.joined, len(seen.states), met.deepest)
	if report != "" {
		t.Fatal(report)
	}
	require.Less(t, met.deepest, deepest, "a schedule was cut short")
}
