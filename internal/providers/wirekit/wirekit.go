// Package wirekit holds what the clients of all provider APIs do in the same way: the
// common part of a client, pages of a listing, log lines and how a log is followed, and
// the cleanup after a create that failed.
//
// No paths, fields or states of one provider enter this room.
package wirekit

import (
	"context"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Base is the part that the clients of all APIs have in common, to be embedded.
type Base struct {
	Profile  string // the profile's name
	TypeName string
	API      *httpx.Client
	Now      func() time.Time
}

// NewBase makes the client of a profile; options need no profile name.
func NewBase(p providers.Profile, d providers.Deps, typeName string, options httpx.Options) (Base, error) {
	options.Profile = p.Name
	api, err := httpx.New(d.Net, options)
	if err != nil {
		return Base{}, err
	}
	b := Base{Profile: p.Name, TypeName: typeName, API: api, Now: d.Now}
	if b.Now == nil {
		b.Now = time.Now
	}
	return b, nil
}

// Name is the profile's name.
func (b *Base) Name() string { return b.Profile }

// Type is the name of the provider type.
func (b *Base) Type() string { return b.TypeName }

// Close closes idle connections.
func (b *Base) Close() { b.API.Close() }

// Skew is how far the API's clock is ahead of this machine's.
func (b *Base) Skew() (time.Duration, bool) { return b.API.Skew() }

// Evidence is an observation of now.
func (b *Base) Evidence(what, value, source string) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: source, At: b.Now()}
}

// Fault is a new fault of an operation of this profile.
func (b *Base) Fault(kind fault.Kind, op, format string, args ...any) *fault.Error {
	return fault.New(kind, format, args...).At(b.Profile, op)
}

// ListFault keeps a 404 or 410 of a listing from looking like a missing sandbox: it is
// fault.KindUnavailable with the hint. Other errors stay as they are.
func (b *Base) ListFault(err error, op, hint string) error {
	if !Missing(err) {
		return err
	}
	return b.Fault(fault.KindUnavailable, op, "%w", err).WithHint("%s", hint)
}

// FailedCheck is the finding of doctor that an API cannot be read.
func FailedCheck(check string, err error) providers.Check {
	return providers.Check{Check: check, Verdict: sandbox.False, Message: err.Error(), Hint: fault.HintOf(err)}
}

// Reasons say why a type lacks an ability: ability -> reason. Embedded in a client, it
// makes the client a providers.Explainer.
type Reasons map[string]string

// WhyNot says why an ability is missing; "" without a reason.
func (r Reasons) WhyNot(ability string) string {
	if ability == "sweep" {
		return "nothing of it runs on this machine"
	}
	return r[ability]
}

// Missing says that the API does not find the object: fault.KindNotFound or KindGone.
func Missing(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.KindNotFound || kind == fault.KindGone
}

// ContextFault is the end of ctx as a fault with its cause.
func ContextFault(ctx context.Context) *fault.Error {
	return &fault.Error{Kind: fault.KindOf(ctx.Err()), Err: context.Cause(ctx)}
}

// Sleep waits for d; the end of ctx is a fault.
func Sleep(ctx context.Context, d time.Duration) error {
	if poll.Sleep(ctx, d) != nil {
		return ContextFault(ctx)
	}
	return nil
}

// Environment converts KEY=VALUE words to the map that APIs take.
func Environment(words []string) map[string]string {
	env := map[string]string{}
	for _, w := range words {
		if key, value, ok := strings.Cut(w, "="); ok {
			env[key] = value
		}
	}
	return env
}
