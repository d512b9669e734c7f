package cleanup_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/schedule"
)

// populate chooses the clouds and their sandboxes.
func (s *sim) populate() {
	r := s.rng
	for i := range 1 + r.IntN(3) {
		c := &cloud{
			seed: s.Seed,
			name: string(rune('a' + i)), kind: cloudKind(r.IntN(int(kinds))), stops: r.Float64() < 0.2,
			leaves: schedule.Pick(r, "record", "gone", "nothing"), flaps: schedule.Pick(r, 0, 3*time.Second, time.Minute), page: 2 + r.IntN(4),
			production: r.Float64() < 0.2, ageOnly: r.Float64() < 0.25, owned: schedule.Pick(r, "all", "all", "team", "sbx"),
		}
		c.early = c.kind == proving && !c.stops && r.Float64() < 0.5
		if c.early {
			c.leaves = "nothing"
		}
		if c.kind >= clocked {
			c.skew = schedule.Pick(r, 0, 0, 0, time.Second, -90*time.Second, 90*time.Second, 10*time.Minute)
		}
		if r.Float64() < 0.4 {
			c.stuckAfter = map[string]time.Duration{schedule.Pick(r, "", "builder"): schedule.Pick(r, 30*time.Minute, 5*time.Minute)}
		}
		s.clouds = append(s.clouds, c)
		for n := range r.IntN(schedule.Pick(r, 11, 11, 11, 22)) {
			s.settle(c, s.makeBox(fmt.Sprintf("%s%02d", c.name, n)))
		}
	}
}

func (s *sim) settle(c *cloud, b *box) {
	b.gen = 1
	for _, old := range c.history {
		if old.id == b.id {
			b.gen++
		}
	}
	c.add(b)
	if s.rng.Float64() < 0.03 {
		s.protect[sandbox.Ref{Provider: c.name, ID: b.id}] = true
	}
}

func (s *sim) makeBox(id string) *box {
	r := s.rng
	age := schedule.Pick(r, time.Minute, 4*time.Minute, 9*time.Minute+58*time.Second, 11*time.Minute, 20*time.Minute, 40*time.Minute, 3*time.Hour, 26*time.Hour)
	age += time.Duration(r.Int64N(int64(time.Second)))
	b := &box{
		id: id, created: s.Began.Add(-age), says: schedule.Pick(r, "", "", "", "", "", "", "nothing", "the future", "a zone ahead"),
		state: schedule.Pick(r, sandbox.StateRunning, sandbox.StateRunning, sandbox.StateRunning, sandbox.StateRunning, sandbox.StateRunning,
			sandbox.StatePaused, sandbox.StateProvisioning, sandbox.StateStopped, sandbox.StateFailed, sandbox.StateUnknown),
		labels: map[string]string{}, agent: schedule.Pick(r, "", "builder"), logs: r.Float64() < 0.8, recordTells: r.Float64() < 0.6,
		recordJudge: sandbox.Unknown, endFor: schedule.Pick(r, 0, 200*time.Millisecond, 3*time.Second, 40*time.Second, forever), deaf: r.Float64() < 0.05,
	}
	if b.endFor == forever && r.Float64() < 0.5 {
		b.endFor = time.Second
	}
	if r.Float64() < 0.7 {
		b.labels["team"] = "agents"
	}
	if r.Float64() < 0.6 {
		b.labels["sbx/owner"] = schedule.Pick(r, "ann", "bob")
	}
	if r.Float64() < 0.12 {
		b.labels["sbx/keep"] = s.keepWord()
	}
	b.record = schedule.Pick(r, "living", "living", "living", "", "ended")
	idle := min(age, schedule.Pick(r, 0, 30*time.Second, 59*time.Second, 2*time.Minute, 8*time.Minute, time.Hour))
	b.worked = s.Began.Add(-idle)
	if r.Float64() < 0.15 {
		b.busyFrom = s.Began.Add(-time.Second)
	}
	if b.state == sandbox.StateFailed {
		b.ended = b.worked
	}
	return b
}

func (s *sim) keepWord() string {
	far := func(d time.Duration) string { return s.Began.Add(d).UTC().Format(time.RFC3339) }
	return schedule.Pick(s.rng, "true", "yes", "", far(time.Hour), far(24*time.Hour), far(-time.Hour))
}

