// Package fault defines failures as data: the kinds, the exit code of each, its meaning for a
// cron job, and its hint. One table drives exit codes, JSON errors, help and docs.
//
// The package has no output and no knowledge of a provider or command, and imports only the
// standard library.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error is a failure with its kind and what to do next. Its text is one lower-case line without
// a full stop.
type Error struct {
	Kind       Kind
	Provider   string        // the profile, when one is at fault
	Op         string        // the operation: "terminate abc"
	Hint       string        // what to try next
	Excerpt    []string      // the source text and its marked place, shown below the message
	RetryAfter time.Duration // 0 = not specified by the source
	Err        error         // the cause
	// Final says that the same call cannot succeed later, whatever its kind.
	Final bool
	// OneSandbox says that the error concerns one sandbox alone, for example an error inside
	// it, and says nothing about the health of its provider.
	OneSandbox bool
	// Definite says that an answer settles every other question about one sandbox, and Silent that no
	// answer came in time, so that no other will: of a look at the sandbox they end the rest.
	Definite, Silent bool
}

// New makes an Error of a kind from a message.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Usage is New for a wrong flag, argument or configuration.
func Usage(format string, args ...any) *Error { return New(KindUsage, format, args...) }

// WithHint adds what to try next and returns the same error.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// At sets provider and operation and returns the same error.
func (e *Error) At(provider, op string) *Error {
	e.Provider, e.Op = provider, op
	return e
}

// Placed adds provider and operation to an error of any kind; nil stays nil.
func Placed(err error, provider, op string) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: KindOf(err), Provider: provider, Op: op, Hint: HintOf(err), RetryAfter: RetryAfterOf(err), Err: err}
}

// RetryAfterOf is the first wait in the chain that a source requests; 0 for none.
func RetryAfterOf(err error) time.Duration {
	if f := findFault(err, func(f *Error) bool { return f.RetryAfter > 0 }); f != nil {
		return f.RetryAfter
	}
	return 0
}

// findFault returns the first *Error in the chain that matches, outermost first; nil without one.
func findFault(err error, matches func(*Error) bool) *Error {
	for err != nil {
		f, ok := errors.AsType[*Error](err)
		if !ok || matches(f) {
			return f
		}
		err = f.Err
	}
	return nil
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
	case e.Err == context.DeadlineExceeded: //nolint:errorlint // that alone: a text around it says more
		parts = append(parts, "the time limit was reached")
	case e.Err != nil:
		parts = append(parts, e.trimPlace(e.Err.Error()))
	default:
		parts = append(parts, e.Kind.Row().Meaning)
	}
	return strings.Join(parts, ": ")
}

// trimPlace removes provider and operation from the start of the cause's text, which may have
// them too, and both together wherever a cause inside it has them.
func (e *Error) trimPlace(text string) string {
	if e.Provider != "" && e.Op != "" {
		place := e.Provider + ": " + e.Op + ": "
		for _, before := range []string{" ", "(", "\n"} { // "preprod: " is another provider
			text = strings.ReplaceAll(text, before+place, before)
		}
	}
	for _, prefix := range []string{e.Provider, e.Op} {
		if prefix != "" {
			text = strings.TrimPrefix(text, prefix+": ")
		}
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of any error. Joined errors of one kind have that kind, of several kinds
// KindPartial; context errors are known too. An error never has KindNone.
func KindOf(err error) Kind {
	if err == nil {
		return KindNone
	}
	switch e := err.(type) { //nolint:errorlint // unwraps by itself, to handle joins
	case *Error:
		if e.Kind == KindNone {
			return KindUnknown
		}
		return e.Kind
	case interface{ Unwrap() []error }:
		if isJoin(err, e.Unwrap()) {
			return commonKind(e.Unwrap())
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

// isJoin distinguishes errors.Join, a list of failures, from an error that wraps a sentinel and
// its cause.
func isJoin(err error, parts []error) bool {
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

func commonKind(errs []error) Kind {
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

// Retryable reports whether the same call may succeed later.
func Retryable(err error) bool {
	if f, ok := errors.AsType[*Error](err); ok && f.Final {
		return false
	}
	return KindOf(err).Row().Retryable
}

// Interrupted reports whether a signal or the operator's time limit ended the command: its exit
// code outranks any result.
func Interrupted(err error) bool {
	kind := KindOf(err)
	return kind == KindCanceled || kind == KindTerminated || kind == KindTimeout
}

// Inside marks an error as one of a single sandbox (OneSandbox).
func (e *Error) Inside() *Error {
	e.OneSandbox = true
	return e
}

// AboutOneSandbox reports whether an error, or one in its chain, concerns one sandbox alone.
func AboutOneSandbox(err error) bool {
	return findFault(err, func(f *Error) bool { return f.OneSandbox }) != nil
}

// IsDefinite reports whether an error, or one in its chain, is Definite.
func IsDefinite(err error) bool {
	return findFault(err, func(f *Error) bool { return f.Definite }) != nil
}

// SettlesLook reports whether an error, or one in its chain, is Definite or Silent.
func SettlesLook(err error) bool {
	return findFault(err, func(f *Error) bool { return f.Definite || f.Silent }) != nil
}

// ExcerptOf is the first excerpt in the chain.
func ExcerptOf(err error) []string {
	if f := findFault(err, func(f *Error) bool { return len(f.Excerpt) > 0 }); f != nil {
		return f.Excerpt
	}
	return nil
}

// HintOf is the first hint in the chain, or "".
func HintOf(err error) string {
	if f := findFault(err, func(f *Error) bool { return f.Hint != "" }); f != nil {
		return f.Hint
	}
	return ""
}
