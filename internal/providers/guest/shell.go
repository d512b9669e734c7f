package guest

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Shell runs one text inside a sandbox and gives what it printed and its exit
// code. An error means that it could not be run or that its end was not seen.
type Shell func(ctx context.Context, text string) (printed []byte, code int, err error)

// ErrNoRun says that sbx has started no program of that tag in the sandbox.
var ErrNoRun = errors.New("sbx has started no program in it")

// Start launches a program. fault.KindUsage for a tag that is in use,
// fault.KindUnavailable where its start was not seen and it may run.
func Start(ctx context.Context, sh Shell, p Program) error {
	printed, code, err := sh(ctx, Launch(p))
	switch {
	case err != nil:
		return err
	case code == ExitTaken:
		return fault.Usage("a program of this name has been started in it before")
	case code == ExitUnseen:
		return fault.New(fault.KindUnavailable, "the program was asked for, its start was not seen").WithHint("it may run: `sbx inspect` and `sbx logs` tell, once it has begun")
	case code != 0 || !bytes.HasPrefix(printed, []byte("started")):
		return fault.New(fault.KindLauncher, "the program could not be started: the shell inside exits %d", code)
	}
	return nil
}

// Exit is how a run ended, nil while it runs; ErrNoRun is inside the
// fault.KindNotFound of one that never was.
func Exit(ctx context.Context, sh Shell, tag string) (*sandbox.Exit, error) {
	printed, code, err := sh(ctx, ReadExit(tag))
	switch {
	case err != nil:
		return nil, err
	case code == ExitMissing:
		return nil, fault.New(fault.KindNotFound, "%w", ErrNoRun)
	}
	exit, err := ParseExit(printed)
	if err != nil {
		return nil, fault.New(fault.KindUnavailable, "%w", err)
	}
	return exit, nil
}

// Usage measures inside the sandbox.
func Usage(ctx context.Context, sh Shell, now time.Time) (sandbox.Usage, error) {
	printed, _, err := sh(ctx, Measure())
	if err != nil {
		return sandbox.Usage{}, err
	}
	u, err := ParseUsage(printed, now)
	if err != nil {
		return u, fault.New(fault.KindUnavailable, "%w", err)
	}
	return u, nil
}

// The pace of following: as fast as a reader notices, then ever slower.
const (
	followMin = 250 * time.Millisecond
	followMax = 4 * time.Second
)

// Logs reads what a run has written, each stream in its order. The lines carry
// no time. Following ends with the program, with its sandbox, or with ctx.
func Logs(ctx context.Context, sh Shell, tag string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		r := &reading{sh: sh, tag: tag}
		lines, err := r.all(ctx)
		if q.Tail > 0 && len(lines) > q.Tail {
			lines = lines[len(lines)-q.Tail:]
		}
		if q.Since.After(time.Now()) {
			lines = nil // what has no time cannot be from the future
		}
		if !Give(lines, yield) {
			return
		}
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		if q.Follow {
			r.follow(ctx, yield)
			return
		}
		Give(r.rest(), yield)
	}
}

// Give yields lines; false when the reader has had enough.
func Give(lines []sandbox.LogLine, yield func(sandbox.LogLine, error) bool) bool {
	for _, l := range lines {
		if !yield(l, nil) {
			return false
		}
	}
	return true
}

// reading is one reader's place in a run's output.
type reading struct {
	sh       Shell
	tag      string
	at       Offsets
	out, err []byte // of lines that have not ended
	ended    bool
}

// all reads until nothing more is there now.
func (r *reading) all(ctx context.Context) ([]sandbox.LogLine, error) {
	var lines []sandbox.LogLine
	for {
		more, err := r.once(ctx, &lines)
		if err != nil || !more {
			return lines, err
		}
	}
}

func (r *reading) once(ctx context.Context, lines *[]sandbox.LogLine) (more bool, err error) {
	printed, code, err := r.sh(ctx, ReadOutput(r.tag, r.at))
	switch {
	case err != nil:
		return false, err
	case code == ExitMissing:
		return false, fault.New(fault.KindNotFound, "%w", ErrNoRun)
	}
	o, err := ParseOutput(printed, r.at)
	if err != nil {
		return false, fault.New(fault.KindUnavailable, "%w", err)
	}
	if o.DroppedOut+o.DroppedErr > 0 {
		*lines = append(*lines, sandbox.LogLine{Stream: "sbx", Text: "older output was not kept", Source: Source})
	}
	r.at, r.ended = o.Next, o.Ended
	r.out = split("stdout", append(r.out, o.Out...), lines)
	r.err = split("stderr", append(r.err, o.Err...), lines)
	return o.More, nil
}

// maxLine is how long one line may grow, in bytes.
const maxLine = 1 << 20

// split takes whole lines off and gives what has not ended.
func split(stream string, text []byte, lines *[]sandbox.LogLine) []byte {
	for {
		line, rest, found := bytes.Cut(text, []byte("\n"))
		if !found && len(text) <= maxLine {
			return text
		}
		cut := !found || len(line) > maxLine
		if cut {
			line = text[:min(len(line), maxLine)]
		}
		if !found {
			rest = text[maxLine:]
		}
		*lines = append(*lines, sandbox.LogLine{Stream: stream, Text: strings.TrimSuffix(string(line), "\r"), Truncated: cut, Source: Source})
		text = rest
	}
}

// rest is what was written without a line end.
func (r *reading) rest() []sandbox.LogLine {
	var lines []sandbox.LogLine
	for stream, text := range map[string][]byte{"stdout": r.out, "stderr": r.err} {
		if len(text) > 0 {
			lines = append(lines, sandbox.LogLine{Stream: stream, Text: string(text), Source: Source})
		}
	}
	r.out, r.err = nil, nil
	return lines
}

// follow looks again until the end.
func (r *reading) follow(ctx context.Context, yield func(sandbox.LogLine, error) bool) {
	for pause := followMin; !r.ended; {
		if err := Wait(ctx, pause); err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		lines, err := r.all(ctx)
		if !Give(lines, yield) {
			return
		}
		if kind := fault.KindOf(err); kind == fault.KindNotFound || kind == fault.KindGone {
			break
		}
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		if pause = min(2*pause, followMax); len(lines) > 0 {
			pause = followMin
		}
	}
	Give(r.rest(), yield)
}

// Wait pauses, or returns the end of ctx as a fault.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &fault.Error{Kind: fault.KindOf(ctx.Err()), Err: context.Cause(ctx)}
	}
}
