package runlog

import (
	"context"
	"errors"
	"io"
	"math"
	"os"

	"sbx/internal/sandbox"
)

// reader is one read of a log: a walk from file to file.
type reader struct {
	dir    string
	follow bool
	done   <-chan struct{}
	emit   func(sandbox.LogLine) error
	notify *notifier
	skip   int // lines that end before the first one wanted
	passed amount
	placed bool // passed counts from the beginning of the output
	joiner joiner
	file   *os.File // the one being read; nil while there is none
	source *io.SectionReader
	lines  *scanner
}

// run reads what is there, and then follows. The watch begins first: what is
// written in between is then noticed twice rather than never.
func (r *reader) run(ctx context.Context, tail int, notify func(string) *notifier) error {
	if r.follow {
		r.notify = notify(r.dir)
	}
	files, err := openPair(r.dir)
	if err != nil {
		return err
	}
	defer func() { files.close() }()
	size, err := sizeOf(files.current)
	if err != nil {
		return err
	}
	start, err := findTail(files, size, tail, r.follow)
	if err != nil {
		return err
	}
	r.skip = start.skip
	r.placed = start.offset == 0 && start.inCurrent == (files.older == nil)
	if !start.inCurrent && files.older != nil {
		r.turnTo(files.older, start.offset, math.MaxInt64)
		files.older, start.offset = nil, 0
		if err := r.finish(ctx); err != nil {
			return err
		}
	}
	if files.current != nil {
		r.turnTo(files.current, start.offset, size)
		files.current = nil
	}
	if !r.follow {
		return r.last(ctx)
	}
	return r.followOn(ctx)
}

// turnTo leaves the file that was read for another one, from an offset. Without
// follow it is read up to the limit, the size that it had.
func (r *reader) turnTo(file *os.File, offset, limit int64) {
	if r.file != nil && r.file != file {
		r.file.Close()
	}
	r.file, r.source, r.lines = file, nil, nil
	if file == nil {
		return
	}
	if r.follow {
		limit = math.MaxInt64
	}
	r.source = io.NewSectionReader(file, 0, limit)
	r.source.Seek(offset, io.SeekStart) //nolint:errcheck // fails for negative offsets only
	r.lines = newScanner(r.source)
}

// drain emits every whole line that is there.
func (r *reader) drain(ctx context.Context) error {
	if r.lines == nil {
		return ctx.Err()
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := r.lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.record(line, false); err != nil {
			return err
		}
	}
}

// finish drains a file that does not grow any more, with what is torn at its end.
func (r *reader) finish(ctx context.Context) error {
	if err := r.drain(ctx); err != nil || r.lines == nil {
		return err
	}
	return r.record(r.lines.takeRest(), true)
}

// last finishes the last file, with the lines that nothing ends.
func (r *reader) last(ctx context.Context) error {
	if err := r.finish(ctx); err != nil {
		return err
	}
	return r.sever(false)
}

// sever gives up waiting for the ends of lines.
func (r *reader) sever(truncated bool) error {
	for _, l := range r.joiner.rest() {
		l.Truncated = l.Truncated || truncated
		if err := r.line(l); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) record(line []byte, torn bool) error {
	rec, ok := parseRecord(line)
	if !ok {
		return r.head(line)
	}
	r.passed.add(rec.at, rec.tag, rec.text)
	l, ended := r.joiner.add(rec, torn)
	if !ended {
		return nil
	}
	return r.line(l)
}

// head takes the head of a file: it says what is missing between what was read before
// and what follows.
func (r *reader) head(line []byte) error {
	before, ok := parseHead(line)
	if !ok {
		return nil
	}
	gap, found := r.passed.missing(before)
	placed := r.placed
	r.passed, r.placed = before, true
	if !placed || !found {
		return nil
	}
	return r.emit(gap)
}

func (r *reader) line(l sandbox.LogLine) error {
	if r.skip > 0 {
		r.skip--
		return nil
	}
	return r.emit(l)
}

func (r *reader) close() {
	r.turnTo(nil, 0, 0)
	if r.notify != nil {
		r.notify.close()
	}
}
