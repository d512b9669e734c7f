package providers

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
)

// Extender moves the end that its provider has for a sandbox.
type Extender interface {
	// Extend reads a sandbox and, where CheckExtension allows it for what was read, requests once that it ends at until,
	// by the provider's clock. Nil means accepted: only another read shows the end. before is what was read; without an
	// id nothing was sent. It wakes and resumes nothing. fault.KindRefused where the API refuses that end for good,
	// fault.KindUnsupported where no end of this sandbox can be moved.
	Extend(ctx context.Context, id string, until time.Time) (before sandbox.Sandbox, err error)
}

// CheckExtension says why the end of a sandbox stays where it is; nil = it may be moved to until. It is the one rule
// for that: an API may shorten a life by the call that extends it.
func CheckExtension(s sandbox.Sandbox, until time.Time) error {
	refuse := func(format string, args ...any) *fault.Error { return fault.New(fault.KindRefused, format, args...) }
	switch {
	case s.State.Ended():
		return fault.New(fault.KindGone, "it has ended: it is %s", s.State)
	case s.State != sandbox.StateRunning:
		return refuse("it is %s, and only what runs is extended", s.State).WithHint("an extension wakes and resumes nothing")
	case s.ExpiresAt.IsZero() && s.IdleStop > 0:
		return refuse("no time ends it, so that it needs no extension: it stops after %s without activity", sandbox.FormatDuration(s.IdleStop)).
			WithHint("any activity puts that off")
	case s.ExpiresAt.IsZero():
		return refuse("no end of it is known, so that nothing can be extended")
	case !until.After(s.ExpiresAt):
		return refuse("it ends at %s, and %s is not later", s.ExpiresAt.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339)).
			WithHint("an extension never shortens: ask for a later end")
	}
	return nil
}

// ReadToExtend is the read of Extender.Extend with its rule; without an error the request may be sent.
func ReadToExtend(ctx context.Context, p Provider, id string, until time.Time) (sandbox.Sandbox, error) {
	s, err := p.Get(ctx, id)
	if err == nil {
		err = CheckExtension(s, until)
	}
	if err != nil {
		return sandbox.Sandbox{}, fault.Placed(err, p.Name(), "extend "+id)
	}
	return s, nil
}

// ExtensionFailed is the error of the request of Extender.Extend: an answer that refuses it for good, such as an end
// beyond the account's limit, is fault.KindRefused.
func ExtensionFailed(err error) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok || !httpx.RefusesChange(httpx.Status(err)) {
		return err
	}
	own := *known
	own.Kind = fault.KindRefused
	return &own
}
