package faults_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/schedule"
	"sbx/internal/testkit/wiretest"
)

// TestNoLieCondemns plays worlds of sandboxes that work and of sandboxes that are stuck, in which one source lies about
// them, and cleans up by the stuck rule: none that works is ended, and what is stuck is found once the lying has stopped.
//
//	SBX_SEEDS=20000 go test -count=1 -timeout 60m -run '^TestNoLieCondemns$' ./internal/faults
func TestNoLieCondemns(t *testing.T) {
	t.Parallel()
	seeds, err := schedule.ReadSeeds(os.Getenv, rand.Uint64, nil, liesSeeds)
	require.NoError(t, err)
	for _, name := range []string{"e2b", "novita", "monotask"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds.All() {
				t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { playCondemning(t, clouds()[name], seed) })
				})
			}
		})
	}
}

func playCondemning(t *testing.T, on func(wiretest.T) *cloud, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 47))
	w := newWorld(t, on(t))
	w.settleWork()
	l := newLie(r, w.c, w.ids())
	if r.IntN(3) == 0 {
		l = newFigureLie(r, w.c)
	}
	w.trace = append(w.trace, l.String())
	w.c.server.Break(l.faults...)
	for range 1 + r.IntN(2) {
		before := w.living()
		w.do(t.Context(), w.cleanupStuck())
		w.checkWorkers(t, before)
		time.Sleep(time.Minute) // in virtual time
	}
	w.c.server.Heal()
	w.trace = append(w.trace, "the lying stops")
	for range 2 {
		before := w.living()
		w.do(t.Context(), w.cleanupStuck())
		w.checkWorkers(t, before)
		time.Sleep(time.Minute)
	}
	for id := range w.stuck {
		assert.False(t, w.c.runs(id), "%s is stuck, and was not found in two looks%s", id, w.story())
	}
}

// settleWork makes one of the old sandboxes stuck; all others work.
func (w *world) settleWork() {
	w.stuck = map[string]bool{w.old[0]: true}
	for _, id := range append(w.ids(), w.c.id, w.c.other) {
		w.c.works(id, !w.stuck[id])
	}
}

// newFigureLie is a lie about how much a sandbox does: figures that cannot be read, or are those of a minute ago.
func newFigureLie(r *rand.Rand, c *cloud) lie {
	l := lie{from: sourceInside, name: "figures unread", times: []int{0, 1, 3}[r.IntN(3)]}
	one := wiretest.Fault{Edit: unreadFigures, Times: l.times}
	switch r.IntN(3) {
	case 0:
		l.name, one = "figures of before", wiretest.Fault{Edit: shiftStamps(-5 * time.Minute), Times: l.times}
	case 1:
		l.name, one = "figures missing", wiretest.Fault{Status: 200, Body: `{}`, Times: l.times}
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
