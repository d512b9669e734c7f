package wiretest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Refusal is one answer to a create, and the expected result.
type Refusal struct {
	Name  string
	Fault Fault

	Kind    fault.Kind // KindNone: the create succeeds
	Nothing bool       // it is certain that nothing was made
	Made    int        // sandboxes that exist afterwards
	Asked   int        // number of create requests
	Within  time.Duration
}

// maxSearches bounds the requests after a refused create that search for its sandbox.
const maxSearches = 4

// Refusals lists the ways in which a create fails.
func Refusals() []Refusal {
	var all []Refusal
	for status, kind := range map[int]fault.Kind{
		400: fault.KindUsage, 401: fault.KindAuth, 402: fault.KindRefused, 403: fault.KindAuth, 404: fault.KindNotFound, 409: fault.KindUnavailable,
		410: fault.KindGone, 413: fault.KindUsage, 422: fault.KindUsage,
	} {
		all = append(all, Refusal{strconv.Itoa(status), Status(status), kind, true, 0, 1, time.Second})
	}
	const down = fault.KindUnavailable
	late := func(f Fault) Fault { f.Late = true; return f }
	for _, status := range []int{408, 500, 502, 503, 504} {
		all = append(all, Refusal{strconv.Itoa(status), Status(status), down, false, 0, 1, time.Second},
			Refusal{strconv.Itoa(status) + " after it was made", late(Status(status)), down, false, 1, 1, time.Second})
	}
	soon, once := map[string]string{"Retry-After": "2"}, func(f Fault) Fault { f.Times = 1; return f }
	return append(all,
		Refusal{"429 once, for two seconds", once(TooMany(soon)), "", false, 1, 2, 5 * time.Second},
		Refusal{"429 once, by a suffixed header", once(TooMany(map[string]string{"Retry-After-Sandbox-Create": "2"})), "", false, 1, 2, 5 * time.Second},
		Refusal{"429 for ever", TooMany(soon), down, true, 0, 3, 10 * time.Second},
		Refusal{"429 for an hour", TooMany(map[string]string{"Retry-After": "3600"}), down, true, 0, 1, time.Second},
		Refusal{"429 without a time", TooMany(nil), down, true, 0, 1, time.Second},
		Refusal{"409 after an earlier try has made it", late(Status(http.StatusConflict)), "", false, 1, 1, time.Second},
		Refusal{"reset before", Fault{Trouble: TroubleReset}, down, false, 0, 1, time.Second},
		Refusal{"reset after it was made", Fault{Trouble: TroubleReset, Late: true}, down, false, 1, 1, time.Second},
		Refusal{"no answer", Fault{Trouble: TroubleHang}, down, false, 0, 1, 61 * time.Second},
		Refusal{"no answer after it was made", Fault{Trouble: TroubleHang, Late: true}, down, false, 1, 1, 61 * time.Second},
		Refusal{"half an answer", Fault{Trouble: TroubleTruncate}, down, false, 1, 1, time.Second},
		Refusal{"an object without id", late(Fault{Status: http.StatusOK, Body: "{}"}), down, false, 1, 1, time.Second},
		Refusal{"a web page", HTML(), down, false, 0, 1, time.Second},
	)
}

// RunRefusals checks a provider's create with every refusal, in virtual time.
func RunRefusals(t *testing.T, open func(t T) Subject) {
	t.Helper()
	for _, r := range Refusals() {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { r.Check(t.Context(), t, open(t)) })
		})
	}
}

// Check checks one create.
func (r Refusal) Check(ctx context.Context, t T, s Subject) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	launcher, ok := providers.As[providers.Launcher](s.P)
	if !ok {
		return
	}
	before, err := countRows(ctx, s.P)
	assert.NoError(t, err) //nolint:testifylint // the rest is checked all the same
	f := r.Fault
	f.Route = s.Create
	s.Server.Break(f)
	began, calls := time.Now(), len(s.Server.Calls(""))
	made, err := launcher.Create(ctx, sandbox.Spec{})
	took, asked := time.Since(began), len(s.Server.Calls(s.Create))
	looks := len(s.Server.Calls("")) - calls - asked
	s.Server.Heal()

	assert.Equal(t, r.Kind, fault.KindOf(err), "%s: %v", r.Name, err)
	assert.Equal(t, r.Nothing, errors.Is(err, providers.ErrNothingMade), "%s: is it known that nothing was made? %v", r.Name, err)
	assert.LessOrEqual(t, took, r.Within, "%s: it takes too long", r.Name)
	assert.Equal(t, r.Asked, asked, "%s: how often it is asked", r.Name)
	assert.LessOrEqual(t, looks, maxSearches, "%s: it looks for what it made again and again", r.Name)
	after, listed := countRows(ctx, s.P)
	assert.NoError(t, listed) //nolint:testifylint // as above
	assert.Equal(t, r.Made, after-before, "%s: what the server has made", r.Name)
	if r.Nothing {
		assert.Zero(t, after-before, "%s: it says that nothing was made", r.Name)
	}
	if r.Kind == fault.KindNone {
		_, err := s.P.Get(ctx, made.ID)
		assert.NoError(t, err, "%s: what it says to have made", r.Name) //nolint:testifylint // as above
	}
	if c, ok := s.P.(interface{ Close() }); ok {
		c.Close()
	}
}
