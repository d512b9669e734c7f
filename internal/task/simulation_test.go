package task_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"sbx/internal/fault"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/testkit/schedule"
)

// knownSeeds are seeds that once broke a rule.
func knownSeeds() []uint64 {
	return []uint64{
		9100052761, 145829, 127466, // a stop that was overtaken by the end was acknowledged
		125239,           // a found sandbox was recorded as gone by a process that had not found it
		29836,            // a slow answer hid that the deadline had passed
		254942,           // a frozen runner's late sandbox was taken for the published one
		1758327946017398, // an owner that had given up was taken for a working one
		1758327946092739, // a slow create was counted to the time of the stop
		91271,            // the reservation of a gone attempt was released, and taken again without admission
		6141648778032630, // a recorded end was replaced before the breaker had it
		3350222116998165, // an attempt that was repeated for nothing had run, as was found later
	}
}

// TestSimulation runs tasks through seeded schedules of all faults: knownSeeds, then half
// of the others from 1, half from a random start. SBX_SEEDS=N plays that many,
// SBX_SEEDS_FROM=n fixes the start, SBX_SEED=n replays one and prints it.
func TestSimulation(t *testing.T) {
	t.Parallel()
	schedule.Simulate(t, "task", knownSeeds(), func(seed uint64) *schedule.Trace {
		s := newSim(seed)
		s.play()
		return &s.Trace
	})
}

// play plays the scene, then lets sweeps end it.
func (s *sim) play() {
	errands := s.draw()
	s.deceive()
	s.jumps = !s.quiet && s.Roll("jumps") < 0.15
	var all sync.WaitGroup
	for _, e := range errands {
		all.Go(func() { s.run(e) })
	}
	if s.jumps {
		all.Go(func() {
			schedule.Sleep(context.Background(), time.Duration(s.Roll("jump at")*float64(chaos)))
			by := time.Duration((s.Roll("jump by") - 0.5) * float64(4*time.Minute))
			s.jump.Store(int64(by))
			s.mu.Lock()
			s.Logf("the store's clock jumps by %s", by)
			s.mu.Unlock()
		})
	}
	schedule.Sleep(context.Background(), chaos)
	s.calm()
	s.mu.Lock()
	s.atTheEnd()
	for _, p := range s.procs {
		p.die("the end of the world")
	}
	s.mu.Unlock()
	all.Wait()
	s.late.Wait()
}

// calm sweeps on both hosts until every task is over.
func (s *sim) calm() {
	for n, began := 0, time.Now(); time.Since(began) < 3*time.Hour && !s.allDone(); n++ {
		for _, host := range []string{"h1", "h2"} {
			s.run(errand{verb: "sweep", host: host})
		}
		every := 15 * time.Second
		if n > 40 { // only tasks without a deadline take longer
			every = 3 * time.Minute
		}
		schedule.Sleep(context.Background(), every)
	}
}

// allDone reports whether every task is over, and no process is left.
func (s *sim) allDone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, _ := s.mem.Tasks(context.Background(), store.TaskQuery{Live: true})
	return len(rows) == 0 && !slices.ContainsFunc(s.procs, func(p *proc) bool { return !p.dead && !p.done })
}

// atTheEnd checks what is left. The lock is held.
func (s *sim) atTheEnd() {
	for _, t := range s.order {
		k, found := s.kept(t.id)
		if !found {
			continue // no process lived to add it
		}
		if !k.State.Final() && !s.hidesEnds() {
			s.Breakf("7: %s is still %s %q, owner %d, waits %q, refused %q", t.id, k.State, k.Phase, k.Owner.PID, k.Waits, k.Refused)
		}
		if t.acked && t.refused {
			s.Breakf("3: one stop of %s was acknowledged, another was told that it is public", t.id)
		}
		for _, b := range s.living(t.id) {
			if k.State.Final() && (k.Kept == nil || k.Kept.Ref.ID != b.id) && !b.stray {
				s.Breakf("7: %s outlives its task", b)
			}
		}
	}
	for _, p := range s.procs {
		if p.open != 0 && p.done {
			s.Breakf("11: %s let a breaker wait for %d attempts", p, p.open)
		}
	}
}

// run is one process from its start to its end.
func (s *sim) run(e errand) {
	if e.after > 0 {
		schedule.Sleep(context.Background(), e.after)
	}
	p := s.boot(e.verb, e.host, e.task)
	p.fuse, p.ice, p.doom, p.deadly, p.stiff = e.fuse, e.ice, e.doom, e.deadly, e.stiff
	if e.freeze > 0 {
		s.late.Go(func() {
			schedule.Sleep(p.ctx, e.freeze)
			s.mu.Lock()
			defer s.mu.Unlock()
			p.freeze(e.stiff, "some moment")
		})
	}
	s.live(p)
}

// live is what a process does.
func (s *sim) live(p *proc) {
	now, err := p.does()
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.dead {
		return
	}
	p.done = true
	p.kill(nil)
	s.Logf("%s ends: %s %v", p, now.State, err)
	if kind := fault.KindOf(err); kind == fault.KindNone || kind == fault.KindLocked {
		s.onDone(p)
	}
	if isRaw(err) || errors.Is(err, errDead) {
		s.Breakf("0: %s ends with an error that says nothing: %v", p, err)
	}
}

