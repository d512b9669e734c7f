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
	// JournalRequired is that of runs by a rule: no intent on the disk, no request.
	JournalRequired Policy = iota
	// BestEffort is that of ends that somebody has named, and of tasks: an end does not depend on the journal, the
	// first entry that is lost is warned of, and a disk that hangs is waited for once, for slowDisk.
	BestEffort
)

// Writer writes what a run is about to do and what came of it. It is the only writer of intents, answers
// and results. Secrets are removed here.
type Writer struct {
	Journal Journal // nil = none could be made: by JournalRequired nothing may be requested
	Policy  Policy
	Redact  func(string) string // nil = nothing is secret
	Warn    func(string)        // of what is lost; by BestEffort alone

	mu     sync.Mutex
	failed error            // the first entry that was lost
	ended  []sandbox.Ending // by BestEffort
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
	if w.Policy == BestEffort {
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

// Conclude writes the last entry.
func (w *Writer) Conclude(c Conclusion) error {
	c.Error = w.redact(c.Error)
	return w.append(EntryConclusion, c)
}

func (w *Writer) append(kind string, data any) error {
	switch {
	case w.Journal != nil && w.Policy == BestEffort:
		if errors.Is(w.Failed(), errSlow) {
			return nil
		}
		_, err := withinSlowDisk(func() (struct{}, error) { return struct{}{}, w.Journal.Append(kind, data) })
		return w.afterAppend(err)
	case w.Journal != nil:
		return w.afterAppend(w.Journal.Append(kind, data))
	case w.Policy == JournalRequired:
		return fault.New(fault.KindRefused, "sbx does nothing without a journal")
	}
	return nil
}

// slowDisk is how long an end that somebody has named waits for the disk of its journal.
const slowDisk = 2 * time.Second

var errSlow = errors.New("its disk has not answered for " + sandbox.FormatDuration(slowDisk))

// withinSlowDisk gives up on a call to a disk after slowDisk. The call itself goes on.
func withinSlowDisk[T any](call func() (T, error)) (T, error) {
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

// afterAppend decides by the policy what the error of an append means: by BestEffort the run goes on without the entry.
func (w *Writer) afterAppend(err error) error {
	if err == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.failed == nil
	if first {
		w.failed = err
	}
	if w.Policy == JournalRequired {
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
