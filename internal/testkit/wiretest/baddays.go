package wiretest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
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

// Subject is a provider with its fake, under a failure. Each suite uses some of the fields.
type Subject struct {
	Server *Server
	P      providers.Provider
	ID     string // a running sandbox
	Shown  string // what of it answers have in place of the id; "" = the id
	Rows   int    // of a complete listing
	First  int    // of its first page; 0 = there is one page

	List      string   // the first route of a listing
	Get       string   // the first route of Get
	Terminate string   // the route that ends a sandbox
	SecondBy  string   // a part of the address of a second page: "nextToken="
	Asked     int      // the rows of a page that a listing asks for; 0 = it asks for all
	Marks     []string // keys of the answer and headers by which it marks its end

	// Expect replaces the kind of error of a day for this API: "get 404", "list 404",
	// "second page 404", "terminate 404".
	Expect map[string]fault.Kind
	// Secrets are credentials that no error may quote.
	Secrets []string

	Create string   // the route that makes a sandbox, for RunRefusals
	Inside []string // the routes into a sandbox, for RunSilence and RunLosses; nil = there are none
	Every  int      // RunLosses loses each n-th answer of these; 0 = each second one
}

func (s Subject) shown() string { return cmp.Or(s.Shown, s.ID) }

// callLimit bounds each call under a failure: three requests with httpx.DefaultTries tries of
// httpx.DefaultTimeout each, and the pauses.
const callLimit = 2 * time.Minute

// RunBadDays checks a provider under every failure of BadDays, in virtual time. open makes a new
// fake with at least Subject.Rows sandboxes and a provider that dials it.
func RunBadDays(t *testing.T, open func(t T) Subject) {
	t.Helper()
	for _, day := range BadDays() {
		t.Run(day.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { day.Check(t.Context(), t, open(t)) })
		})
	}
}

// Check checks one provider under the failure.
func (d BadDay) Check(ctx context.Context, t T, s Subject) {
	t.Helper()
	s.checkExpectations(t)
	switch {
	case d.Odd:
		d.checkOdd(ctx, t, s)
		return
	case d.Full:
		d.checkFull(ctx, t, s)
		return
	case d.Loops:
		d.checkSecondPage(ctx, t, s)
		return
	}
	if d.Only != "get" {
		d.checkList(ctx, t, s)
		d.checkSecondPage(ctx, t, s)
	}
	if d.Only != "list" {
		d.checkGet(ctx, t, s)
	}
	if d.Only == "" {
		d.checkTerminate(ctx, t, s)
	}
	if d.Edit != nil && d.Only == "get" {
		d.checkOtherSandbox(ctx, t, s)
	}
	if c, ok := s.P.(interface{ Close() }); ok {
		c.Close()
	}
}

func (s Subject) checkExpectations(t T) {
	t.Helper()
	for key := range s.Expect {
		found := slices.ContainsFunc(BadDays(), func(d BadDay) bool {
			return slices.Contains([]string{"list " + d.Name, "second page " + d.Name, "get " + d.Name, "terminate " + d.Name}, key)
		})
		assert.True(t, found, "no day is called as in Expect[%q]", key)
	}
}

// runDuring runs f while a route fails. asked is how often the route was called.
func (d BadDay) runDuring(ctx context.Context, s Subject, route, contains string, f func(context.Context)) (asked int) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if d.Context != nil {
		var giveUp context.CancelFunc
		ctx, giveUp = d.Context(ctx)
		defer giveUp()
	}
	broken := d.Fault
	broken.Route, broken.Contains = route, contains
	if d.Full {
		broken.Without = s.Marks
	}
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

// checkList breaks the first page: a failed listing is not an empty one.
func (d BadDay) checkList(ctx context.Context, t T, s Subject) {
	t.Helper()
	var rows int
	var err error
	d.runDuring(ctx, s, s.List, "", func(ctx context.Context) { rows, err = countRows(ctx, s.P) })
	d.checkError(t, s, "list", d.List, err)
	assert.LessOrEqual(t, rows, s.Rows)
	if d.Loses {
		pages := 1
		if s.SecondBy != "" {
			pages = 2
		}
		assert.Equal(t, s.Rows-pages, rows, "one row hides others")
	}
}

