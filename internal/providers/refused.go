package providers

import (
	"errors"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
)

// ErrNothingMade is inside the error of a create that has certainly made nothing, so that no search for
// a sandbox is needed.
var ErrNothingMade = errors.New("nothing was made")

// ErrSandboxLimit is inside the error of a create that max_sandboxes of the configuration has refused.
var ErrSandboxLimit = errors.New("maximum sandbox limit reached")

// nothingMadeError adds ErrNothingMade to an error without changing its text.
type nothingMadeError struct{ error }

// Is is true for ErrNothingMade.
func (nothingMadeError) Is(target error) bool { return target == ErrNothingMade }

// Unwrap is the error.
func (n nothingMadeError) Unwrap() error { return n.error }

// NothingMade marks the error of a create that has made nothing. It keeps kind, hint and wait.
func NothingMade(err error) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return nothingMadeError{err}
	}
	own := *known
	own.Err = nothingMadeError{known.Err}
	return &own
}

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
	return o.Err.Error() + "; it may have been created all the same"
}

// Unwrap is the cause.
func (o *OpenCreateError) Unwrap() error { return o.Err }

func unsettledCreate(err error, mark CreateMark) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok || known.Kind != fault.KindUnavailable {
		return err
	}
	own := *fault.New(fault.KindUnavailable, "%w", &OpenCreateError{err, mark})
	own.RetryAfter = known.RetryAfter
	return own.WithHint("look for it with `%s`", mark.SearchCommand())
}
