package providers

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/poll"
	"sbx/internal/sandbox"
)

// CheckAnswerID checks that one of the names in an answer is the requested id: otherwise the answer is
// fault.KindUnavailable and must not be used.
func CheckAnswerID(profile, op, asked string, names ...string) error {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	switch {
	case slices.Contains(names, asked) && asked != "":
		return nil
	case len(names) == 0:
		return fault.New(fault.KindUnavailable, "the answer names no sandbox").At(profile, op)
	}
	return WrongSandbox(profile, op, asked, names[0])
}

// SameRoute says that two errors are answers of one route of an API: together they are one source. A read of the figures
// or of the output may begin with the record, and then has its answer.
func SameRoute(a, b error) bool {
	one, other := httpx.StatusOf(a), httpx.StatusOf(b)
	return one != nil && other != nil && one.Path == other.Path
}

// Look marks the calls of one look at one sandbox, which settle each other: after a definite answer, or
// none, an error is fault.SettlesLook, nothing is repeated, and later calls ask inside no more.
func Look(ctx context.Context) context.Context { return httpx.Look(ctx) }

// WithSlot gives a call the slot that it leaves, as part of a look, while it waits for one sandbox alone.
func WithSlot(ctx context.Context, s httpx.Slot) context.Context { return httpx.WithSlot(ctx, s) }

// SleepWithoutSlot waits for d; in a look it gives up its slot first, so that another call can use it. It returns the cause of ctx where that ends before.
func SleepWithoutSlot(ctx context.Context, d time.Duration) error {
	httpx.LeaveSlot(ctx)
	return poll.Sleep(ctx, d)
}

type cleanupKey struct{}

// WithCleanupLimit gives the calls of a context a limit of their own for cleaning up after it has ended.
func WithCleanupLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, cleanupKey{}, limit)
}

// CleanupLimit is the limit of WithCleanupLimit, else the usual one.
func CleanupLimit(ctx context.Context, usual time.Duration) time.Duration {
	if limit, ok := ctx.Value(cleanupKey{}).(time.Duration); ok {
		return limit
	}
	return usual
}

// IDSpeller is a provider whose sandboxes have ids with several spellings. Without it, ids are compared
// byte by byte.
type IDSpeller interface {
	// SameID says that two ids are those of one sandbox.
	SameID(a, b string) bool
}

// NameReader is a provider whose Get accepts names as well as ids. It checks itself that the answer has
// the requested name.
type NameReader interface {
	// TakesName is false for a word that has the form of an id.
	TakesName(word string) bool
}

// WrongSandbox is the error for an answer about another sandbox than the requested one. The answer must
// not be used.
func WrongSandbox(profile, op, asked, answered string) error {
	return fault.New(fault.KindUnavailable, "the answer is about another sandbox, %q", answered).At(profile, op).
		WithHint("no request was sent to it; if %q is a name, write it without the profile, or write the id", asked)
}

// earliestYear is older than every API: an earlier time is a zero value of the API.
const earliestYear = 1990

// ValidTime is a time of an API; zero for one that no sandbox can have.
func ValidTime(at time.Time) time.Time {
	if at.Year() < earliestYear {
		return time.Time{}
	}
	return at
}

// maxBytes is more memory and disk than any machine has.
const maxBytes = 1 << 50

// ValidBytes is an amount of memory or disk of an API; nil for none and for one that no machine can
// have.
func ValidBytes(n *int64) *int64 {
	if n == nil || *n < 0 || *n > maxBytes {
		return nil
	}
	return n
}

// ValidPercent is CPU use in percent of one core; nil for none and for an impossible value.
func ValidPercent(v *float64) *float64 {
	const most = 1e6 // ten thousand cores
	if v == nil || !(*v >= 0 && *v <= most) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}

// CheckClock compares the clock of an API with this machine's, for doctor: ages depend on both.
func CheckClock(c *httpx.Client) Check {
	ahead, known := c.Skew()
	switch {
	case !known:
		return Check{Check: "clock", Verdict: sandbox.Unknown, Message: "the API does not report its time", Info: true}
	case ClockWords(ahead) == "":
		return Check{Check: "clock", Verdict: sandbox.True, Message: "agrees with the API's"}
	}
	return Check{
		Check: "clock", Verdict: sandbox.False, Message: "the API's clock is " + ClockWords(ahead) + " this machine's",
		Hint: "ages use the clock that is behind; correct this machine's clock",
	}
}

// ClockWords compares the clock of an API with this machine's: "45s ahead of", "45s behind"; "" = ages are
// usable with both.
func ClockWords(ahead time.Duration) string {
	switch {
	case ahead.Abs() <= httpx.SkewTolerated:
		return ""
	case ahead < 0:
		return sandbox.FormatDuration(ahead.Abs()) + " behind"
	}
	return sandbox.FormatDuration(ahead) + " ahead of"
}

// ErrNothingMade is inside the error of a create that has certainly made nothing, so that no search for
// a sandbox is needed.
var ErrNothingMade = errors.New("nothing was created")

