package cleanup_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/schedule"
)

// sim is one simulated world: the true state, the processes that act on it, and the rules
// they broke. Everything follows from the seed.
type sim struct {
	schedule.Trace

	mut mutation
	rng *rand.Rand // for making the scene; concurrent code uses Roll

	mu      sync.Mutex
	clouds  []*cloud
	disk    *disk
	latch   latch
	clock   machineClock
	harms   []harmful
	protect map[sandbox.Ref]bool // by configuration
	procs   []*incarnation       // including those that have ended
	runs    map[string]*runTruth
	store   *store.InMemory
	suspect map[string][]time.Time // when a complete listing showed a sandbox without a record
}

// machineClock is the offset of this machine's clock.
type machineClock struct{ off time.Duration }

// harmful is one kind of fault.
type harmful struct {
	harm, op, profile string
	page              int // of a listing; 0 = any
	from, until       time.Duration
	chance            float64
}

func newSim(seed uint64, mut mutation) *sim {
	return &sim{
		Trace: schedule.Trace{Seed: seed, Began: time.Now()}, mut: mut, rng: rand.New(rand.NewPCG(seed, 0x5b)),
		disk: &disk{files: map[string]*simFile{}}, protect: map[sandbox.Ref]bool{}, runs: map[string]*runTruth{}, suspect: map[string][]time.Time{},
	}
}

// harm chooses the fault of a request. The lock is held.
func (s *sim) harm(op, profile, id string, page int, key string) string {
	at := time.Since(s.Began)
	for i, h := range s.harms {
		if h.op != op && h.op != "" || h.profile != profile || h.page != 0 && h.page != page || at < h.from || at >= h.until {
			continue
		}
		if s.Roll("harm", i, key, id) < h.chance {
			return h.harm
		}
	}
	return ""
}

// step is one moment at which a process may be killed; false = it is dead. The lock is
// held.
func (s *sim) step(inc *incarnation, what string) bool {
	if inc.dead {
		return false
	}
	if inc.fuse > 0 {
		if inc.fuse--; inc.fuse == 0 {
			s.crash(inc, what)
		}
	}
	return !inc.dead
}

// crash ends a process, or all of them in a power failure, at once. The lock is held.
func (s *sim) crash(inc *incarnation, what string) {
	victims := []*incarnation{inc}
	if inc.power {
		victims = slices.Clone(s.procs)
	}
	for _, v := range victims {
		if v.dead || v.done {
			continue
		}
		s.Logf("%s is killed at: %s", v, what)
		v.dead, v.acting = true, false
		s.disk.lose(s, v)
		if s.latch.holder == v {
			s.latch.holder = nil
		}
		v.kill(errDead)
	}
}

func (s *sim) dead(inc *incarnation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return inc.dead
}

func (s *sim) cloud(name string) *cloud {
	i := slices.IndexFunc(s.clouds, func(c *cloud) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.clouds[i]
}

// wall is this machine's time. The lock is held.
func (s *sim) wall() time.Time { return time.Now().Add(s.clock.off) }

// incarnation is one process from its start to its end.
type incarnation struct {
	s    *sim
	n    int
	name string
	verb string
	ctx  context.Context //nolint:containedctx // it is the life of the process
	kill context.CancelCauseFunc

	fuse   int  // steps until it is killed; 0 = never
	power  bool // a power failure, not only of the process
	dead   bool
	done   bool
	acting bool // it holds the lock

	run   string // the run on which it works
	calls map[string]int
	skews map[string]time.Duration

	listings    map[string]*listing
	records     map[string]*recordsRead // of reconcile
	sights      map[sandbox.Ref]sight   // the true state at the last read
	denied      map[sandbox.Ref]bool    // the last read by id found none: a list that has it is the next read
	heard       map[sandbox.Ref]sight   // the true state when its output was read
	tried       map[sandbox.Ref]bool    // its output was asked for
	requested   map[sandbox.Ref]time.Time
	readAfter   map[sandbox.Ref]time.Time
	first       map[sandbox.Ref]sandbox.Sandbox // as a listing had it
	unavailable map[string]int
}

// listing is the true content of one listing.
type listing struct {
	complete bool
	gens     map[string]int
	fleet    []sandbox.Sandbox
	skew     time.Duration
}

func (inc *incarnation) String() string { return fmt.Sprintf("%s#%d(%s)", inc.name, inc.n, inc.verb) }

// boot starts a process.
func (s *sim) boot(name, verb string, crashes bool) *incarnation {
	s.mu.Lock()
	defer s.mu.Unlock()
	inc := &incarnation{
		s: s, n: len(s.procs) + 1, name: name, verb: verb,
		calls: map[string]int{}, skews: map[string]time.Duration{}, listings: map[string]*listing{}, records: map[string]*recordsRead{},
		sights: map[sandbox.Ref]sight{}, denied: map[sandbox.Ref]bool{}, heard: map[sandbox.Ref]sight{}, tried: map[sandbox.Ref]bool{},
		requested: map[sandbox.Ref]time.Time{}, readAfter: map[sandbox.Ref]time.Time{},
		first: map[sandbox.Ref]sandbox.Sandbox{}, unavailable: map[string]int{},
	}
	inc.ctx, inc.kill = context.WithCancelCause(context.Background())
	if crashes {
		inc.fuse = 1 + int(s.Roll("fuse", inc.n)*s.Roll("fuse too", inc.n)*400)
		inc.power = s.Roll("power", inc.n) < 0.3
	}
	s.procs = append(s.procs, inc)
	s.Logf("%s starts", inc)
	return inc
}

// now is the clock of this process.
func (inc *incarnation) now() time.Time {
	inc.s.mu.Lock()
	defer inc.s.mu.Unlock()
	return inc.s.wall()
}
