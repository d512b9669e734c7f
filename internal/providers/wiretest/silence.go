package wiretest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

// Silent is one provider before a fake that takes connections and requests and
// never answers them: a frozen process, a full queue, a black hole behind a proxy.
type Silent struct {
	Server *Server
	P      providers.Provider
	ID     string   // a running sandbox in which sbx has started a program
	Inside []string // the routes into a sandbox; nil = there are none
}

const (
	// ownLimit is the limit that a caller sets, and overrun is by how much a verb may
	// outlive it: for what it does for a caller who is gone.
	ownLimit = 3 * time.Second
	overrun  = time.Second
	// mostAsked bounds the requests of one verb that gets no answer. One that asks
	// again because it got none, without end, is found by it.
	mostAsked = 24
)

// silentFrom is from where on nothing is answered.
type silentFrom struct {
	name   string
	inside bool // the routes into the sandbox alone
	after  int  // requests that are still answered
}

// RunSilence takes every verb of a provider through a server that accepts and does
// not answer, at each of its first requests, in virtual time: no verb outlives the
// limit of its caller by more than a second, nor goes on asking for ever where the
// caller has set none.
func RunSilence(t *testing.T, open func(t T) Silent) {
	t.Helper()
	for _, from := range []silentFrom{{"everything", false, 0}, {"inside", true, 0}, {"from the second request on", false, 1}, {"from the third request on", false, 2}} {
		for _, verb := range Verbs() {
			t.Run(verb.Name+", "+from.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { JudgeSilence(t.Context(), t, verb, from.inside, from.after, open(t)) })
			})
		}
	}
}

// JudgeSilence takes one verb through the silence: with a limit of its caller, and
// without.
func JudgeSilence(ctx context.Context, t T, verb Verb, inside bool, after int, s Silent) {
	t.Helper()
	if inside && s.Inside == nil {
		return
	}
	s.silence(inside, after)
	for _, limit := range []time.Duration{ownLimit, 0} {
		began, before := time.Now(), len(s.Server.Calls(""))
		err := s.limited(ctx, limit, verb)
		if fault.KindOf(err) == fault.KindUnsupported {
			return
		}
		took, asked := time.Since(began), len(s.Server.Calls(""))-before
		switch {
		case limit > 0:
			assert.LessOrEqual(t, took, limit+overrun, "%s outlives its limit of %s: %v", verb.Name, limit, err)
		default:
			assert.Less(t, took, longest, "%s waits for ever: %v", verb.Name, err)
		}
		assert.LessOrEqual(t, asked, mostAsked, "%s asks again and again: %v", verb.Name, err)
		if !inside && after == 0 {
			assert.Error(t, err, "%s has heard nothing, and says that all is well", verb.Name) //nolint:testifylint // the rest is judged all the same
		}
		s.Server.Heal()
		s.silence(inside, after)
	}
	s.Server.Heal()
	if c, ok := s.P.(interface{ Close() }); ok {
		c.Close()
	}
}

// limited runs a verb; without a limit, longest bounds it all the same, so that one
// that waits for ever is told from one that does not.
func (s Silent) limited(ctx context.Context, limit time.Duration, verb Verb) error {
	if limit == 0 {
		limit = longest
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return verb.Run(ctx, s.P, s.ID)
}

// silence lets the server take what is asked, and answer nothing.
func (s Silent) silence(inside bool, after int) {
	routes := []string{""}
	if inside {
		routes = s.Inside
	}
	for _, route := range routes {
		s.Server.Break(Fault{Route: route, After: after, Trouble: TroubleHang})
	}
}
