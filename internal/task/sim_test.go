package task_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/testkit/schedule"
)

// sim is one simulated world: the true state, the processes that work on it, and the rules
// they broke. Everything follows from the seed, except the order of simultaneous events.
type sim struct {
	schedule.Trace

	rng    *rand.Rand // for making the scene; concurrent code uses Roll
	mem    *store.InMemory
	jump   atomic.Int64 // offset of the store's clock, in nanoseconds
	jumps  bool         // the store's clock is or will be off
	extras bool         // faults that the first seeds did not have: freezes anywhere, slow pushes, reused PIDs
	quiet  bool         // no faults: ends must be fast
	lie    lie          // what one source says that is not so
	leaves bool         // a sandbox that has ended leaves a record, until it is deleted

	mu       sync.Mutex
	boxes    []*box
	saved    map[string]string // the host of the last collected work, by task
	fences   map[string]string // on the remote, by task: "published" or "stopped"
	branches map[string]string // on the remote, by task: "made", "removed" or "forbidden"
	procs    []*proc           // including those that have ended
	tasks    map[string]*truth
	order    []*truth
	harms    []harmful
	copies   bool           // each create makes two
	late     sync.WaitGroup // effects of requests whose sender has ended

	turns *turns // schedules the calls; nil = calls take random time

	scripts map[string][]program // what runs, where a test defines it: by task and attempt
	tune    func(*proc, *task.Options)
	uses    func(*box) sandbox.Usage
	unheard func(*box) bool // the sandbox does not answer; nil = it does
	execs   func(providers.Command) (sandbox.Exit, error)
	probes  func() (providers.Health, error)
	pauses  func() bool // a circuit breaker is open for requests to end; nil = it is not

	requested []*sandbox.EndRequest // the earlier request that each ending was given
}

// harmful is one kind of fault.
type harmful struct {
	place, op, harm string
	from, until     time.Duration
	chance          float64
}

func newSim(seed uint64) *sim {
	s := &sim{Trace: schedule.Trace{Seed: seed, Began: time.Now()}, rng: rand.New(rand.NewPCG(seed, 0x7a5c)), fences: map[string]string{}, branches: map[string]string{}, saved: map[string]string{}, tasks: map[string]*truth{}}
	s.mem = store.Memory(func() time.Time { return time.Now().Add(time.Duration(s.jump.Load())) })
	return s
}

// proc is one process from its start to its end.
type proc struct {
	s    *sim
	n    int
	verb string
	host string
	task string
	ctx  context.Context //nolint:containedctx // it is the life of the process
	kill context.CancelCauseFunc

	from   task.Owner // that started it
	pid    int        // an earlier process may have had it
	fuse   int        // gates until it is killed; 0 = never
	ice    int        // gates until it is frozen; 0 = never
	doom   string     // the named point where it is killed or frozen
	deadly bool       // it is killed there; otherwise frozen
	stiff  time.Duration
	thaw   chan struct{} // closed when it continues; nil = it runs
	froze  time.Time     // when it was frozen last
	dead   bool
	done   bool
	calls  map[string]int
	open   int // attempts that a breaker admitted and has no result of
}

var errDead = errors.New("this process is dead")

func (p *proc) String() string { return fmt.Sprintf("%s#%d@%s(%s)", p.verb, p.n, p.host, p.task) }

func (p *proc) owner() task.Owner {
	return task.Owner{Host: p.host, PID: p.pid, Birth: strconv.Itoa(p.n), Who: p.String()}
}

// is reports whether an owner is this process.
func (p *proc) is(o task.Owner) bool { return o == p.owner() }

// boot starts a process.
func (s *sim) boot(verb, host, id string) *proc {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.procs) + 1
	p := &proc{s: s, n: n, pid: s.pid(n, host), verb: verb, host: host, task: id, calls: map[string]int{}}
	p.ctx, p.kill = context.WithCancelCause(context.Background())
	s.procs = append(s.procs, p)
	s.Logf("%s starts", p)
	return p
}

// pid is a PID, which an ended process of the same host may have had. The lock is held.
func (s *sim) pid(n int, host string) int {
	for _, other := range s.procs {
		if s.extras && other.host == host && (other.dead || other.done) && s.Roll("pid again", n, other.n) < 0.3 {
			return other.pid
		}
	}
	return n
}

// die ends a process at once. The lock is held.
func (p *proc) die(at string) {
	if p.dead || p.done {
		return
	}
	p.s.Logf("%s is killed at: %s", p, at)
	p.dead = true
	p.kill(errDead)
	if p.thaw != nil {
		close(p.thaw)
		p.thaw = nil
	}
}

// freeze stops a process for a while. The lock is held.
func (p *proc) freeze(d time.Duration, at string) {
	if p.dead || p.done || p.thaw != nil {
		return
	}
	p.s.Logf("%s is frozen for %s at: %s", p, d.Round(time.Millisecond), at)
	thaw := make(chan struct{})
	p.thaw, p.froze = thaw, time.Now()
	p.s.late.Go(func() {
		schedule.Sleep(p.ctx, d)
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		if p.thaw == thaw {
			p.thaw = nil
			close(thaw)
			p.s.Logf("%s goes on", p)
		}
	})
}