// curse chooses the kinds of faults; most seeds have a few of them.
func (s *sim) curse() {
	r := s.rng
	kinds := []harmful{
		{harm: "5xx", op: "list", page: 2},
		{harm: "5xx", op: "list"},
		{harm: "hangs", op: "list"},
		{harm: "repeats its token", op: "list"},
		{harm: "hides paused", op: "list"},
		{harm: "is empty", op: "list", page: 1},
		{harm: "5xx", op: "get"},
		{harm: "hangs", op: "get"},
		{harm: "cannot be read", op: "get"},
		{harm: "5xx", op: "terminate"},
		{harm: "429", op: "terminate"},
		{harm: "hangs", op: "terminate"},
		{harm: "says yes, does nothing", op: "terminate"},
		{harm: "does it, then 5xx", op: "terminate"},
		{harm: "does it, then hangs", op: "terminate"},
		{harm: "5xx", op: "logs"},
		{harm: "hangs", op: "logs"},
		{harm: "5xx", op: "usage"},
		{harm: "hangs", op: "usage"},
		{harm: "5xx", op: "verify"},
		{harm: "5xx", op: "records"},
		{harm: "is empty", op: "records"},
		{harm: "breaks off", op: "records"},
		{harm: "429"},
		{harm: "hangs"},
	}
	for range r.IntN(6) {
		h := schedule.Pick(r, kinds...)
		h.profile, h.chance = schedule.Pick(r, s.clouds...).name, schedule.Pick(r, 0.05, 0.3, 1)
		h.until = 24 * time.Hour
		if r.Float64() < 0.5 {
			h.from = time.Duration(r.Int64N(int64(2 * time.Minute)))
			h.until = h.from + schedule.Pick(r, time.Second, 10*time.Second, 5*time.Minute)
		}
		s.harms = append(s.harms, h)
	}
}

// happening is an event at a time.
type happening struct {
	at   time.Duration
	what string
	do   func()
}

// fate chooses the events while sbx runs.
func (s *sim) fate() []happening {
	r := s.rng
	var all []happening
	add := func(what string, do func()) {
		all = append(all, happening{time.Duration(r.ExpFloat64() * float64(schedule.Pick(r, time.Second, 10*time.Second, 3*time.Minute))), what, do})
	}
	for range r.IntN(10) {
		c := schedule.Pick(r, s.clouds...)
		if len(c.order) == 0 {
			continue
		}
		id := schedule.Pick(r, c.order...).id
		s.befall(add, c, id, r.IntN(11))
	}
	if r.Float64() < 0.15 {
		by := schedule.Pick(r, 10*time.Minute, -10*time.Minute)
		add("this machine's clock jumps by "+by.String(), func() { s.clock.off += by })
	}
	if r.Float64() < 0.1 {
		add("the disk is full", func() { s.disk.full = true })
		all = append(all, happening{all[len(all)-1].at + schedule.Pick(r, time.Second, 10*time.Minute), "the disk has room again", func() { s.disk.full = false }})
	}
	slices.SortStableFunc(all, func(a, b happening) int { return int(a.at - b.at) })
	return all
}

// befall adds one event of a sandbox.
func (s *sim) befall(add func(string, func()), c *cloud, id string, kind int) {
	name := c.name + "/" + id + " "
	b := func() *box { return c.find(id) }
	switch kind {
	case 0, 1:
		word := s.keepWord()
		add(name+"gets sbx/keep="+word, func() { b().mark("sbx/keep", word) })
	case 2:
		add(name+"gets another owner", func() { b().mark("sbx/owner", "eve") })
	case 3:
		add(name+"is no longer yours", func() { delete(b().labels, "team"); delete(b().labels, "sbx/owner") })
	case 4, 5:
		add(name+"begins to work", func() { b().busyFrom = time.Now() })
	case 6:
		young := s.makeBox(id)
		add(name+"ends, and a younger one gets its id", func() {
			if old := b(); !old.over(time.Now()) {
				old.ended = time.Now()
			}
			young.created, young.worked, young.busyFrom = time.Now(), time.Now(), time.Now()
			young.ended = time.Time{}
			if young.state == sandbox.StateFailed {
				young.state = sandbox.StateRunning
			}
			young.gen = b().gen + 1
			c.add(young)
		})
	case 7:
		add(name+"is paused", func() { s.become(b(), sandbox.StatePaused) })
	case 8:
		add(name+"ends by itself", func() {
			if !b().over(time.Now()) {
				b().ended = time.Now()
			}
		})
	case 9:
		add(name+"loses its creation time", func() { b().says = "nothing" })
	case 10:
		add(name+"has labels that cannot be read", func() { b().labels = nil })
	}
}

// become changes the state of a living sandbox.
func (s *sim) become(b *box, state sandbox.State) {
	if !b.over(time.Now()) && b.asked.IsZero() {
		b.state = state
	}
}

// unfold performs the events until ctx ends.
func (s *sim) unfold(ctx context.Context, all []happening) {
	for _, h := range all {
		if !schedule.Sleep(ctx, h.at-time.Since(s.Began)) {
			return
		}
		s.mu.Lock()
		s.Logf("* %s", h.what)
		h.do()
		s.mu.Unlock()
	}
}
