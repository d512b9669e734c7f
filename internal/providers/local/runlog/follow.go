package runlog

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

// followLog reads on as the log grows. It checks for the end and for a rotation before it
// reads: an ended log or a rotated file gets no more bytes, so the read that follows is
// complete.
func (r *reader) followLog(ctx context.Context) error {
	for {
		ended, moved := r.logEnded(), !isCurrent(r.dir, r.file)
		if err := r.emitLines(ctx); err != nil {
			return err
		}
		more, err := r.nextSource(ctx, moved)
		switch {
		case err != nil:
			return err
		case more:
			continue
		case ended:
			return r.finishLog(ctx)
		}
		if err := r.reportOpenLines(); err != nil {
			return err
		}
		if err := r.notify.waitForChange(ctx, r.done); err != nil {
			return err
		}
	}
}

// logEnded reports whether nothing more will be written: Done is closed or the directory is
// removed.
func (r *reader) logEnded() bool {
	select {
	case <-r.done:
		return true
	default:
	}
	_, err := os.Stat(r.dir)
	return errors.Is(err, fs.ErrNotExist)
}

// nextSource continues at the next file or, after a truncation, at the start; false when there
// is none.
func (r *reader) nextSource(ctx context.Context, moved bool) (bool, error) {
	switch {
	case moved:
		return r.followRotation(ctx)
	case r.wasTruncated():
		r.switchTo(r.file, 0, math.MaxInt64)
		return true, nil
	}
	return false, nil
}

// followRotation finishes the current file and switches to the next one; false when there is
// none yet. When more than one rotation has passed, the log has a gap, and open lines end
// there.
func (r *reader) followRotation(ctx context.Context) (bool, error) {
	files, err := openPair(r.dir)
	if err != nil {
		return false, err
	}
	defer func() { files.closeFiles() }()
	next := r.isReading(files.older)
	if files.current == nil && files.older != nil && !next {
		return false, nil // a removal or a rotation is in progress; the next event shows which
	}
	if err := r.leaveFile(ctx, next); err != nil {
		return false, err
	}
	if files.current == nil {
		if files.older == nil {
			// An open file would prevent the event for the removal of its directory.
			r.switchTo(nil, 0, 0)
		}
		return false, nil
	}
	if files.older != nil && !next {
		r.switchTo(files.older, 0, math.MaxInt64)
		files.older = nil
		if err := r.finishFile(ctx); err != nil {
			return false, err
		}
	}
	r.switchTo(files.current, 0, math.MaxInt64)
	files.current = nil
	return true, nil
}

// leaveFile finishes the current file; unless the next one is known, a gap follows it.
func (r *reader) leaveFile(ctx context.Context, next bool) error {
	if err := r.finishFile(ctx); err != nil || r.file == nil || next {
		return err
	}
	return r.endOpenLines(true)
}

// isReading reports whether this file is the current one of the reader.
func (r *reader) isReading(file *os.File) bool {
	if file == nil {
		return false
	}
	info, err := file.Stat()
	return err == nil && sameFile(r.file, info)
}

// wasTruncated reports whether the file is shorter than what was read of it.
func (r *reader) wasTruncated() bool {
	if r.file == nil {
		return false
	}
	size, err := openFileSize(r.file)
	if err != nil {
		return false
	}
	at, err := r.source.Seek(0, io.SeekCurrent)
	return err == nil && size < at
}

// pollEvery is the polling interval of a follower without a watch, for example because the
// user's inotify instances are used up.
const pollEvery = 500 * time.Millisecond

// notifier signals when to read a log again: after a change in its directory, or at intervals.
type notifier struct {
	watcher *fsnotify.Watcher
	ticker  *time.Ticker
	events  <-chan fsnotify.Event
	errors  <-chan error
	ticks   <-chan time.Time
}

// newNotifier watches the directory and not the files, which a rotation replaces.
func newNotifier(dir string) *notifier {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return newPoller()
	}
	if watcher.Add(dir) != nil {
		watcher.Close() //nolint:errcheck // it watches nothing
		return newPoller()
	}
	return &notifier{watcher: watcher, events: watcher.Events, errors: watcher.Errors}
}

func newPoller() *notifier {
	ticker := time.NewTicker(pollEvery)
	return &notifier{ticker: ticker, ticks: ticker.C}
}

// waitForChange returns nil when it is time to read or done is closed. An error of the watch
// is a lost event, and a reason to read.
func (n *notifier) waitForChange(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
	case <-n.events:
	case <-n.errors: //nolint:errcheck // a lost event is only a reason to read
	case <-n.ticks:
	}
	return nil
}

func (n *notifier) closeWatch() {
	if n.watcher != nil {
		n.watcher.Close() //nolint:errcheck // it is read-only
	}
	if n.ticker != nil {
		n.ticker.Stop()
	}
}
