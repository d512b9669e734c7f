package wiretest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// Subject is one provider before its fake, on a bad day.
type Subject struct {
	Server *Server
	P      providers.Provider
	ID     string // a running sandbox
	Rows   int    // how many a whole listing shows
	First  int    // how many of them its first page has; 0 = there is one page

	List      string // the route that a listing asks first
	Get       string // the route that Get asks first
	Terminate string // the route that ends a sandbox
	SecondBy  string // what stands in the address of a second page: "nextToken="

	// Expect replaces what a day means for this API: "get 404". A comment beside
	// it says why.
	Expect map[string]fault.Kind
	// Secrets are credentials that no error may quote.
	Secrets []string
}

// BadDay is one thing that goes wrong with every API one day.
type BadDay struct {
	Name  string
	Fault Fault
	List  fault.Kind // what the listing ends with
	Get   fault.Kind
	End   fault.Kind // of Terminate; "" = whatever the room makes of it
	Again bool       // reads are repeated
}

// BadDays lists what every wire room must survive (issue: providers, bad days).
func BadDays() []BadDay {
	const auth, down, unknown = fault.KindAuth, fault.KindUnavailable, fault.KindUnknown
	days := []BadDay{
		{"401", Status(401), auth, auth, auth, false},
		{"403", Status(403), auth, auth, auth, false},
		{"404", Status(404), down, fault.KindNotFound, fault.KindNotFound, false},
		{"409", Status(409), unknown, unknown, "", false},
		{"410", Status(410), down, fault.KindGone, fault.KindGone, false},
		{"422", Status(422), unknown, unknown, "", false},
		{"429", Status(429), down, down, down, true},
		{"429 for a second", TooMany(map[string]string{"Retry-After": "1"}), down, down, down, true},
		{"429 by a suffixed header", TooMany(map[string]string{"Retry-After-authenticated": "1"}), down, down, down, true},
		{"429 for an hour", TooMany(map[string]string{"Retry-After": "3600"}), down, down, down, false},
		{"html", HTML(), down, down, "", false},
		{"garbage", Garbage(), down, down, "", false},
		{"redirect elsewhere", Redirect("http://elsewhere.example/"), down, down, down, false},
		{"hang before headers", Fault{Trouble: TroubleHang}, down, down, down, true},
		{"hang in the body", Fault{Trouble: TroubleHangBody}, down, down, "", true},
		{"truncated", Fault{Trouble: TroubleTruncate}, down, down, "", true},
		{"reset", Fault{Trouble: TroubleReset}, down, down, down, true},
		{"50 MB", Fault{Trouble: TroubleHuge}, down, down, "", false},
	}
	for _, status := range []int{500, 502, 503, 504} {
		days = append(days, BadDay{http.StatusText(status), Status(status), down, down, down, true})
	}
	return days
}

// RunBadDays takes a provider through every bad day, in virtual time. open makes
// a fresh fake with at least Subject.Rows sandboxes and a provider that dials it.
func RunBadDays(t *testing.T, open func(t T) Subject) {
	t.Helper()
	for _, day := range BadDays() {
		t.Run(day.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { day.Judge(t.Context(), t, open(t)) })
		})
	}
}

// Judge takes one provider through the day.
func (d BadDay) Judge(ctx context.Context, t T, s Subject) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	d.list(ctx, t, s)
	d.read(ctx, t, s)
	d.end(ctx, t, s)
	if c, ok := s.P.(interface{ Close() }); ok {
		c.Close()
	}
}

// kind is what this API means, or what all do.
func (s Subject) kind(what string, otherwise fault.Kind) fault.Kind {
	if k, own := s.Expect[what]; own {
		return k
	}
	return otherwise
}

// list breaks the first page, then the second alone: a failed listing is never
// an empty one, and rows that came stay.
func (d BadDay) list(ctx context.Context, t T, s Subject) {
	t.Helper()
	broken := d.Fault
	broken.Route = s.List
	s.Server.Break(broken)
	rows, err := listing(ctx, s.P)
	d.said(t, s, "list", s.kind("list "+d.Name, d.List), err)
	assert.LessOrEqual(t, rows, s.Rows)
	s.Server.Heal()
	if s.SecondBy == "" {
		return
	}
	broken.Contains = s.SecondBy
	s.Server.Break(broken)
	rows, err = listing(ctx, s.P)
	d.said(t, s, "second page", s.kind("second page "+d.Name, d.List), err)
	assert.Equal(t, s.First, rows, "the rows of the first page are lost")
	s.Server.Heal()
	rows, err = listing(ctx, s.P)
	assert.NoError(t, err, "the day is over") //nolint:testifylint // the rest is judged all the same
	assert.Equal(t, s.Rows, rows)
}

func listing(ctx context.Context, p providers.Provider) (rows int, err error) {
	for _, e := range p.List(ctx, providers.Query{}) {
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		rows++
	}
	return rows, err
}

func (d BadDay) read(ctx context.Context, t T, s Subject) {
	t.Helper()
	broken := d.Fault
	broken.Route = s.Get
	before := len(s.Server.Calls(s.Get))
	s.Server.Break(broken)
	_, err := s.P.Get(ctx, s.ID)
	s.Server.Heal()
	d.said(t, s, "get", s.kind("get "+d.Name, d.Get), err)
	switch asked := len(s.Server.Calls(s.Get)) - before; {
	case d.Again:
		assert.GreaterOrEqual(t, asked, httpx.DefaultTries, "a read is repeated")
		assert.LessOrEqual(t, asked, httpx.DefaultTries+1, "net/http itself tries a reused connection once more")
	default:
		assert.Equal(t, 1, asked, "an answer is not asked for again")
	}
}

// end asks for an end, once: what was received is never sent again.
func (d BadDay) end(ctx context.Context, t T, s Subject) {
	t.Helper()
	broken := d.Fault
	broken.Route = s.Terminate
	before := len(s.Server.Calls(s.Terminate))
	s.Server.Break(broken)
	err := s.P.Terminate(ctx, s.ID, providers.TerminateOptions{})
	s.Server.Heal()
	if want := s.kind("terminate "+d.Name, d.End); want != "" {
		d.said(t, s, "terminate", want, err)
	}
	most := 1
	if d.Fault.Status == http.StatusTooManyRequests && d.Again {
		most = httpx.DefaultTries // a 429 says that nothing was done
	}
	assert.LessOrEqual(t, len(s.Server.Calls(s.Terminate))-before, most, "it is asked to end once")
}

// said holds an error against what it should be.
func (d BadDay) said(t T, s Subject, what string, want fault.Kind, err error) {
	t.Helper()
	assert.Equal(t, want, fault.KindOf(err), "%s: %v", what, err)
	if err == nil {
		return
	}
	for _, secret := range s.Secrets {
		assert.NotContains(t, err.Error()+fault.HintOf(err), secret, "%s quotes a secret", what)
	}
	if d.Fault.Header["Retry-After"] == "3600" {
		var f *fault.Error
		assert.ErrorAs(t, err, &f) //nolint:testifylint // the rest is judged all the same
		assert.Equal(t, time.Hour, f.RetryAfter, "%s: when to try again", what)
	}
}
