package wirekit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// liveOutage is how long a log that is followed may be lost.
const liveOutage = time.Minute

// errEnough is the error of a read whose reader wants no more.
var errEnough = errors.New("the reader wants no more")

// LiveLog is the position of one reader in a log that an API streams, with a time in front of each line.
type LiveLog struct {
	Query       providers.LogQuery
	Since       time.Time // lines before it were read, or are not wanted
	Profile, Op string    // of errors
	// Open requests the log from Since.
	Open func(ctx context.Context) (*httpx.Stream, error)
	// Copy passes the lines of a stream to take until it ends, and returns the error of take.
	Copy func(body io.Reader, take func(sandbox.LogLine) error) error
	// GoesOn says whether a log that is silent may get more lines.
	GoesOn func(ctx context.Context) (bool, error)
}

// Deliver yields the lines. A log that is followed is opened again behind its last line where it is lost, and where its
// program has ended and is started again.
func (l *LiveLog) Deliver(ctx context.Context, yield func(sandbox.LogLine, error) bool) {
	pauses := poll.NewBackoff(50*time.Millisecond, time.Second)
	var lost time.Time // since when nothing has come; zero = it has
	for {
		before := l.Since
		err := l.readToEnd(ctx, yield)
		if err == nil && l.Query.Follow {
			err = l.endOfStream(ctx)
		}
		if l.Since.After(before) {
			lost = time.Time{}
			pauses.Reset()
		}
		if lost.IsZero() {
			lost = time.Now()
		}
		switch {
		case err == nil, errors.Is(err, errEnough), errors.Is(err, ErrOver):
			return
		case errors.Is(err, errAgain):
			if lost = (time.Time{}); pauses.Sleep(ctx) != nil {
				yield(sandbox.LogLine{}, fault.Placed(ContextFault(ctx), l.Profile, l.Op))
				return
			}
		case ctx.Err() != nil:
			yield(sandbox.LogLine{}, fault.Placed(ContextFault(ctx), l.Profile, l.Op))
			return
		case !l.Query.Follow || fault.KindOf(err) != fault.KindUnavailable || time.Since(lost) >= liveOutage || pauses.Sleep(ctx) != nil:
			yield(sandbox.LogLine{}, fault.Placed(err, l.Profile, l.Op))
			return
		}
		l.Query.Tail = 0
	}
}

// errAgain says that a stream has ended and its program is started again.
var errAgain = errors.New("its program is started again")

// endOfStream is errAgain where the stream has ended and its sandbox has not: the end of one run of a program that is
// started again. Nil = it is the end of the log.
func (l *LiveLog) endOfStream(ctx context.Context) error {
	switch more, err := l.GoesOn(ctx); {
	case err != nil:
		return err
	case more:
		return errAgain
	}
	return nil
}

// readToEnd reads the log from its position to its end.
func (l *LiveLog) readToEnd(ctx context.Context, yield func(sandbox.LogLine, error) bool) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := l.Open(inner)
	if err != nil {
		return err
	}
	defer func() { _ = s.Body.Close() }()
	var heard Pulse
	opened := l.Since
	if l.Query.Follow {
		heard.Beat()
		go heard.Watch(inner, l.GoesOn, cancel)
	}
	err = l.Copy(beating{s.Body, &heard}, func(line sandbox.LogLine) error { return l.pass(line, opened, yield) })
	if cause := context.Cause(inner); cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// pass gives a line to the reader and moves the position behind it. A line before the position at which the log was
// opened is left out: some APIs take whole seconds. Lines that come need not be in the order of their times.
func (l *LiveLog) pass(line sandbox.LogLine, opened time.Time, yield func(sandbox.LogLine, error) bool) error {
	if !line.At.IsZero() && line.At.Before(opened) {
		return nil
	}
	if next := line.At.Add(time.Nanosecond); !line.At.IsZero() && next.After(l.Since) {
		l.Since = next
	}
	if !yield(line, nil) {
		return errEnough
	}
	return nil
}

// beating is a reader that counts as a sign of life what comes.
type beating struct {
	from  io.Reader
	heard *Pulse
}

// Read implements io.Reader.
func (b beating) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.heard.Beat()
	return n, err
}

// CopyTimedLines takes the lines of a stream of plain text, each of which begins with its time.
func CopyTimedLines(body io.Reader, stream string, take func(sandbox.LogLine) error) error {
	lines := LineSplitter{Stream: stream}
	piece := make([]byte, 32<<10)
	for {
		n, err := body.Read(piece)
		found := lines.Add(piece[:n], nil)
		if errors.Is(err, io.EOF) {
			found = lines.Flush(found)
		}
		for _, l := range found {
			at, text := CutTime([]byte(l.Text))
			l.At, l.Text = at, string(text)
			if err := take(l); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// CutTime parts the time from the beginning of a line; zero where there is none.
func CutTime(line []byte) (time.Time, []byte) {
	stamp, text, found := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp[:min(len(stamp), len(time.RFC3339Nano))]))
	if err != nil || !found {
		return time.Time{}, line
	}
	return at.UTC(), text
}
