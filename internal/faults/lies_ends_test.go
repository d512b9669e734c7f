package faults_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/schedule"
	"sbx/internal/testkit/wiretest"
)

// liesSeeds is how many worlds of each provider a test run plays; SBX_SEEDS asks for more.
const liesSeeds = 100

// TestNoLieIsBelieved plays worlds in which one source lies, and acts on them: whatever it says, nothing ends that was
// not to end, and nothing that runs is said to have ended.
//
//	SBX_SEEDS=20000 go test -count=1 -timeout 60m -run '^TestNoLieIsBelieved$' ./internal/faults
//	SBX_SEED=SEED go test -count=1 -v -run '^TestNoLieIsBelieved/PROVIDER$' ./internal/faults
func TestNoLieIsBelieved(t *testing.T) {
	t.Parallel()
	for name, on := range clouds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schedule.Worlds(t, nil, liesSeeds, 1, func(t *testing.T, seed uint64) { t.Helper(); playLie(t, on, seed) })
		})
	}
}

// playLie plays one world.
func playLie(t *testing.T, on func(wiretest.T) *cloud, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 46))
	w := newWorld(t, on(t))
	l := newLie(r, w.c, w.ids())
	w.lie, w.trace = l, append(w.trace, l.String())
	w.c.server.Break(l.faults...)
	w.c.ignoresEnds(l.ignored)
	if l.forgets {
		w.c.nodeFails(true)
	}
	if r.IntN(2) == 0 {
		w.trace = append(w.trace, "an end takes a moment")
		w.c.slow()
	}
	w.aged = l.ages
	for range 1 + r.IntN(3) {
		w.checkAct(t, w.randomAct(r))
	}
	w.c.server.Heal()
	w.c.ignoresEnds(false)
	if l.forgets {
		w.c.nodeFails(false)
	}
	w.lie, w.trace = lie{}, append(w.trace, "the lying stops")
	time.Sleep(time.Second) // in virtual time: ends that were under way are over
	w.checkMended(t, l)
	time.Sleep(time.Minute) // in virtual time: what the fake ends has ended
	if schedule.Replays() {
		t.Log(w.story())
	}
}

// checkAct acts, and holds what the program did and said against the truth.
func (w *world) checkAct(t *testing.T, a act) claim {
	t.Helper()
	before := w.living()
	said := w.do(t.Context(), a)
	for id := range before {
		if w.c.runs(id) || w.named[id] {
			continue
		}
		assert.True(t, w.mayEnd(id), "it was not to end: %s%s", id, w.story())
	}
	for _, e := range said.endings {
		if e.Outcome == sandbox.OutcomeVerified || e.Outcome == sandbox.OutcomeAlreadyGone {
			assert.False(t, w.c.runs(e.Ref.ID), "%s is said to be %s, and runs%s", e.Ref.ID, e.Outcome, w.story())
		}
	}
	if said.ended != "" {
		assert.False(t, w.c.runs(said.ended), "%s is said to have ended, and runs%s", said.ended, w.story())
	}
	for _, id := range a.selects {
		if !w.c.runs(id) || w.dying[id] || w.requests.has(id) { // of those an earlier act has said that they are not proved to have ended
			continue
		}
		told := slices.ContainsFunc(said.endings, func(e sandbox.Ending) bool { return e.Ref.ID == id })
		assert.False(t, said.verdict == nil && !told && !w.lie.hides(), "%s was to end, runs on, and is not said to: exit 0%s", id, w.story())
		assert.False(t, w.lie.spares(id), "%s runs on for a lie about %s%s", id, w.lie.about, w.story())
	}
	w.checkRecords(t)
	return said
}

// checkRecords holds the store's records against the truth: what runs is not recorded as ended.
func (w *world) checkRecords(t *testing.T) {
	t.Helper()
	records, err := w.store.Records(t.Context(), "prod")
	require.NoError(t, err)
	for _, r := range records {
		assert.False(t, w.c.runs(r.ID) && !r.EndedAt.IsZero(), "%s is recorded as ended, and runs%s", r.ID, w.story())
	}
}

// checkMended acts once more after the lying has stopped: what the rule selects ends, and is known to have ended.
func (w *world) checkMended(t *testing.T, l lie) {
	t.Helper()
	unknowable := func(id string) bool { return w.requests.has(id) || l.forgets && w.named[id] } // the API has forgotten it
	for range 2 {
		said := w.checkAct(t, w.cleanup(false))
		for _, id := range w.old {
			if !w.c.runs(id) || unknowable(id) {
				continue
			}
			said := slices.ContainsFunc(said.endings, func(e sandbox.Ending) bool { return e.Ref.ID == id })
			assert.True(t, said, "%s runs on, and the program does not say so%s", id, w.story())
		}
	}
	for _, id := range w.old {
		if w.c.runs(id) && !unknowable(id) {
			assert.Fail(t, "it runs on", "%s: two cleanups after the lying has stopped%s", id, w.story())
		}
	}
}

func (w *world) living() map[string]bool {
	all := map[string]bool{}
	for _, id := range w.ids() {
		if w.c.runs(id) {
			all[id] = true
		}
	}
	return all
}
