package wiretest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// BadDay is one failure that every API may have.
type BadDay struct {
	Name  string
	Fault Fault
	// Dial is the error of every connection; then no request reaches the server.
	Dial error
	// Edit changes the API's own answer.
	Edit func(s Subject, body []byte) []byte
	// Only restricts the day to "list" or "get"; "" = both, and terminate.
	Only string
	// Loops makes a page token come again, in a listing of several pages.
	Loops bool
	// Context is the context of a caller that gives up; nil = one that waits.
	Context func(context.Context) (context.Context, context.CancelFunc)

	List  fault.Kind // of the listing's error
	Get   fault.Kind
	End   fault.Kind // of Terminate; "" = any
	Again bool       // reads are repeated
	Loses bool       // one row of each page, with an error beside the others
	Odd   bool       // fields are odd, and nothing is lost
	Full  bool       // a page is full, and nothing marks the end
	Never bool       // no request reaches the server
	// Wait is fault.Error.RetryAfter; 0 = none.
	Wait time.Duration
}

// maxLoopPages is how many pages a loop has: a listing that reads all of them has not found the
// loop.
const maxLoopPages = 6

// BadDays lists the failures that every client must survive.
func BadDays() []BadDay {
	var all []BadDay
	for _, some := range [][]BadDay{statusDays(), throttleDays(), invalidAnswerDays(), emptyAnswerDays(), otherSandboxDays(), silentDays(), unreachableDays(), canceledDays(), oddDays()} {
		all = append(all, some...)
	}
	return all
}

// statusDays are statuses alone. A 404 or 410 of a list is not that of a sandbox: the address is
// wrong.
func statusDays() []BadDay {
	const auth, down, unknown = fault.KindAuth, fault.KindUnavailable, fault.KindUnknown
	days := []BadDay{
		{Name: "401", Fault: Status(401), List: auth, Get: auth, End: auth},
		{Name: "403", Fault: Status(403), List: auth, Get: auth, End: auth},
		{Name: "404", Fault: Status(404), List: down, Get: fault.KindNotFound, End: fault.KindNotFound},
		{Name: "409", Fault: Status(409), List: unknown, Get: unknown},
		{Name: "410", Fault: Status(410), List: down, Get: down, End: down}, // where the API does not document it
		{Name: "422", Fault: Status(422), List: unknown, Get: unknown},
	}
	for _, status := range []int{500, 502, 503, 504} {
		days = append(days, BadDay{Name: strconv.Itoa(status), Fault: Status(status), List: down, Get: down, End: down, Again: true})
	}
	return days
}

// throttleDays are the formats of "too many requests". The client waits for a short time; about a
// long one the operator decides.
func throttleDays() []BadDay {
	const hour = "3600"
	day := func(name string, header map[string]string, wait time.Duration, again bool) BadDay {
		const down = fault.KindUnavailable
		return BadDay{Name: name, Fault: TooMany(header), List: down, Get: down, End: down, Wait: wait, Again: again}
	}
	return []BadDay{
		day("429", nil, 0, true),
		day("429 for a second", map[string]string{"Retry-After": "1"}, time.Second, true),
		day("429 for an hour", map[string]string{"Retry-After": hour}, time.Hour, false),
		day("429 by a suffixed header", map[string]string{"Retry-After-authenticated": "1"}, time.Second, true),
		day("429 for an hour by a suffixed header", map[string]string{"Retry-After-sandbox-create": hour}, time.Hour, false),
		day("429 until a reset", map[string]string{"X-RateLimit-Reset-authenticated": hour}, time.Hour, false),
	}
}

func invalidAnswerDays() []BadDay {
	const down = fault.KindUnavailable
	return []BadDay{
		{Name: "html", Fault: HTML(), List: down, Get: down},
		{Name: "garbage", Fault: Garbage(), List: down, Get: down},
		{Name: "50 MB", Fault: Fault{Trouble: TroubleHuge}, List: down, Get: down},
		{Name: "redirect elsewhere", Fault: Redirect("http://elsewhere.example/"), List: down, Get: down, End: down},
		{Name: "a page token comes again", Fault: Fault{Times: maxLoopPages}, Loops: true, List: down},
	}
}

