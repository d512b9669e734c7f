// Package fault holds what can go wrong, as data: the kinds of failure, the
// exit code of each, what a cron line reads from it, and the hint that goes
// with it. One table drives exit codes, JSON errors, help and docs.
//
// No printing and no knowledge of any provider or command enters this room,
// and nothing beyond the standard library.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error is a failure that says what kind it is and what to do next. Its text is
// one lower-case line without a full stop.
type Error struct {
	Kind       Kind
	Provider   string        // the profile, when one is at fault
	Op         string        // what was being done: "terminate abc"
	Hint       string        // the next thing to try
	RetryAfter time.Duration // 0 = the source does not say
	Err        error         // what happened
	// Final says that the same call does not succeed later, whatever its kind says.
	Final bool
	// OneSandbox says that it speaks of one sandbox alone, as an answer of something
	// inside it: it says nothing about how its provider is.
	OneSandbox bool
}

// New makes an Error of a kind from a message.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Usage is New for a wrong flag, argument or configuration.
func Usage(format string, args ...any) *Error { return New(KindUsage, format, args...) }

// WithHint adds the next thing to try and returns the same error.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// At names the provider and what was being done and returns the same error.
func (e *Error) At(provider, op string) *Error {
	e.Provider, e.Op = provider, op
	return e
}

// Placed says at which provider and during what an error of any kind happened;
// nil stays nil.
func Placed(err error, provider, op string) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: KindOf(err), Provider: provider, Op: op, Hint: HintOf(err), RetryAfter: RetryAfterOf(err), Err: err}
}

// RetryAfterOf gives the first wait in the chain that a source asks for; 0 for none.
func RetryAfterOf(err error) time.Duration {
	for err != nil {
		var f *Error
		if !errors.As(err, &f) {
			return 0
		}
		if f.RetryAfter > 0 {
			return f.RetryAfter
		}
		err = f.Err
	}
	return 0
}

// Error joins provider, operation and cause: "prod: terminate abc: refused".
func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	for _, p := range []string{e.Provider, e.Op} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	switch {
	case e.Err != nil:
		parts = append(parts, e.without(e.Err.Error()))
	default:
		parts = append(parts, e.Kind.Row().Meaning)
	}
	return strings.Join(parts, ": ")
}

// without takes off a text what stands before it already: the cause may have been
// placed as well.
func (e *Error) without(text string) string {
	for _, said := range []string{e.Provider, e.Op} {
		if said != "" {
			text = strings.TrimPrefix(text, said+": ")
		}
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf finds the kind of any error. Joined errors of one kind have that
// kind, of several kinds KindPartial; context errors are known too. An error
// never has KindNone.
func KindOf(err error) Kind {
	if err == nil {
		return KindNone
	}
	switch e := err.(type) { //nolint:errorlint // walks the chain itself, to see joins on the way
	case *Error:
		if e.Kind == KindNone {
			return KindUnknown
		}
		return e.Kind
	case interface{ Unwrap() []error }:
		if joined(err, e.Unwrap()) {
			return common(e.Unwrap())
		}
		return firstKnown(e.Unwrap())
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return KindOf(inner)
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return KindCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return KindTimeout
	}
	return KindUnknown
}

// joined tells errors.Join, which lists failures, from an error that wraps a
// sentinel beside its cause.
func joined(err error, parts []error) bool {
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = part.Error()
	}
	return err.Error() == strings.Join(texts, "\n")
}

func firstKnown(errs []error) Kind {
	for _, err := range errs {
		if k := KindOf(err); k != KindUnknown {
			return k
		}
	}
	return KindUnknown
}

func common(errs []error) Kind {
	kind := KindNone
	for _, err := range errs {
		k := KindOf(err)
		if kind != KindNone && k != kind {
			return KindPartial
		}
		kind = k
	}
	return kind
}

// ExitCode is what the process returns for an error.
func ExitCode(err error) int { return KindOf(err).Row().Code }

// Retryable says that the same call may succeed later.
func Retryable(err error) bool {
	if f, ok := errors.AsType[*Error](err); ok && f.Final {
		return false
	}
	return KindOf(err).Row().Retryable
}

// Interrupted says that somebody's signal, or the operator's time limit, ended it: an
// exit code that goes before any result (DESIGN section 4).
func Interrupted(err error) bool {
	kind := KindOf(err)
	return kind == KindCanceled || kind == KindTerminated || kind == KindTimeout
}

// Inside marks an error of something inside one sandbox (OneSandbox).
func (e *Error) Inside() *Error {
	e.OneSandbox = true
	return e
}

// AboutOneSandbox says that an error, or what it wraps, speaks of one sandbox alone.
func AboutOneSandbox(err error) bool {
	for err != nil {
		var f *Error
		if !errors.As(err, &f) {
			return false
		}
		if f.OneSandbox {
			return true
		}
		err = f.Err
	}
	return false
}

// HintOf gives the first hint in the chain, or "".
func HintOf(err error) string {
	for err != nil {
		var f *Error
		if !errors.As(err, &f) {
			return ""
		}
		if f.Hint != "" {
			return f.Hint
		}
		err = f.Err
	}
	return ""
}
