package output

import (
	"errors"
	"slices"
	"strings"

	"sbx/internal/fault"
)

// ShownError marks an error that the operator has already seen, so that it is
// printed once. fault.KindOf and fault.ExitCode see through it.
type ShownError struct{ err error }

// Error is the text of what was shown.
func (s ShownError) Error() string { return s.err.Error() }

// Unwrap gives what was shown.
func (s ShownError) Unwrap() error { return s.err }

func reportedError(err error) error {
	if err == nil {
		return nil
	}
	return ShownError{fixKind(err)}
}

// fixKind fixes the kind of joined errors, which a wrapper would hide.
func fixKind(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == kindOf(err) {
		return err
	}
	return &fault.Error{Kind: kindOf(err), Err: err}
}

// Report prints an error that reached the top without a document. What was shown
// already, and a gone reader of stdout, is not printed. In the structured formats
// a wrong use (exit 2) is one JSON object on stderr: {"schema":...,"error":E,"errors":[E],"exit_code":2}.
func (p *Printer) Report(err error) {
	if _, seen := errors.AsType[ShownError](err); err == nil || seen || errors.Is(err, ErrClosed) {
		return
	}
	if p.Format.Structured() && fault.KindOf(err) == fault.KindUsage {
		p.screen.writeErr(string(p.usageObject(err)))
		return
	}
	p.printErrors([]error{err})
}

// UsageSchema names the form of a wrong use.
const UsageSchema = "sbx.error/v1"

func (p *Printer) usageObject(err error) []byte {
	object := Fields{
		{"schema", UsageSchema}, {"error", p.errorObject(err)}, {"errors", p.errorObjects([]error{err})}, {"exit_code", int64(fault.ExitCode(err))},
	}
	return append(appendJSON(nil, object, compact), '\n')
}

// printErrors prints errors and hints on stderr, each once. With Quiet, what a check has found is its
// result in one line, without a label and a hint.
func (p *Printer) printErrors(errs []error) {
	var b strings.Builder
	var texts, hints []string
	for _, err := range flattenErrors(errs) {
		text, label, result := oneLine(err), "error: ", p.Quiet && fault.KindOf(err) == fault.KindFound
		if result {
			label = ""
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
			b.WriteString(p.stderrLine(label, text))
			for _, line := range fault.ExcerptOf(err) {
				b.WriteString(p.stderrLine("  ", line))
			}
			b.WriteString(p.causeChain(err))
		}
		if hint := p.hintText(err); hint != "" && !result && !slices.Contains(hints, hint) {
			hints = append(hints, hint)
			b.WriteString(p.stderrLine("hint: ", hint))
		}
	}
	if b.Len() > 0 {
		p.screen.writeErr(b.String())
	}
}

// hintText is the first hint of an error. Rooms below quote commands as `sbx ...`;
// the operator reads them under the name that this program was called by.
func (p *Printer) hintText(err error) string {
	return strings.ReplaceAll(fault.HintOf(err), "`sbx ", "`"+p.name+" ")
}

// causeChain lists, with Verbose, the kind of an error and what it wraps.
func (p *Printer) causeChain(err error) string {
	if p.Verbose < 1 {
		return ""
	}
	row := fault.KindOf(err).Row()
	var out strings.Builder
	out.WriteString(p.stderrLine("detail: ", "kind "+string(row.Kind)+", exit "+string(appendJSON(nil, row.Code, compact))))
	last := oneLine(err)
	for err = errors.Unwrap(err); err != nil; err = errors.Unwrap(err) {
		if text := oneLine(err); text != last {
			out.WriteString(p.stderrLine("detail: ", "caused by: "+text))
			last = text
		}
	}
	return out.String()
}

// flattenErrors takes joined errors apart. Errors that only happen to wrap several
// keep their own text.
func flattenErrors(errs []error) []error {
	var out []error
	for _, err := range errs {
		if err == nil {
			continue
		}
		if parts := joinedParts(err); parts != nil {
			out = append(out, flattenErrors(parts)...)
			continue
		}
		out = append(out, err)
	}
	return out
}

func joinedParts(err error) []error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f == err && f.Provider == "" && f.Op == "" && f.Hint == "" && f.Err != nil { //nolint:errorlint // asks about this very value, not about what it wraps
		return joinedParts(f.Err)
	}
	list, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	texts := make([]string, 0, len(list.Unwrap()))
	for _, part := range list.Unwrap() {
		texts = append(texts, part.Error())
	}
	if err.Error() != strings.Join(texts, "\n") {
		return nil
	}
	return list.Unwrap()
}

func oneLine(err error) string { return joinLines(err.Error()) }

func joinLines(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") }

// Failure is one error.
type Failure struct {
	Provider          string     `json:"provider"`            // The profile that is at fault; empty for none in particular.
	Kind              fault.Kind `json:"kind"`                // What kind of failure it is; `sbx help exit-codes` lists them.
	Message           string     `json:"message"`             // What went wrong, in one line.
	Hint              string     `json:"hint"`                // What to try next; empty for nothing in particular.
	Retryable         bool       `json:"retryable"`           // The same call may succeed later.
	RetryAfterSeconds *float64   `json:"retry_after_seconds"` // How long the provider asks to wait; null where it does not say.
}

// errorObject is an error as documents have it. The message leaves out the provider, which has a
// key of its own.
func (p *Printer) errorObject(err error) Fields {
	failure := Failure{Kind: fault.KindOf(err).Row().Kind, Message: oneLine(err), Hint: Redact(p.hintText(err), p.Secrets), Retryable: fault.Retryable(err)}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		if f.Provider != "" {
			failure.Provider, failure.Message = f.Provider, strings.TrimPrefix(failure.Message, f.Provider+": ")
		}
		if f.RetryAfter > 0 {
			failure.RetryAfterSeconds = new(Seconds(f.RetryAfter))
		}
	}
	failure.Message = Redact(failure.Message, p.Secrets)
	return FieldsOf(failure)
}

func (p *Printer) errorObjects(errs []error) []any {
	flat := flattenErrors(errs)
	out := make([]any, len(flat))
	for i, err := range flat {
		out[i] = p.errorObject(err)
	}
	return out
}

// ConcludeAll gives the error that decides the exit code of several documents, each of which has
// shown its own: by the rule of a list. Done = one of them is whole.
func ConcludeAll(shown []error, done bool) error { return reportedError(decisiveError(shown, done)) }

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

func wasInterrupted(errs []error) bool {
	kind := mostUrgent(errs)
	return kind == fault.KindCanceled || kind == fault.KindTerminated
}