// emptyAnswerDays are answers of 200 without the requested object: an outage, and never an empty
// list or a proof.
func emptyAnswerDays() []BadDay {
	const down = fault.KindUnavailable
	day := func(name, body string) BadDay {
		return BadDay{Name: "200 " + name, Fault: Fault{Status: http.StatusOK, Body: body}, List: down, Get: down}
	}
	rows := func(name string, edit func(rows []any)) BadDay {
		return BadDay{Name: name, Only: "list", List: down, Get: down, Loses: true, Edit: func(_ Subject, body []byte) []byte { return editRows(body, edit) }}
	}
	array := day("[]", "[]")
	array.Only = "get" // as a list it is empty
	nothing := day("of no bytes", "")
	return []BadDay{
		day("null", "null"), day("{}", "{}"), day("an error", `{"error":{"code":"internal","message":"try later"}}`), day("a text", `"fine"`),
		array, nothing,
		{Name: "204 where a body is due", Fault: Fault{Status: http.StatusNoContent}, List: down, Get: down},
		rows("a row is null", func(rows []any) { rows[0] = nil }),
		rows("a row without id", func(rows []any) {
			if row, ok := rows[len(rows)-1].(map[string]any); ok {
				for _, key := range identityKeys() {
					delete(identified(row), key)
				}
			}
		}),
		rows("a row with an odd id", func(rows []any) {
			if row, ok := rows[0].(map[string]any); ok {
				held := identified(row)
				for _, key := range identityKeys() {
					if _, has := held[key]; has {
						held[key] = 7
					}
				}
			}
		}),
	}
}

func otherSandboxDays() []BadDay {
	const down = fault.KindUnavailable
	return []BadDay{{Name: "an answer about another", Only: "get", List: down, Get: down, Edit: func(s Subject, body []byte) []byte {
		return bytes.ReplaceAll(body, []byte(s.shown()), []byte(otherID(s.shown())))
	}}}
}

func otherID(id string) string {
	last := "0"
	if strings.HasSuffix(id, last) {
		last = "1"
	}
	return id[:len(id)-1] + last
}

func editRows(body []byte, edit func(rows []any)) []byte {
	var whole any
	if json.Unmarshal(body, &whole) != nil {
		return body
	}
	rows, found := whole.([]any)
	if held, ok := whole.(map[string]any); ok {
		for _, key := range slices.Sorted(maps.Keys(held)) {
			if rows, found = held[key].([]any); found {
				break
			}
		}
	}
	if !found || len(rows) == 0 {
		return body
	}
	edit(rows)
	text, err := json.Marshal(whole)
	if err != nil {
		return body
	}
	return text
}

func silentDays() []BadDay {
	const down = fault.KindUnavailable
	return []BadDay{
		{Name: "hang before headers", Fault: Fault{Trouble: TroubleHang}, List: down, Get: down, End: down, Again: true},
		{Name: "hang after the work", Fault: Fault{Trouble: TroubleHang, Late: true}, List: down, Get: down, End: down, Again: true},
		{Name: "hang in the body", Fault: Fault{Trouble: TroubleHangBody}, List: down, Get: down, Again: true},
		{Name: "a drip", Fault: Fault{Trouble: TroubleDrip}, List: down, Get: down, Again: true},
		{Name: "truncated", Fault: Fault{Trouble: TroubleTruncate}, List: down, Get: down, Again: true},
		{Name: "reset", Fault: Fault{Trouble: TroubleReset}, List: down, Get: down, End: down, Again: true},
	}
}

func unreachableDays() []BadDay {
	day := func(name string, err error) BadDay {
		const down = fault.KindUnavailable
		return BadDay{Name: name, Dial: err, List: down, Get: down, End: down, Never: true}
	}
	return []BadDay{
		day("no such host", &net.DNSError{Err: "no such host", Name: "api.example", IsNotFound: true}),
		day("no name server", &net.DNSError{Err: "server misbehaving", Name: "api.example", IsTemporary: true}),
		day("connection refused", syscall.ECONNREFUSED),
		day("a foreign certificate", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
		day("no TLS", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}),
	}
}

func canceledDays() []BadDay {
	const stopped, late = fault.KindCanceled, fault.KindTimeout
	hang := Fault{Trouble: TroubleHang}
	return []BadDay{
		{Name: "cancelled before", Fault: hang, List: stopped, Get: stopped, End: stopped, Never: true, Context: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}},
		{Name: "cancelled meanwhile", Fault: hang, List: stopped, Get: stopped, End: stopped, Context: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}},
		{Name: "the time is over", Fault: hang, List: late, Get: late, End: late, Context: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}},
	}
}

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
