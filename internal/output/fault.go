package output

import (
	"errors"
	"strings"

	"sbx/internal/fault"
)

// errorObject is E of the JSON envelope (CLI, "JSON"). The message leaves out
// the provider, which has a key of its own; retry_after_seconds is null where
// the source does not say.
func (p *Printer) errorObject(err error) Fields {
	row := fault.KindOf(err).Row()
	provider, message := "", oneLine(err)
	var retryAfter any
	if f, ok := errors.AsType[*fault.Error](err); ok {
		if f.Provider != "" {
			provider, message = f.Provider, strings.TrimPrefix(message, f.Provider+": ")
		}
		if f.RetryAfter > 0 {
			retryAfter = Seconds(f.RetryAfter)
		}
	}
	return Fields{
		{"provider", provider},
		{"kind", string(row.Kind)},
		{"message", Redact(message, p.Secrets)},
		{"hint", Redact(p.hintText(err), p.Secrets)},
		{"retryable", fault.Retryable(err)},
		{"retry_after_seconds", retryAfter},
	}
}

func (p *Printer) errorObjects(errs []error) []any {
	flat := flattenErrors(errs)
	out := make([]any, len(flat))
	for i, err := range flat {
		out[i] = p.errorObject(err)
	}
	return out
}

// decisiveError gives the error that decides the exit code: a signal
// before the operator's time limit before the result; one common kind, or
// fault.KindPartial where kinds differ or something was done.
func decisiveError(errs []error, done bool) error {
	joined := errors.Join(errs...)
	if joined == nil {
		return nil
	}
	kind := kindOf(joined)
	if urgent := mostUrgent(errs); urgent != fault.KindNone {
		kind = urgent
	} else if done && spoiledByPart(kind) {
		kind = fault.KindPartial
	}
	if len(errs) == 1 && fault.KindOf(errs[0]) == kind {
		return errs[0]
	}
	return &fault.Error{Kind: kind, Err: joined}
}

// kindOf is fault.KindOf, but never fault.KindNone: an error without a kind must not exit 0.
func kindOf(err error) fault.Kind {
	if kind := fault.KindOf(err); kind != fault.KindNone {
		return kind
	}
	return fault.KindUnknown
}

func mostUrgent(errs []error) fault.Kind {
	for _, kind := range []fault.Kind{fault.KindTerminated, fault.KindCanceled, fault.KindTimeout} {
		for _, err := range flattenErrors(errs) {
			if fault.KindOf(err) == kind {
				return kind
			}
		}
	}
	return fault.KindNone
}

// spoiledByPart says that a kind means "this part failed": the whole is partial if other parts
// succeeded. Other kinds describe the whole.
func spoiledByPart(kind fault.Kind) bool {
	switch kind {
	case fault.KindUnknown, fault.KindUsage, fault.KindAuth, fault.KindNotFound, fault.KindGone,
		fault.KindUnavailable, fault.KindUnsupported:
		return true
	default:
		return false
	}
}

// wasInterrupted says that a signal ended the work.
func wasInterrupted(errs []error) bool {
	kind := mostUrgent(errs)
	return kind == fault.KindCanceled || kind == fault.KindTerminated
}
