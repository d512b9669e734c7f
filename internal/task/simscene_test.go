package task_test

import (
	"fmt"
	"slices"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/testkit/schedule"
)

// chaos is when the last fault has ended.
const chaos = 150 * time.Second

// errand is a process that will be started.
type errand struct {
	verb, host, task string
	after            time.Duration
	fuse, ice        int
	doom             string
	deadly           bool
	stiff            time.Duration
	freeze           time.Duration // after its start; 0 = never
}

func points() []string {
	return []string{
		"intent", "intent", "created", "created", "saved", "output", "ending", "ended", "gone", "collected",
		"before the gate", "before the gate", "gate", "gate", "gate", "pushed", "adopted",
	}
}

// draw makes the scene.
func (s *sim) draw() []errand {
	r := s.rng
	s.quiet = r.Float64() < 0.1
	var all []errand
	for i := range 1 + r.IntN(3) {
		t := &truth{id: fmt.Sprintf("t-%d", i+1), spec: s.spec()}
		// Known seeds from before the branches keep their schedules.
		t.spec.NewBranch = t.spec.Push != "" && !slices.Contains(knownSeeds(), s.Seed) && s.Roll("new branch", i) < 0.5
		s.tasks[t.id] = t
		s.order = append(s.order, t)
		s.Logf("%s: %+v", t.id, t.spec)
		begin := time.Duration(r.Int64N(int64(5 * time.Second)))
		first := s.doomed(errand{verb: "run", host: s.host(), task: t.id, after: begin})
		all = append(all, first)
		if first.stiff > 0 && r.Float64() < 0.6 { // another process takes over where it may have frozen
			all = append(all, s.doomed(errand{verb: "again", host: s.host(), task: t.id, after: begin + 31*time.Second + s.when()}))
		}
		for range schedule.Pick(r, 0, 0, 1, 1, 2) {
			all = append(all, s.doomed(errand{verb: "stop", host: s.host(), task: t.id, after: begin + s.when()}))
		}
		if r.Float64() < 0.3 {
			all = append(all, errand{verb: "stop", host: s.host(), task: t.id, after: chaos + s.when()})
		}
		for range schedule.Pick(r, 0, 0, 1, 2) {
			all = append(all, s.doomed(errand{verb: "again", host: s.host(), task: t.id, after: begin + s.when()}))
		}
	}
	for range r.IntN(4) {
		all = append(all, s.doomed(errand{verb: "sweep", host: s.host(), after: s.when()}))
	}
	if !s.quiet {
		s.doomBranches(all)
		s.curse()
	}
	// Known seeds from before the extras keep their schedules.
	if s.extras = !s.quiet && !slices.Contains(knownSeeds()[:6], s.Seed) && s.Roll("extras") < 0.5; s.extras {
		s.extra(all)
	}
	for _, e := range all {
		s.Logf("errand %+v", e)
	}
	for _, h := range s.harms {
		s.Logf("harm %+v", h)
	}
	return all
}

// doomBranches moves the faults of some processes to the steps of a new branch.
func (s *sim) doomBranches(all []errand) {
	points := []string{"branch noted", "branch made", "branch settled"}
	for i := range all {
		e := &all[i]
		if t := s.tasks[e.task]; t != nil && t.spec.NewBranch && e.doom != "" && s.Roll("branch doom", i) < 0.5 {
			e.doom = points[int(s.Roll("branch point", i)*float64(len(points)))]
		}
	}
}

// extra adds faults between any two steps of any process, and slow pushes.
func (s *sim) extra(all []errand) {
	r := s.rng
	for i := range all {
		e := &all[i]
		if e.fuse == 0 && e.doom == "" && e.freeze == 0 && e.after < chaos && r.Float64() < 0.5 {
			e.ice, e.stiff = 1+r.IntN(schedule.Pick(r, 8, 60)), time.Duration(r.ExpFloat64()*float64(schedule.Pick(r, 5*time.Second, 40*time.Second, 100*time.Second)))
		}
	}
	if r.Float64() < 0.3 {
		from := time.Duration(r.Int64N(int64(chaos / 2)))
		s.harms = append(s.harms, harmful{
			place: "remote", op: schedule.Pick(r, "", "push", "poison"), harm: "crawls", chance: schedule.Pick(r, 0.5, 1), from: from, until: min(chaos, from+schedule.Pick(r, 20*time.Second, 100*time.Second)),
		})
	}
}

func (s *sim) host() string { return schedule.Pick(s.rng, "h1", "h2") }

func (s *sim) when() time.Duration {
	return time.Duration(s.rng.ExpFloat64() * float64(schedule.Pick(s.rng, 2*time.Second, 15*time.Second, 50*time.Second)))
}

