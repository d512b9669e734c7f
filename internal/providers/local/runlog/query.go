package runlog

import (
	"context"
	"errors"
	"iter"
	"time"

	"sbx/internal/sandbox"
)

// Query narrows a read.
type Query struct {
	Since  time.Time // lines before it are left out; zero = from the start
	Tail   int       // the last n lines; 0 or less = all
	Follow bool      // go on until Done is closed and everything is read
	// Done says that the sandbox has ended and its Writer is closed. Nil never
	// ends a Follow; ctx does.
	Done <-chan struct{}
}

// Read gives the lines of a sandbox's output in the order in which they ended,
// oldest first. Missing files are no lines, records that cannot be read are
// left out, what rotation has removed is told by a line with a Gap, and a line that is cut short at the end of the files or by a
// rotation is given as far as it is there, marked as truncated. After a rotation
// the first line may be the end of a longer one.
//
// Without Follow it gives what is there at the call. With Follow it ends
// without an error when Done is closed or the directory is removed. The end of
// ctx yields its error: the output was not read to its end. Any other error is
// the disk's. An error is the last thing yielded.
func Read(ctx context.Context, dir string, q Query) iter.Seq2[sandbox.LogLine, error] {
	return read(ctx, dir, q, newNotifier)
}

// errEnough is the caller's break out of the loop.
var errEnough = errors.New("the reader was told to stop")

func read(ctx context.Context, dir string, q Query, notify func(string) *notifier) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		r := &reader{dir: dir, follow: q.Follow, done: q.Done}
		r.emit = func(l sandbox.LogLine) error {
			if !l.At.Before(q.Since) && !yield(l, nil) {
				return errEnough
			}
			return nil
		}
		defer r.close()
		err := r.run(ctx, q.Tail, notify)
		if err != nil && !errors.Is(err, errEnough) {
			yield(sandbox.LogLine{}, err)
		}
	}
}