// checkSecondPage breaks only the second page: the rows of the first one stay, and the next
// listing without a failure is complete.
func (d BadDay) checkSecondPage(ctx context.Context, t T, s Subject) {
	t.Helper()
	if s.SecondBy == "" || d.Never {
		return
	}
	var rows int
	var err error
	asked := d.runDuring(ctx, s, s.List, s.SecondBy, func(ctx context.Context) { rows, err = countRows(ctx, s.P) })
	d.checkError(t, s, "second page", d.List, err)
	if d.Loops {
		assert.Less(t, asked, maxLoopPages, "a listing goes round and round")
	}
	want := s.First
	if d.Loses {
		want = s.Rows - 1
	}
	assert.Equal(t, want, rows, "rows are lost or come twice")
	rows, err = countRows(ctx, s.P)
	assert.NoError(t, err, "the day is over") //nolint:testifylint // the rest is checked all the same
	assert.Equal(t, s.Rows, rows)
}

func countRows(ctx context.Context, p providers.Provider) (rows int, err error) {
	for _, e := range p.List(ctx, providers.Query{}) {
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		rows++
	}
	return rows, err
}

func (d BadDay) checkGet(ctx context.Context, t T, s Subject) {
	t.Helper()
	var err error
	asked := d.runDuring(ctx, s, s.Get, "", func(ctx context.Context) { _, err = s.P.Get(ctx, s.ID) })
	d.checkError(t, s, "get", d.Get, err)
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

// checkOtherSandbox terminates a sandbox while reads of it answer about another one: no request
// may name that one.
func (d BadDay) checkOtherSandbox(ctx context.Context, t T, s Subject) {
	t.Helper()
	for _, o := range []providers.TerminateOptions{{}, {Delete: true}} {
		d.runDuring(ctx, s, s.Get, "", func(ctx context.Context) { _ = s.P.Terminate(ctx, s.ID, o) }) // its error is checked elsewhere
	}
	for _, call := range s.Server.Calls("") {
		assert.NotContains(t, call.URL, otherID(s.shown()), "%s: something is asked of a sandbox that nobody selected: %s", d.Name, call.Route)
	}
}

// checkTerminate terminates a sandbox: a request that was received is not sent again.
func (d BadDay) checkTerminate(ctx context.Context, t T, s Subject) {
	t.Helper()
	var err error
	asked := d.runDuring(ctx, s, s.Terminate, "", func(ctx context.Context) {
		err = s.P.Terminate(ctx, s.ID, providers.TerminateOptions{})
	})
	if _, own := s.Expect["terminate "+d.Name]; own || d.End != "" {
		d.checkError(t, s, "terminate", d.End, err)
	}
	d.checkSecrets(t, s, "terminate", err)
	most := 1
	switch {
	case d.Never:
		most = 0
	case d.Fault.Status == http.StatusTooManyRequests && d.Again: // a 429 with a short time had no effect
		most = httpx.DefaultTries
	}
	assert.LessOrEqual(t, asked, most, "it is asked to end once")
}

// checkError compares the kind of an error with that of the day or of Subject.Expect. A listing
// and a read never fail without an error.
func (d BadDay) checkError(t T, s Subject, what string, want fault.Kind, err error) {
	t.Helper()
	if own, is := s.Expect[what+" "+d.Name]; is {
		want = own
	}
	if what != "terminate" && err == nil {
		t.Errorf("%s: %s: no error: what could not be read looks like nothing", d.Name, what)
		return
	}
	assert.Equal(t, want, fault.KindOf(err), "%s: %s: %v", d.Name, what, err)
	CheckPlace(t, err)
	d.checkSecrets(t, s, what, err)
	if d.Wait == 0 || err == nil {
		return
	}
	var f *fault.Error
	if assert.ErrorAs(t, err, &f) {
		assert.Equal(t, d.Wait, f.RetryAfter, "%s: %s: when to try again", d.Name, what)
	}
}

// CheckPlace checks that an error names its provider and operation once.
func CheckPlace(t T, err error) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Op == "" {
		return
	}
	for line := range strings.Lines(err.Error()) { // a join has a place in each
		assert.LessOrEqual(t, strings.Count(line, f.Provider+": "+f.Op+": "), 1, "it says twice where it was")
	}
}

func (d BadDay) checkSecrets(t T, s Subject, what string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	for _, secret := range s.Secrets {
		assert.NotContains(t, err.Error()+fault.HintOf(err), secret, "%s: %s quotes a secret", d.Name, what)
	}
}
