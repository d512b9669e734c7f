package runs

import (
	"errors"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Journal takes entries; each is durable when Append returns. It is called concurrently. A
// *journal.Writer is one.
type Journal interface {
	Append(kind string, data any) error
}

// Policy is what it means that an entry cannot be written.
type Policy int

const (
	// Must is that of runs by a rule: no intent on the disk, no request.
	Must Policy = iota
	// Best is that of ends that somebody has named, and of tasks: an end does not depend on the journal, the
	// first entry that is lost is warned of, and a disk that hangs is waited for once, for slowDisk.
	Best
)

// Writer writes what a run is about to do and what came of it. It is the only writer of intents, answers
// and results. Secrets are removed here.
type Writer struct {
	Journal Journal // nil = none could be made: by Must nothing may be requested
	Policy  Policy
	Redact  func(string) string // nil = nothing is secret
	Warn    func(string)        // of what is lost; by Best alone

	mu     sync.Mutex
	failed error            // the first entry that was lost
	ended  []sandbox.Ending // by Best
}

// Intent writes what is about to be requested. After an error nothing may be requested.
func (w *Writer) Intent(i Intent) error {
	i.Logs = slices.Clone(i.Logs)
	for n, line := range i.Logs {
		i.Logs[n] = w.redact(line)
	}
	i.LogsError, i.Reason = w.redact(i.LogsError), w.redact(i.Reason)
	i.Record, i.Reality = w.redactEvidence(i.Record), w.redactEvidence(i.Reality)
	return w.append(EntryIntent, i)
}

// Answer writes the answer to the request. Where it is lost, a resume asks again.
func (w *Writer) Answer(ref sandbox.Ref, r sandbox.EndRequest) error {
	return w.append(EntryAnswer, Answer{Ref: ref, Request: *w.redactRequest(&r)})
}

// Result writes an outcome. A journal that fails does not undo what was seen.
func (w *Writer) Result(e sandbox.Ending) error {
	if w.Policy == Best {
		w.mu.Lock()
		w.ended = append(w.ended, e)
		w.mu.Unlock()
	}
	r := Result{
		Ref: e.Ref, Outcome: e.Outcome, Reason: w.redact(e.Reason), Seconds: e.Duration.Seconds(),
		Evidence: append([]sandbox.Evidence{}, w.redactEvidence(e.Evidence)...), Request: w.redactRequest(e.Request),
	}
	return w.append(EntryResult, r)
}

// End writes the last entry.
func (w *Writer) End(e End) error {
	e.Error = w.redact(e.Error)
	return w.append(EntryEnd, e)
}

func (w *Writer) append(kind string, data any) error {
	switch {
	case w.Journal != nil && w.Policy == Best:
		if errors.Is(w.Failed(), errSlow) {
			return nil
		}
		_, err := soon(func() (struct{}, error) { return struct{}{}, w.Journal.Append(kind, data) })
		return w.lost(err)
	case w.Journal != nil:
		return w.lost(w.Journal.Append(kind, data))
	case w.Policy == Must:
		return fault.New(fault.KindRefused, "sbx does nothing without a journal")
	}
	return nil
}

// slowDisk is how long an end that somebody has named waits for the disk of its journal.
const slowDisk = 2 * time.Second

var errSlow = errors.New("its disk has not answered for " + sandbox.FormatDuration(slowDisk))

// soon gives up on a call to a disk after slowDisk. The call itself goes on.
func soon[T any](call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-time.After(slowDisk):
		var none T
		return none, errSlow
	}
}

// lost says what an entry that is not on the disk means by the policy.
func (w *Writer) lost(err error) error {
	if err == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.failed == nil
	if first {
		w.failed = err
	}
	if w.Policy == Must {
		return err
	}
	if first && w.Warn != nil {
		w.Warn("what is done is not in the journal: " + err.Error())
	}
	return nil
}

// Failed is why an entry of this writer was lost; nil = none was.
func (w *Writer) Failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (w *Writer) redact(text string) string {
	if w.Redact == nil {
		return text
	}
	return w.Redact(text)
}

func (w *Writer) redactRequest(r *sandbox.EndRequest) *sandbox.EndRequest {
	if r == nil {
		return nil
	}
	plain := *r
	plain.Detail = w.redact(plain.Detail)
	return &plain
}

// redactEvidence removes secrets from evidence, which contains answers of providers.
func (w *Writer) redactEvidence(evidence []sandbox.Evidence) []sandbox.Evidence {
	evidence = slices.Clone(evidence)
	for i := range evidence {
		evidence[i].Value = w.redact(evidence[i].Value)
	}
	return evidence
}
