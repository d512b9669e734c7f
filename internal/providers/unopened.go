package providers

import (
	"context"
	"errors"
	"iter"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Unopened stands in for a provider that could not be opened, so that the others
// work: whatever it is asked fails with the reason.
type Unopened struct {
	profile Profile
	why     error
}

// NewUnopened makes one; why is told with the profile's name.
func NewUnopened(p Profile, why error) *Unopened {
	told := fault.Error{Kind: fault.KindOf(why), Hint: fault.HintOf(why), Err: why}
	if f, ok := errors.AsType[*fault.Error](why); ok {
		told = *f
	}
	return &Unopened{profile: p, why: told.At(p.Name, "")}
}

// Name is the profile's name.
func (u *Unopened) Name() string { return u.profile.Name }

// Type is that of the profile.
func (u *Unopened) Type() string { return u.profile.Type }

// Close does nothing.
func (*Unopened) Close() {}

// List fails.
func (u *Unopened) List(context.Context, Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) { yield(sandbox.Sandbox{}, u.why) }
}

// Get fails.
func (u *Unopened) Get(context.Context, string) (sandbox.Sandbox, error) {
	return sandbox.Sandbox{}, u.why
}

// Terminate fails.
func (u *Unopened) Terminate(context.Context, string, TerminateOptions) error { return u.why }

// Check says why it could not be opened.
func (u *Unopened) Check(context.Context) []Check {
	return []Check{{Check: "settings", Verdict: sandbox.False, Message: u.why.Error(), Hint: fault.HintOf(u.why)}}
}