// ErrSandboxLimit is inside the error of a create that max_sandboxes of the configuration has refused.
var ErrSandboxLimit = errors.New("maximum sandbox limit reached")

// ErrNoWorkdir is inside the error of a program that was not started because its working directory cannot be
// entered: it would not start in another sandbox either.
var ErrNoWorkdir = errors.New("the working directory cannot be entered")

// markedError adds a mark to an error without changing its text.
type markedError struct {
	error

	mark error
}

// Is is true for the mark.
func (m markedError) Is(target error) bool { return target == m.mark }

// Unwrap is the error.
func (m markedError) Unwrap() error { return m.error }

// NoWorkdir marks an error with ErrNoWorkdir and keeps its kind and hint.
func NoWorkdir(f *fault.Error) *fault.Error {
	f.Err = markedError{f.Err, ErrNoWorkdir}
	return f
}

// NothingMade marks the error of a create that has made nothing. It keeps kind, hint and wait.
func NothingMade(err error) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return markedError{err, ErrNothingMade}
	}
	own := *known
	own.Err = markedError{known.Err, ErrNothingMade}
	return &own
}

// ErrUndone is inside the error of a create whose sandbox was ended again: its provider has acknowledged that request.
var ErrUndone = errors.New("its sandbox was ended again")

// Undone marks an error with ErrUndone and keeps its kind and hint.
func Undone(f *fault.Error) *fault.Error {
	f.Err = markedError{f.Err, ErrUndone}
	return f
}

// ErrNothingSent is inside the error of an end that sent no request which could have had an effect.
var ErrNothingSent = errors.New("nothing was sent")

// NothingSent marks the error of an end before its first request: of a read that failed. It keeps kind, hint and wait.
func NothingSent(err error) error {
	if err == nil {
		return nil
	}
	known, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return markedError{err, ErrNothingSent}
	}
	own := *known
	own.Err = markedError{known.Err, ErrNothingSent}
	return &own
}

// EndFailed is the error of the first request of an end, which may not have reached the server.
func EndFailed(err error) error {
	if httpx.NotSent(err) {
		return NothingSent(err)
	}
	return err
}

// Answered reports whether the error of a request is an answer to it.
func Answered(err error) bool { return httpx.Status(err) != 0 }

// CreateFailed classifies the error of the request that makes a sandbox. A 4xx and a request that was
// never sent made nothing. After a 408, a 5xx, an invalid answer and no answer the outcome is open, and
// the hint is a search by mark. codes are the error codes of a 5xx that made nothing.
func CreateFailed(err error, mark CreateMark, codes ...string) error {
	answer := httpx.StatusOf(err)
	switch {
	case httpx.NotSent(err):
		return NothingMade(err)
	case answer == nil:
		return unsettledCreate(err, mark)
	case httpx.Refused(answer.Status) || slices.Contains(codes, answer.Code):
		return NothingMade(withRefusalKind(err, answer.Status))
	}
	return unsettledCreate(err, mark)
}

// withRefusalKind sets the kind of a refused create: the spec is invalid, or the account has reached a
// limit.
func withRefusalKind(err error, status int) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	own := *known
	own.Kind = httpx.KindOfRefusal(status)
	return &own
}

// OpenCreateError is inside the error of a create that may have made a sandbox.
type OpenCreateError struct {
	Err  error
	Mark CreateMark
}

// CreateMark identifies the sandbox of a create without an answer.
type CreateMark struct {
	Provider string // the profile
	Nonce    string // its label sandbox.LabelNonce
	Name     string // instead of a nonce: a name that its provider can read
}

// SearchCommand is the command that finds the sandbox.
func (m CreateMark) SearchCommand() string {
	if m.Name != "" {
		return "sbx inspect " + m.Provider + "/" + m.Name
	}
	return "sbx ls --provider " + m.Provider + " --label " + sandbox.LabelNonce + "=" + m.Nonce
}

// Error is the text of the cause, and that the outcome is open.
func (o *OpenCreateError) Error() string {
	return o.Err.Error() + "; it may have been created anyway"
}

// Unwrap is the cause.
func (o *OpenCreateError) Unwrap() error { return o.Err }

func unsettledCreate(err error, mark CreateMark) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok || !leavesOpen(known.Kind) {
		return err
	}
	own := *fault.New(known.Kind, "%w", &OpenCreateError{err, mark})
	own.RetryAfter = known.RetryAfter
	return own.WithHint("search for it with `%s`", mark.SearchCommand())
}

// leavesOpen says that a create whose request was sent, and that failed with this kind, may have made a sandbox: also
// one that its caller has given up.
func leavesOpen(kind fault.Kind) bool {
	return kind == fault.KindUnavailable || kind == fault.KindTimeout || kind == fault.KindCanceled
}

// OldestFirst is the command that lists the sandboxes of a profile, the oldest first, for hints.
func OldestFirst(profile string) string { return "`sbx ls --provider " + profile + " --sort -age`" }
