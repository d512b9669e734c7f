package runlog

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
)

// followOn reads on as the log grows. What it looks at, it looks at before it
// drains: a log that has ended or a file that was rotated away gets no more
// bytes, so a drain that comes later is complete.
func (r *reader) followOn(ctx context.Context) error {
	for {
		ended, moved := r.ended(), !isCurrent(r.dir, r.file)
		if err := r.drain(ctx); err != nil {
			return err
		}
		more, err := r.turn(ctx, moved)
		switch {
		case err != nil:
			return err
		case more:
			continue
		case ended:
			return r.last(ctx)
		}
		if err := r.notify.wait(ctx, r.done); err != nil {
			return err
		}
	}
}

// ended says that nothing more will be written: Done is closed or the
// directory is gone.
func (r *reader) ended() bool {
	select {
	case <-r.done:
		return true
	default:
	}
	_, err := os.Stat(r.dir)
	return errors.Is(err, fs.ErrNotExist)
}

// turn goes on to where the log goes on; false when it is there already.
func (r *reader) turn(ctx context.Context, moved bool) (bool, error) {
	switch {
	case moved:
		return r.moveOn(ctx)
	case r.shrunk():
		r.turnTo(r.file, 0, math.MaxInt64)
		return true, nil
	}
	return false, nil
}

// moveOn finishes the file that is read and turns to the ones after it; false
// when there are none yet. When more than one rotation has passed, the log has
// a gap, and open lines end there.
func (r *reader) moveOn(ctx context.Context) (bool, error) {
	files, err := openPair(r.dir)
	if err != nil {
		return false, err
	}
	defer func() { files.close() }()
	next := r.isFile(files.older)
	if files.current == nil && files.older != nil && !next {
		return false, nil // the log is being removed or rotated: the next event tells which
	}
	if err := r.leave(ctx, next); err != nil {
		return false, err
	}
	if files.current == nil {
		if files.older == nil {
			// An open file would keep the system from reporting the end of its directory.
			r.turnTo(nil, 0, 0)
		}
		return false, nil
	}
	if files.older != nil && !next {
		r.turnTo(files.older, 0, math.MaxInt64)
		files.older = nil
		if err := r.finish(ctx); err != nil {
			return false, err
		}
	}
	r.turnTo(files.current, 0, math.MaxInt64)
	files.current = nil
	return true, nil
}

// leave finishes the file that is read; unless it is known which one is next,
// the log has a gap behind it.
func (r *reader) leave(ctx context.Context, next bool) error {
	if err := r.finish(ctx); err != nil || r.file == nil || next {
		return err
	}
	return r.sever(true)
}

// isFile says that the file is the one that is read.
func (r *reader) isFile(file *os.File) bool {
	if file == nil {
		return false
	}
	info, err := file.Stat()
	return err == nil && same(r.file, info)
}

// shrunk says that somebody has cut the file to less than what was read of it.
func (r *reader) shrunk() bool {
	if r.file == nil {
		return false
	}
	size, err := sizeOf(r.file)
	if err != nil {
		return false
	}
	at, err := r.source.Seek(0, io.SeekCurrent)
	return err == nil && size < at
}
