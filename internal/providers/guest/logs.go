package guest

import (
	"context"
	"iter"
	"time"

	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Pauses while following.
const (
	followMin = 250 * time.Millisecond
	followMax = 4 * time.Second
	// followOutage is how long the sandbox may not answer before following fails.
	followOutage = time.Minute
)

// Logs reads what a run has written, each stream in its order. The lines carry no time, so
// Since excludes lines only where it lies in the future; that of the newest is in NotAfter. Output that was not kept is
// reported as a line of the stream "sbx". Following ends with the program, with its
// sandbox, or with ctx.
func Logs(ctx context.Context, sh Shell, tag string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		r := &logReader{
			sh: sh, tag: tag, open: q.Follow && q.Open,
			out: wirekit.LineSplitter{Stream: "stdout", Source: Source}, err: wirekit.LineSplitter{Stream: "stderr", Source: Source},
		}
		err := r.readAvailable(ctx)
		if !q.Follow || r.ended {
			r.flushPartial()
		}
		r.lines = wirekit.LastLines(r.lines, q.Tail)
		if q.Since.After(time.Now()) {
			r.lines = nil // a line without a time cannot be from the future
		}
		r.reportGrowth()
		if !wirekit.YieldLines(r.takeLines(), yield) {
			return
		}
		switch {
		case err != nil:
			yield(sandbox.LogLine{}, err)
		case q.Follow && !r.ended:
			wirekit.Follow{First: followMin, Longest: followMax, Outage: followOutage}.Run(ctx, r.readMore, yield)
		}
	}
}

// logReader is the position of one reader in the output of a run.
type logReader struct {
	sh       Shell
	tag      string
	open     bool // reports lines that have not ended
	at       Offsets
	out, err wirekit.LineSplitter
	lines    []sandbox.LogLine // complete lines that were not yielded yet
	ended    bool
	cut      bool      // the line about lost bytes was written
	written  time.Time // when the newest output was written, by this machine's clock; zero = not known
}

func (r *logReader) readAvailable(ctx context.Context) error {
	for {
		more, err := r.readChunk(ctx)
		if err != nil || !more {
			return err
		}
	}
}

func (r *logReader) readChunk(ctx context.Context) (more bool, err error) {
	o, err := ReadOutputFrom(ctx, r.sh, r.tag, r.at)
	if err != nil {
		return false, err
	}
	r.take(o)
	return o.More, nil
}

// take adds what was read.
func (r *logReader) take(o Output) {
	if o.DroppedOut+o.DroppedErr > 0 {
		missing := o.DroppedOut + o.DroppedErr
		r.reportGap("older output was dropped", sandbox.LogGap{Bytes: &missing}, o.DroppedOut > 0, o.DroppedErr > 0)
	}
	if o.Cut && !r.cut {
		r.cut = true
		r.reportGap("some output could not be stored: the disk may be full", sandbox.LogGap{}, false, false)
	}
	r.at, r.ended, r.written = o.Next, o.Ended, time.Time{}
	if o.Idle != nil {
		r.written = time.Now().Add(-*o.Idle)
	}
	r.lines = r.out.Add(o.Out, r.lines)
	r.lines = r.err.Add(o.Err, r.lines)
}

// reportGap appends a line about bytes that are lost. In the streams that lost some, the
// line before the gap and the line after it are truncated.
func (r *logReader) reportGap(why string, missing sandbox.LogGap, out, err bool) {
	if out {
		r.lines = r.out.Tear(r.lines)
	}
	if err {
		r.lines = r.err.Tear(r.lines)
	}
	line := sandbox.MissingOutput(why, missing)
	line.Source = Source
	r.lines = append(r.lines, line)
}

// flushPartial takes lines without a line end as complete.
func (r *logReader) flushPartial() {
	r.lines = r.err.Flush(r.out.Flush(r.lines))
}

// reportGrowth adds what the lines that have not ended have grown by.
func (r *logReader) reportGrowth() {
	if r.open {
		r.lines = r.err.AddGrowth(r.out.AddGrowth(r.lines))
	}
}

func (r *logReader) takeLines() []sandbox.LogLine {
	lines := r.lines
	r.lines = nil
	for i := range lines {
		lines[i].NotAfter = r.written
	}
	return lines
}

// readMore is one read while following. A sandbox that is gone ends the log. After an
// outage it continues where it was.
func (r *logReader) readMore(ctx context.Context) (lines []sandbox.LogLine, ended bool, err error) {
	err = r.readAvailable(ctx)
	if wirekit.Missing(err) {
		r.ended, err = true, nil
	}
	if r.ended && err == nil {
		r.flushPartial()
	}
	r.reportGrowth()
	return r.takeLines(), r.ended, err
}