// rest lets time pass.
func (s *sim) rest(d time.Duration) { schedule.Sleep(context.Background(), d) }

// gate is a moment at which a process may be killed, and where a frozen one waits.
func (p *proc) gate(what string) error {
	s := p.s
	s.mu.Lock()
	if p.fuse > 0 && !p.dead {
		if p.fuse--; p.fuse == 0 {
			p.die(what)
		}
	}
	if p.ice > 0 {
		if p.ice--; p.ice == 0 {
			p.freeze(p.stiff, what)
		}
	}
	s.mu.Unlock()
	for {
		s.mu.Lock()
		dead, thaw := p.dead, p.thaw
		s.mu.Unlock()
		switch {
		case dead:
			return errDead
		case thaw == nil:
			return nil
		}
		<-thaw
	}
}

// at is Options.CrashPoint.
func (p *proc) at(point string) {
	p.s.mu.Lock()
	if p.doom == point {
		p.doom = ""
		if p.deadly {
			p.die(point)
		} else {
			p.freeze(p.stiff, point)
		}
	}
	p.s.mu.Unlock()
	_ = p.gate(point)
}

// harm chooses the fault of a request. The lock is held.
func (s *sim) harm(place, op, key string) string {
	at := time.Since(s.Began)
	for i, h := range s.harms {
		if h.place == place && (h.op == op || h.op == "") && at >= h.from && at < h.until && s.Roll("harm", i, key) < h.chance {
			return h.harm
		}
	}
	return ""
}

// clientLimit is how long a client waits for an answer.
const clientLimit = 20 * time.Second

// call carries one request to a place and its answer back. effect happens at most
// once, with the lock held, when the request arrives.
func (p *proc) call(ctx context.Context, place, op string, effect func()) error {
	if err := p.gate(op); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s := p.s
	if s.turns != nil {
		return s.turns.call(ctx, p, place, op, effect)
	}
	s.mu.Lock()
	p.calls[op]++
	key := fmt.Sprint(p.n, op, p.calls[op])
	harm := s.harm(place, op, key)
	if harm != "" {
		s.Logf("%s: %s %s: %s", p, place, op, harm)
	}
	s.mu.Unlock()
	took := time.Duration(float64(latency(place))*s.Roll("takes", key)) + time.Microsecond
	arrives := s.Roll("arrives", key) < 0.5
	switch harm {
	case "away":
		schedule.Sleep(ctx, took)
		return away(place)
	case "refused":
		return fault.New(fault.KindAuth, "403")
	case "breaker":
		return fault.New(fault.KindRefused, "%w", policy.ErrOpen)
	case "slow":
		took += time.Duration(s.Roll("slow", key) * float64(8*time.Second))
	case "crawls": // longer than a sweep may take
		took += 4*time.Second + time.Duration(s.Roll("crawls", key)*float64(40*time.Second))
	case "hangs":
		if arrives {
			s.afterwards(time.Duration(s.Roll("late", key)*float64(5*time.Second)), effect)
		}
		if !schedule.Sleep(ctx, clientLimit) {
			return ctx.Err()
		}
		return away(place)
	}
	if !schedule.Sleep(ctx, took) {
		if arrives {
			s.afterwards(time.Microsecond, effect)
		}
		return ctx.Err()
	}
	if harm == "lost" {
		return away(place)
	}
	s.mu.Lock()
	gone := p.dead && !arrives
	if !gone {
		effect()
	}
	s.mu.Unlock()
	if harm == "answers late" {
		took = 10 * time.Second
	}
	if !schedule.Sleep(ctx, took) {
		return ctx.Err()
	}
	if err := p.gate("answer to " + op); err != nil {
		return err
	}
	if harm == "unanswered" {
		return away(place)
	}
	return nil
}

// ask is call, with an answer. A request may take effect after its sender has given up: nobody reads its answer then.
func ask[T any](ctx context.Context, p *proc, place, op string, effect func() (T, error)) (T, error) {
	var none, answer T
	var err error
	if failed := p.call(ctx, place, op, func() { answer, err = effect() }); failed != nil {
		return none, failed
	}
	return answer, err
}

// afterwards performs an effect whose sender waits no more.
func (s *sim) afterwards(d time.Duration, effect func()) {
	s.late.Go(func() {
		schedule.Sleep(context.Background(), d)
		s.mu.Lock()
		defer s.mu.Unlock()
		effect()
	})
}

func away(place string) error {
	return fault.New(fault.KindUnavailable, "the %s does not answer", place)
}

func latency(place string) time.Duration {
	if place == "store" {
		return 2 * time.Millisecond
	}
	return 150 * time.Millisecond
}

// alive is Options.Alive: a host knows its own processes.
func (p *proc) alive(o task.Owner) sandbox.Verdict {
	if o.Host != p.host {
		return sandbox.Unknown
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, other := range p.s.procs {
		if other.is(o) && !other.dead && !other.done {
			return sandbox.True
		}
	}
	return sandbox.False
}
