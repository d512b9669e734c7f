package journal

import (
	"sync"
	"time"

	"sbx/internal/fault"
)

// Writer appends to the journal of one run. It is safe for concurrent use; lines that are
// appended at the same time share one sync.
type Writer struct {
	run  string
	now  func() time.Time
	file File

	mu       sync.Mutex
	moved    *sync.Cond // durable or failed changed
	seq      int
	before   Log    // the run before, for the first line
	waiting  []byte // lines that are not written yet
	queued   int    // how many lines were ever queued
	durable  int    // how many of them are written, and on disk where that was asked for
	mustSync bool   // a waiting line has to be on the disk
	busy     bool   // one goroutine writes and syncs for all
	failed   error  // the first failure; nothing is written after it
}

// Create begins the journal of a new run.
func Create(d Disk, run string, now func() time.Time) (*Writer, error) {
	before, err := newest(d)
	if err != nil {
		return nil, unwritableError(err)
	}
	file, err := d.Create(run + suffix)
	if err != nil {
		return nil, unwritableError(err)
	}
	w := newWriter(run, now, file, 0)
	w.before = before
	return w, nil
}

// Extend continues the journal of an interrupted run. An incomplete last line is dropped; a
// journal that is damaged is fault.KindRefused.
func Extend(d Disk, log Log, now func() time.Time) (*Writer, error) {
	if log.Broken != "" {
		return nil, fault.New(fault.KindRefused, "the journal of %s was changed or damaged: %s", log.Run, log.Broken).
			WithHint("list the sandboxes, and terminate them in a new run")
	}
	if log.Count == 0 {
		return nil, fault.New(fault.KindRefused, "the journal of %s has nothing to continue", log.Run)
	}
	file, err := d.Extend(log.Run+suffix, log.size)
	if err != nil {
		return nil, unwritableError(err)
	}
	return newWriter(log.Run, now, file, log.last.Seq), nil
}

func newWriter(run string, now func() time.Time, file File, seq int) *Writer {
	w := &Writer{run: run, now: now, file: file, seq: seq}
	w.moved = sync.NewCond(&w.mu)
	return w
}

// Run names the run.
func (w *Writer) Run() string { return w.run }

// Append writes one entry and returns when it is durable. After a failure every later
// Append fails too: a journal with a gap proves nothing.
func (w *Writer) Append(kind string, data any) error { return w.append(kind, data, true) }

// AppendSoon writes one entry and does not wait for the disk: the next Append does, for both. The end of
// this process does not lose it, that of the machine may.
func (w *Writer) AppendSoon(kind string, data any) error { return w.append(kind, data, false) }

func (w *Writer) append(kind string, data any, durable bool) error {
	text, err := compactJSON(data)
	if err != nil {
		return unwritableError(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return w.failed
	}
	e := Entry{Seq: w.seq + 1, At: w.now().UTC(), Kind: kind, Run: w.run, Data: text}
	if e.Seq == 1 {
		e.After, e.AfterSeq = w.before.Run, w.before.Count
	}
	e.Sum = e.computeSum()
	line, err := e.encodeLine()
	if err != nil {
		return unwritableError(err)
	}
	w.seq = e.Seq
	w.waiting = append(w.waiting, line...)
	w.queued++
	w.mustSync = w.mustSync || durable
	return w.flushLines(w.queued)
}

// flushLines returns when the first n lines are durable. One of the waiting goroutines
// writes for all.
func (w *Writer) flushLines(n int) error {
	for w.durable < n && w.failed == nil {
		if w.busy {
			w.moved.Wait()
			continue
		}
		lines, upTo, durably := w.waiting, w.queued, w.mustSync
		w.waiting, w.busy, w.mustSync = nil, true, false
		w.mu.Unlock()
		err := w.writeWaiting(lines, durably)
		w.mu.Lock()
		w.busy = false
		if err != nil {
			w.failed = unwritableError(err)
		} else {
			w.durable = upTo
		}
		w.moved.Broadcast()
	}
	if w.durable < n {
		return w.failed
	}
	return nil
}

func (w *Writer) writeWaiting(lines []byte, durably bool) error {
	if _, err := w.file.Write(lines); err != nil || !durably {
		return err
	}
	return w.file.Sync()
}

// Close closes the file. What was appended is durable already.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = fault.New(fault.KindUnknown, "the journal of %s is closed", w.run)
	}
	return w.file.Close()
}

// unwritableError ends a run: nothing may be ended without its line.
func unwritableError(err error) error {
	return fault.New(fault.KindUnknown, "the journal cannot be written: %w", err).
		WithHint("sbx terminates nothing without a journal entry: check that the disk of the state directory is neither full nor read-only")
}
