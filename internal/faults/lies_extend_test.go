package faults_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/schedule"
	"sbx/internal/testkit/wiretest"
)

// extendSeeds is how many worlds of each provider a test run plays; SBX_SEEDS asks for more.
const extendSeeds = 40

// TestNoLieShortens plays worlds in which the record, the answer to the request or the clock lies, and extends a sandbox
// in them: whatever is said, it never ends sooner, nothing but its end is changed, a request that may have had an effect is not sent
// again, and what is said to be verified is true.
//
//	SBX_SEED=SEED go test -count=1 -v -run '^TestNoLieShortens/PROVIDER$' ./internal/faults
func TestNoLieShortens(t *testing.T) {
	t.Parallel()
	for name, on := range clouds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schedule.Worlds(t, nil, extendSeeds, 1, func(t *testing.T, seed uint64) { t.Helper(); playExtension(t, on, seed) })
		})
	}
}

func playExtension(t *testing.T, on func(wiretest.T) *cloud, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 48))
	w := newWorld(t, on(t))
	if w.c.extend == "" {
		t.Skip("it cannot extend")
	}
	id := w.c.ends()
	truth := func() sandbox.Sandbox {
		s, err := open(w.t, w.c.kind, w.c.settings, w.c.server).Get(t.Context(), id)
		require.NoError(t, err, w.story())
		return s
	}
	before := truth()
	l := extensionLie(r, w.c, id)
	w.trace = append(w.trace, l.String())
	w.c.server.Break(l.faults...)
	w.c.keeps(l.ignored)
	said := w.extend(t, id, []time.Duration{20 * time.Minute, 45 * time.Minute, 3 * time.Hour}[r.IntN(3)])
	w.c.server.Heal()
	w.c.keeps(false)
	after := truth()
	assert.False(t, after.ExpiresAt.Before(before.ExpiresAt), "it ends sooner: %s, and before %s%s", after.ExpiresAt, before.ExpiresAt, w.story())
	assert.Equal(t, []any{before.State, before.StartedAt}, []any{after.State, after.StartedAt}, w.story())
	assert.LessOrEqual(t, len(w.c.server.Calls(w.c.extend)), sent(l), w.story())
	switch {
	case said.Outcome != sandbox.OutcomeVerified:
		require.Error(t, said.Err, w.story())
	case l.from != sourceClock: // by whose time it is said
		require.NoError(t, said.Err, w.story())
		assert.False(t, after.ExpiresAt.Before(said.Asked.Add(-5*time.Second)), "it ends at %s, and not at %s%s", after.ExpiresAt, said.Asked, w.story())
	}
}

// sent is how often a request may be sent: a conflict of Kubernetes has no effect, and is tried again.
func sent(l lie) int {
	if strings.Contains(l.name, "status 409") {
		return 3
	}
	return 1
}

// extensionLie draws a lie of those who have a say in an extension. Where every body has other times and the clock is
// right, an end is what the API says: no other source has it.
func extensionLie(r *rand.Rand, c *cloud, id string) lie {
	for {
		l := newLie(r, c, []string{id})
		if !slices.Contains([]source{sourceRecord, sourceAnswer, sourceClock}, l.from) || l.forgets || strings.HasPrefix(l.name, "body") || l.name == "naive" {
			continue
		}
		if l.from == sourceAnswer {
			l.faults = l.faults[:1]
			l.faults[0].Route = c.extend
		}
		return l
	}
}

// collector is an observer that keeps the result of one extension.
type collector struct {
	noObserver

	said *end.ExtendResult
}

// Item is ops.Observer.
func (c collector) Item(item any) {
	if r, is := item.(end.ExtendResult); is {
		*c.said = r
	}
}

func (w *world) extend(t *testing.T, id string, ttl time.Duration) end.ExtendResult {
	t.Helper()
	var said end.ExtendResult
	word := "prod/" + id
	plan, err := end.PlanExtend(t.Context(), w.process(), end.ExtendRequest{Words: []string{word}, Typed: []string{word}, TTL: ttl, Unattended: true})
	if err != nil {
		said.Err = err
		return said
	}
	allowed, err := plan.Permit(t.Context(), ops.Nobody)
	if err == nil {
		err = plan.Do(t.Context(), collector{said: &said}, allowed).Refused
	}
	if err != nil {
		said.Err = err
	}
	if said.Outcome == "" && said.Err == nil {
		said.Err = firstError(append(slices.Clone(plan.Errors), plan.Verdict)...)
	}
	w.trace = append(w.trace, "extend "+id+" by "+ttl.String()+": "+string(said.Outcome)+" "+said.Reason)
	return said
}