func (p *proc) options() task.Options {
	o := task.Options{
		Ledger: task.Ledger{Store: task.FairStore(ledger{p}), LimitMB: limitMB}, Sandboxes: cloud{p}, Publisher: remote{p}, Breaker: breaker{p},
		Owner: p.owner(), Alive: p.alive, CrashPoint: p.at,
		DeleteOnEnd: func(string) bool { return p.s.leaves },
		Jitter:      func() float64 { return p.s.Roll("delay", p.n) },
		Nonce: func() string {
			p.calls["nonce"]++
			return "n" + strconv.Itoa(p.n) + "." + strconv.Itoa(p.calls["nonce"])
		},
	}
	if p.verb == "sweep" {
		o.Continue = p.continues
	}
	if !p.s.quiet {
		o.SettleTime = func(string) time.Duration { return laggards + unlisted + time.Second }
	}
	if p.s.tune != nil {
		p.s.tune(p, &o)
	}
	return o
}

// continues is Options.Continue: a process that outlives the sweep. It may have faults like
// any other.
func (p *proc) continues(_ context.Context, t task.Task) (task.Owner, error) {
	if err := p.gate("continue"); err != nil {
		return task.Owner{}, err
	}
	s := p.s
	next := s.boot("continue", p.host, t.ID)
	next.from = t.Owner
	if s.extras && time.Since(s.Began) < chaos {
		s.mu.Lock()
		if next.stiff = time.Duration(s.Roll("stiff", next.n) * float64(90*time.Second)); s.Roll("dies", next.n) < 0.3 {
			next.fuse = 1 + int(s.Roll("fuse", next.n)*20)
		} else if s.Roll("stalls", next.n) < 0.3 {
			next.ice = 1 + int(s.Roll("ice", next.n)*20)
		}
		s.mu.Unlock()
	}
	s.late.Go(func() { s.live(next) })
	return next.owner(), nil
}

// specOf is what a task was asked for. A test may begin other tasks meanwhile.
func (s *sim) specOf(id string) task.Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[id].spec
}

func (p *proc) does() (task.Task, error) {
	o := p.options()
	switch p.verb {
	case "run":
		t, _, err := o.Ledger.Add(p.ctx, task.New(p.task, p.task, p.s.specOf(p.task), p.owner(), time.Now()))
		if err != nil {
			return t, err
		}
		return p.goesOn(o, t)
	case "again", "continue":
		t, err := o.Ledger.Change(p.ctx, p.task, func(n *task.Task) error {
			return n.Adopt(p.owner(), p.alive(n.Owner) == "false" || n.Owner == p.from || n.Owner == p.owner())
		})
		switch {
		case errors.Is(err, task.ErrHeld), errors.Is(err, task.ErrFinal), fault.KindOf(err) == fault.KindNotFound:
			return t, nil
		case err != nil:
			return t, err
		}
		return p.goesOn(o, t)
	case "stop":
		return p.stops(task.NewStopper(o))
	}
	_, err := task.Sweep(p.ctx, o)
	return task.Task{}, err
}

func (p *proc) goesOn(o task.Options, t task.Task) (task.Task, error) {
	t, err := task.NewRunner(o, nil, nil).Run(p.ctx, t)
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if err == nil && !t.State.Final() && !p.dead {
		p.s.Breakf("0: %s says that all is well, and %s is %s", p, t.ID, t.State)
	}
	return t, err
}

// lastMade is when the last sandbox of a task was made, if that is after a time: a create
// in progress at the stop may take some seconds.
func (s *sim) lastMade(id string, after time.Time) time.Time {
	for _, b := range s.boxes {
		if b.task == id && b.made.After(after) {
			after = b.made
		}
	}
	return after
}

func (p *proc) stops(stopper *task.Stopper) (task.Task, error) {
	began := time.Now()
	t, err := stopper.ForbidPublication(p.ctx, p.task, p.String())
	p.s.mu.Lock()
	took, quiet, dead := time.Since(began), p.s.quiet && p.s.turns == nil, p.dead
	if !dead && errors.Is(err, task.ErrPublished) {
		p.s.onStop(p, p.task, false)
	}
	if !dead && err == nil {
		p.s.onStop(p, p.task, true)
		if quiet && took > 500*time.Millisecond && t.Publish.State == "" {
			p.s.Breakf("12: the stop of %s took %s to be written", p.task, took)
		}
	}
	p.s.mu.Unlock()
	switch {
	case task.TooLate(err): // too late, and the rest is ended all the same
	case fault.KindOf(err) == fault.KindNotFound, fault.KindOf(err) == fault.KindRefused:
		return t, nil
	case err != nil:
		return t, err
	}
	began = time.Now()
	t, err = stopper.End(p.ctx, t)
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if !p.dead && err == nil {
		for _, b := range p.s.living(p.task) {
			if b.stray {
				continue
			}
			if t.Kept == nil || t.Kept.Ref.ID != b.id {
				p.s.Breakf("5: a stop says that %s is gone, and %s lives", p.task, b)
			}
		}
		if took := time.Since(p.s.lastMade(p.task, began)); quiet && took > 6*time.Second {
			p.s.Breakf("12: the sandbox of %s lived for %s after the stop", p.task, took)
		}
	}
	return t, err
}
