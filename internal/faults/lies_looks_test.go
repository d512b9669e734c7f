package faults_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/schedule"
	"sbx/internal/testkit/wiretest"
	"sbx/internal/triage"
)

// TestNoLieCondemns plays worlds of sandboxes that work and of sandboxes that are stuck, in which one source lies about
// them, and cleans up by the stuck rule, reconciles or runs the page of stuck sandboxes: none that works is ended, and what is stuck is found once the lying has stopped.
//
//	SBX_SEEDS=20000 go test -count=1 -timeout 60m -run '^TestNoLieCondemns$' ./internal/faults
func TestNoLieCondemns(t *testing.T) {
	t.Parallel()
	known := []uint64{
		756, 6002704361623489, // a record by id said paused twice, and reconcile ended what works
		6569390128435705, // a 404 about another pod was read as "no metrics server", and reconcile ended what works
	}
	for name, on := range clouds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			every := 1
			if name == "vercel" {
				every = vercelEvery
			}
			schedule.Worlds(t, known, liesSeeds, every, func(t *testing.T, seed uint64) { t.Helper(); playCondemning(t, on, seed) })
		})
	}
}

// TestA404OfTheRecordAloneCondemnsNone: the list shows what the record denies, and where figures and output begin with a
// read of the record, their 404 is the same answer.
func TestA404OfTheRecordAloneCondemnsNone(t *testing.T) {
	t.Parallel()
	for name, on := range clouds() {
		bubble.Run(t, name, func(t *testing.T) {
			w := newWorld(t, on(t))
			w.settleWork()
			w.c.server.Break(wiretest.Fault{Route: w.c.get, Status: http.StatusNotFound, Body: `{"code":404,"message":"no","statusCode":404}`})
			w.cleanUpStuck(t, 2)
		})
	}
}

// vercelEvery is how many worlds of the others are played for one of Vercel: its looks run real
// processes, for about two seconds of processor time a world.
const vercelEvery = 100

func playCondemning(t *testing.T, on func(wiretest.T) *cloud, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 47))
	w := newWorld(t, on(t))
	w.history = &keptSamples{all: map[string][]sandbox.Usage{}}
	w.settleWork()
	l := newLie(r, w.c, w.ids())
	if r.IntN(3) == 0 {
		l = newFigureLie(r, w.c, w.old)
	}
	w.trace = append(w.trace, l.String())
	w.c.server.Break(l.faults...)
	for range 1 + r.IntN(2) {
		w.holdWorkers(t, []act{w.cleanupStuck(), w.cleanupStuck(), w.reconcile(), w.runbook()}[r.IntN(4)])
	}
	w.c.server.Heal()
	w.trace = append(w.trace, "the lying stops")
	w.cleanUpStuck(t, 2)
	for id := range w.stuck {
		assert.False(t, w.c.runs(id), "%s is stuck, and was not found in two looks%s", id, w.story())
	}
}

// cleanUpStuck cleans up some times, a minute apart, and holds each against what works.
func (w *world) cleanUpStuck(t *testing.T, times int) {
	t.Helper()
	for range times {
		w.holdWorkers(t, w.cleanupStuck())
	}
}

// holdWorkers acts, holds what has ended against what works, and lets a minute pass.
func (w *world) holdWorkers(t *testing.T, a act) {
	t.Helper()
	before := w.living()
	w.do(t.Context(), a)
	w.checkWorkers(t, before)
	time.Sleep(time.Minute) // in virtual time
}

// settleWork makes one of the old sandboxes stuck; all others work.
func (w *world) settleWork() {
	w.stuck = map[string]bool{w.old[0]: true}
	for _, id := range append(w.ids(), w.c.id, w.c.other) {
		w.c.works(id, !w.stuck[id])
	}
}

// newFigureLie is a lie about how much a sandbox does: figures that cannot be read, are those of a minute ago, or are
// another's. Where they do not name their sandbox, nothing else could know the last one.
func newFigureLie(r *rand.Rand, c *cloud, old []string) lie {
	l := lie{from: sourceInside, name: "figures unread", times: []int{0, 1, 3}[r.IntN(3)]}
	one := wiretest.Fault{Edit: unreadFigures, Times: l.times}
	switch r.IntN(3 + count(c.whose)) {
	case 0:
		l.name, one = "figures of before", wiretest.Fault{Edit: shiftStamps(-5 * time.Minute), Times: l.times}
	case 1:
		l.name, one = "figures missing", wiretest.Fault{Status: 200, Body: `{}`, Times: l.times}
	case 3:
		l.name, l.about = "figures of "+old[0], old[1+r.IntN(2)]
		one = wiretest.Fault{Contains: c.shownAs(l.about), Other: c.shownAs(old[0]), Times: l.times}
	}
	one.Route = c.inside["usage"]
	l.faults = append(l.faults, one)
	return l
}

// checkWorkers holds what has ended against what works.
func (w *world) checkWorkers(t *testing.T, before map[string]bool) {
	t.Helper()
	for id := range before {
		if !w.c.runs(id) {
			assert.True(t, w.stuck[id], "it works, and was ended: %s%s", id, w.story())
		}
	}
}

// keptSamples is fleet.History of the figures of earlier looks, which all processes share.
type keptSamples struct {
	mu  sync.Mutex
	all map[string][]sandbox.Usage
}

func (k *keptSamples) OfSandbox(_ context.Context, s sandbox.Sandbox) fleet.SandboxHistory {
	k.mu.Lock()
	defer k.mu.Unlock()
	return fleet.SandboxHistory{Samples: slices.Clone(k.all[s.ID])}
}

func (*keptSamples) OfProfile(context.Context, string) triage.FleetSignals {
	return triage.FleetSignals{}
}

func (*keptSamples) EndingSince(context.Context, sandbox.Ref) time.Time { return time.Time{} }

func (*keptSamples) ListingSeen(string, map[sandbox.State]int64, []sandbox.Sandbox, []string) {}

func (k *keptSamples) SandboxSeen(o fleet.Observation) {
	if n := len(o.Usage.Got); o.Usage.Err == nil && n > 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.all[o.Sandbox.ID] = append(k.all[o.Sandbox.ID], o.Usage.Got[n-1])
	}
}
