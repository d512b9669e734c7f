package wiretest

import (
	"context"
	"errors"
	"slices"
	"strings"
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

	// Expect replaces what a day means for this API: "get 404", "list 404",
	// "second page 404", "terminate 404". A comment beside it says why.
	Expect map[string]fault.Kind
	// Secrets are credentials that no error may quote.
	Secrets []string
}

// longest bounds each call on a bad day: httpx.DefaultTries requests of
// httpx.DefaultTimeout each and the pauses between them, for a verb that makes
// three of them.
const longest = 2 * time.Minute

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
	s.known(t)
	if d.Loops {
		d.page(ctx, t, s)
		return
	}
	if d.Only != "get" {
		d.list(ctx, t, s)
		d.page(ctx, t, s)
	}
	if d.Only != "list" {
		d.read(ctx, t, s)
	}
	if d.Only == "" {
		d.end(ctx, t, s)
	}
	if d.Edit != nil && d.Only == "get" {
		d.stranger(ctx, t, s)
	}
	if c, ok := s.P.(interface{ Close() }); ok {
		c.Close()
	}
}

// known fails the test for expectations of days that do not exist.
func (s Subject) known(t T) {
	t.Helper()
	for key := range s.Expect {
		found := slices.ContainsFunc(BadDays(), func(d BadDay) bool {
			return slices.Contains([]string{"list " + d.Name, "second page " + d.Name, "get " + d.Name, "terminate " + d.Name}, key)
		})
		assert.True(t, found, "no day is called as in Expect[%q]", key)
	}
}

// during runs f while a route has its bad day. asked is how often it was called.
func (d BadDay) during(ctx context.Context, s Subject, route, contains string, f func(context.Context)) (asked int) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if d.Context != nil {
		var giveUp context.CancelFunc
		ctx, giveUp = d.Context(ctx)
		defer giveUp()
	}
	broken := d.Fault
	broken.Route, broken.Contains = route, contains
	if d.Loops {
		broken.Forget = strings.TrimSuffix(contains, "=")
	}
	if d.Edit != nil {
		broken.Edit = func(body []byte) []byte { return d.Edit(s, body) }
	}
	before := len(s.Server.Calls(route))
	if d.Dial != nil {
		s.Server.Unplug(d.Dial)
	} else {
		s.Server.Break(broken)
	}
	f(ctx)
	s.Server.Unplug(nil)
	s.Server.Heal()
	return len(s.Server.Calls(route)) - before
}

// list breaks the first page: a failed listing is never an empty one.
func (d BadDay) list(ctx context.Context, t T, s Subject) {
	t.Helper()
	var rows int
	var err error
	d.during(ctx, s, s.List, "", func(ctx context.Context) { rows, err = listing(ctx, s.P) })
	d.said(t, s, "list", d.List, err)
	assert.LessOrEqual(t, rows, s.Rows)
}

// page breaks the second page alone: rows that came stay, and the next listing,
// when the day is over, is whole.
func (d BadDay) page(ctx context.Context, t T, s Subject) {
	t.Helper()
	if s.SecondBy == "" || d.Never {
		return
	}
	var rows int
	var err error
	asked := d.during(ctx, s, s.List, s.SecondBy, func(ctx context.Context) { rows, err = listing(ctx, s.P) })
	d.said(t, s, "second page", d.List, err)
	if d.Loops {
		assert.Less(t, asked, endless, "a listing goes round and round")
	}
	assert.Equal(t, s.First, rows, "rows of the first page are lost or come twice")
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
	var err error
	asked := d.during(ctx, s, s.Get, "", func(ctx context.Context) { _, err = s.P.Get(ctx, s.ID) })
	d.said(t, s, "get", d.Get, err)
	switch {
	case d.Never:
		assert.Zero(t, asked, "nothing can be asked")
	case d.Again:
		assert.GreaterOrEqual(t, asked, httpx.DefaultTries, "a read is repeated")
		assert.LessOrEqual(t, asked, httpx.DefaultTries+1, "net/http itself tries a reused connection once more")
	default:
		assert.Equal(t, 1, asked, "an answer is not asked for again")
	}
}

// stranger asks for the end of a sandbox while reads of it answer about another: no
// request that changes anything may name that one.
func (d BadDay) stranger(ctx context.Context, t T, s Subject) {
	t.Helper()
	for _, o := range []providers.TerminateOptions{{}, {Delete: true}} {
		d.during(ctx, s, s.Get, "", func(ctx context.Context) { _ = s.P.Terminate(ctx, s.ID, o) }) // what it says is judged elsewhere
	}
	for _, call := range s.Server.Calls("") {
		assert.NotContains(t, call.URL, stranger(s.ID), "%s: something is asked of a sandbox that nobody selected: %s", d.Name, call.Route)
	}
}

// end asks for an end, once: what was received is never sent again.
func (d BadDay) end(ctx context.Context, t T, s Subject) {
	t.Helper()
	var err error
	asked := d.during(ctx, s, s.Terminate, "", func(ctx context.Context) {
		err = s.P.Terminate(ctx, s.ID, providers.TerminateOptions{})
	})
	if _, own := s.Expect["terminate "+d.Name]; own || d.End != "" {
		d.said(t, s, "terminate", d.End, err)
	}
	d.quotes(t, s, "terminate", err)
	most := 1
	switch {
	case d.Never:
		most = 0
	case d.repeats():
		most = httpx.DefaultTries
	}
	assert.LessOrEqual(t, asked, most, "it is asked to end once")
}

// said holds an error against what it should be: what all APIs mean, or what
// Subject.Expect says of this one. A listing and a read never fail silently.
func (d BadDay) said(t T, s Subject, what string, want fault.Kind, err error) {
	t.Helper()
	if own, is := s.Expect[what+" "+d.Name]; is {
		want = own
	}
	if what != "terminate" && err == nil {
		t.Errorf("%s: %s: no error: what could not be read looks like nothing", d.Name, what)
		return
	}
	assert.Equal(t, want, fault.KindOf(err), "%s: %s: %v", d.Name, what, err)
	d.quotes(t, s, what, err)
	if d.Wait == 0 || err == nil {
		return
	}
	var f *fault.Error
	if assert.ErrorAs(t, err, &f) {
		assert.Equal(t, d.Wait, f.RetryAfter, "%s: %s: when to try again", d.Name, what)
	}
}

// quotes fails the test for an error that quotes a credential.
func (d BadDay) quotes(t T, s Subject, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, secret := range s.Secrets {
		assert.NotContains(t, err.Error()+fault.HintOf(err), secret, "%s: %s quotes a secret", d.Name, what)
	}
}