func (s *sim) spec() task.Spec {
	r := s.rng
	spec := task.Spec{
		Provider: "cloud", Command: []string{"work"}, Attempts: 1 + r.IntN(3), Delay: schedule.Pick(r, 0, 6*time.Second),
		MemoryBytes: schedule.Pick[int64](r, 256, 512) * sandbox.MiB, Budget: "b",
		Limits: task.Limits{
			Command: schedule.Pick(r, 0, 20*time.Second, 60*time.Second), Attempt: schedule.Pick(r, 30*time.Second, 90*time.Second),
			Deadline: schedule.Pick(r, 0, 40*time.Second, 200*time.Second), Inactivity: schedule.Pick(r, 0, 15*time.Second),
		},
	}
	switch r.IntN(4) {
	case 0:
	case 1:
		spec.Publish = "command"
	default:
		spec.Push = "origin=work"
	}
	if r.Float64() < 0.1 {
		spec.KeepAlive = time.Minute
	}
	if r.Float64() < 0.1 {
		spec.NoPolling = true
	}
	return spec
}

// doomed chooses the faults of a process.
func (s *sim) doomed(e errand) errand {
	r := s.rng
	if s.quiet {
		return e
	}
	e.stiff = time.Duration(r.IntN(2))*35*time.Second + time.Duration(r.ExpFloat64()*float64(schedule.Pick(r, 20*time.Second, 40*time.Second, 200*time.Second)))
	switch r.IntN(8) {
	case 0:
		e.fuse = 1 + int(r.Float64()*r.Float64()*200)
	case 1, 2:
		e.doom, e.deadly = schedule.Pick(r, points()...), true
	case 3, 4:
		e.doom = schedule.Pick(r, points()...)
	case 5:
		e.freeze = s.when()
	}
	return e
}

// curse chooses the kinds of faults.
func (s *sim) curse() {
	r := s.rng
	for range r.IntN(7) {
		h := harmful{
			place: schedule.Pick(r, "store", "store", "cloud", "cloud", "remote", "remote", "breaker"), harm: schedule.Pick(r, "away", "unanswered", "unanswered", "lost", "slow", "hangs"),
			chance: schedule.Pick(r, 0.05, 0.3, 1), from: time.Duration(r.Int64N(int64(chaos / 2))),
		}
		h.until = min(chaos, h.from+schedule.Pick(r, time.Second, 10*time.Second, 40*time.Second, 100*time.Second))
		switch h.place {
		case "store":
			h.op = schedule.Pick(r, "", "swap", "swap", "read")
		case "cloud":
			h.op = schedule.Pick(r, "", "create", "exit", "list", "terminate", "get", "collect")
		case "remote":
			h.op = schedule.Pick(r, "", "push", "push", "poison", "command")
		}
		s.harms = append(s.harms, h)
	}
}

// script chooses what runs in a box. The lock is held.
func (s *sim) script(b *box) {
	n := 0
	for _, other := range s.boxes {
		if other.task == b.task {
			n++
		}
	}
	if all := s.scripts[b.task]; len(all) > 0 {
		b.prog, b.ends = all[min(n, len(all)-1)], time.Second
		if s.turns != nil {
			b.ends = 0
		}
		return
	}
	roll := func(what string) float64 { return s.Roll(what, b.task, n) }
	b.prog.length = time.Duration(roll("length") * roll("length too") * float64(40*time.Second))
	if roll("long") < 0.25 {
		b.prog.length += 45 * time.Second
	}
	if roll("talks") < 0.7 {
		b.prog.talks = 500*time.Millisecond + time.Duration(roll("how often")*float64(8*time.Second))
	}
	switch x := roll("exit"); {
	case x < 0.5:
		b.prog.exit = sandbox.ClassOK
	case x < 0.6:
		b.prog.exit = sandbox.ClassAgentError
	case x < 0.75:
		b.prog.exit = sandbox.ClassKilledUnknown
	case x < 0.85:
		b.prog.exit = sandbox.ClassOOM
		if b.memoryMB > 512 {
			b.prog.exit = sandbox.ClassOK
		}
	case x < 0.92:
		b.prog.exit = sandbox.ClassGone
	default:
		b.prog.exit, b.prog.length = sandbox.ClassOK, forever
	}
	if s.quiet {
		b.ends = time.Second
		return
	}
	b.ends = time.Duration(roll("ends") * roll("ends too") * float64(10*time.Second))
	if roll("liar") < 0.08 {
		b.liar = 1
	}
	if roll("slow end") < 0.05 {
		b.ends = 45 * time.Second
	}
}
