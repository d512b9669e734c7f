package providers

import (
	"errors"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
)

// ErrNothingMade is inside the error of a create that has made nothing, for sure: who
// counts sandboxes needs not look for one.
var ErrNothingMade = errors.New("nothing was made")

// ErrSandboxLimit is inside the error of a create that max_sandboxes of the
// configuration has refused: one may start when another has ended.
var ErrSandboxLimit = errors.New("maximum sandbox limit reached")

// nothingMadeError adds ErrNothingMade to an error without a word of it.
type nothingMadeError struct{ error }

// Is knows ErrNothingMade.
func (nothingMadeError) Is(target error) bool { return target == ErrNothingMade }

// Unwrap gives the error.
func (n nothingMadeError) Unwrap() error { return n.error }

// NothingMade says that the create which failed has made nothing. It keeps kind, hint
// and wait.
func NothingMade(err error) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return nothingMadeError{err}
	}
	own := *known
	own.Err = nothingMadeError{known.Err}
	return &own
}

// CreateFailed reads the error of the request that makes a sandbox. An answer of 4xx
// proves that this request made nothing, and so does a request that was never sent; 408
// and 5xx, an answer that is none and no answer prove nothing, and the mark is how to
// find out. codes are the API's words of a 5xx by which it made nothing either.
func CreateFailed(err error, mark CreateMark, codes ...string) error {
	answer := httpx.StatusOf(err)
	switch {
	case httpx.NotSent(err):
		return NothingMade(err)
	case answer == nil:
		return createUnsettled(err, mark)
	case refusedCreate(answer, codes):
		return NothingMade(kindOfRefusal(err, answer.Status))
	}
	return createUnsettled(err, mark)
}

func refusedCreate(answer *httpx.StatusError, codes []string) bool {
	return httpx.Refused(answer.Status) || slices.Contains(codes, answer.Code)
}

// kindOfRefusal gives a refusal the kind that it has of a create: what was asked for is
// wrong, or the account allows no more.
func kindOfRefusal(err error, status int) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	own := *known
	own.Kind = httpx.KindOfRefusal(status)
	return &own
}

// OpenCreateError is inside the error of a create of which the answer does not tell
// whether it has made something.
type OpenCreateError struct {
	Err  error
	Mark CreateMark
}

// CreateMark is by what a sandbox can be found whose create was not answered.
type CreateMark struct {
	Provider string // the profile
	Nonce    string // its label sandbox.LabelNonce
	Name     string // instead of a nonce: the name by which its provider reads it
}

// Look is the command that finds it.
func (m CreateMark) Look() string {
	if m.Name != "" {
		return "sbx inspect " + m.Provider + "/" + m.Name
	}
	return "sbx ls --provider " + m.Provider + " --label " + sandbox.LabelNonce + "=" + m.Nonce
}

// Error says what happened and that it leaves the outcome open.
func (o *OpenCreateError) Error() string {
	return o.Err.Error() + "; it may have been created all the same"
}

// Unwrap gives what happened.
func (o *OpenCreateError) Unwrap() error { return o.Err }

// createUnsettled is the error of a create whose outcome is not known.
func createUnsettled(err error, mark CreateMark) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok || known.Kind != fault.KindUnavailable {
		return err
	}
	own := *fault.New(fault.KindUnavailable, "%w", &OpenCreateError{err, mark})
	own.RetryAfter = known.RetryAfter
	return own.WithHint("look for it with `%s`", mark.Look())
}
