package cleanup_test

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/store"
	"sbx/internal/testkit/schedule"
)

// maxLives is how often a process may be killed, so that every schedule ends.
const maxLives = 4

// errand is the purpose of one process.
type errand struct {
	name    string
	after   time.Duration
	order   order
	plans   bool          // it makes a plan, and applies it later
	rests   time.Duration // between the plan and that
	breaks  time.Duration // the time of Ctrl-C; 0 = never
	crashes bool
	again   bool // it is run once more afterwards
	compare int  // it reconciles that many times instead
}

func (s *sim) makeErrands() []errand {
	r := s.rng
	var all []errand
	for i := range schedule.Pick(r, 1, 1, 1, 2) {
		e := errand{
			name: string(rune('P' + i)), after: time.Duration(r.ExpFloat64() * float64(5*time.Second)), order: s.makeOrder(),
			plans: r.Float64() < 0.3, rests: schedule.Pick(r, time.Second, time.Minute, 20*time.Minute, 2*time.Hour),
			crashes: r.Float64() < 0.6, again: r.Float64() < 0.3,
		}
		if r.Float64() < 0.25 {
			e.compare = 2 + r.IntN(3)
		}
		if r.Float64() < 0.15 {
			e.breaks = time.Duration(r.ExpFloat64() * float64(3*time.Second))
		}
		all = append(all, e)
	}
	return all
}

// play plays the scene and checks it.
func (s *sim) play() {
	s.store = store.Memory(s.wall)
	s.populate()
	s.curse()
	fate, errands := s.fate(), s.makeErrands()
	s.scene(errands)
	ctx, stop := context.WithCancel(context.Background())
	var world, people sync.WaitGroup
	world.Go(func() { s.unfold(ctx, fate) })
	for _, e := range errands {
		people.Go(func() { s.run(e) })
	}
	people.Wait()
	stop()
	world.Wait()
	s.disk.full = false
	s.judge()
}

// run brings one errand to its end, through all of its crashes.
func (s *sim) run(e errand) {
	schedule.Sleep(context.Background(), e.after)
	switch {
	case e.compare > 0:
		s.runCompare(e)
	case e.plans:
		s.runPlan(e)
	default:
		s.runAct(e)
	}
	if e.again {
		schedule.Sleep(context.Background(), 5*time.Minute)
		e.crashes = false
		s.runAct(e)
	}
}

func (s *sim) runAct(e errand) {
	inc := s.boot(e.name, "act", e.crashes)
	s.interrupts(inc, e.breaks)
	err, died := inc.goes(inc.bulk(e.order).act)
	s.runOn(e, inc, err, died)
}

func (s *sim) runPlan(e errand) {
	inc := s.boot(e.name, "plan", e.crashes)
	b := inc.bulk(e.order)
	var text []byte
	err, died := inc.goes(func() error {
		plan, err := b.propose()
		if err == nil {
			text, err = json.Marshal(plan)
		}
		return err
	})
	inc.kill(context.Canceled)
	if died || err != nil {
		return
	}
	schedule.Sleep(context.Background(), e.rests)
	inc = s.boot(e.name, "apply", e.crashes)
	s.interrupts(inc, e.breaks)
	next := inc.bulk(e.order)
	maps.Copy(next.meant, b.meant)
	err, died = inc.goes(func() error { return next.apply(text) })
	s.runOn(e, inc, err, died)
}

// runOn resumes what was interrupted, until it is done.
func (s *sim) runOn(e errand, inc *incarnation, err error, died bool) {
	for life := 1; ; life++ {
		inc.kill(context.Canceled)
		open := died || err != nil && s.Roll("goes on", inc.n) < 0.5 // also what was refused: an operator may try
		run := inc.run
		if !open || run == "" || life > maxLives {
			return
		}
		schedule.Sleep(context.Background(), time.Duration(s.Roll("rests", inc.n)*s.Roll("rests too", inc.n)*float64(30*time.Minute)))
		inc = s.boot(e.name, "resume", e.crashes && life < maxLives)
		err, died = inc.goes(func() error { return inc.bulk(e.order).resume(run) })
	}
}

// interrupts schedules Ctrl-C.
func (s *sim) interrupts(inc *incarnation, after time.Duration) {
	if after == 0 {
		return
	}
	stop := time.AfterFunc(after, func() {
		s.mu.Lock()
		s.Logf("%s gets Ctrl-C", inc)
		s.mu.Unlock()
		inc.kill(fault.New(fault.KindCanceled, "interrupted"))
	})
	context.AfterFunc(inc.ctx, func() { stop.Stop() })
}
