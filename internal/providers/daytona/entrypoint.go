package daytona

import (
	"context"
	"net/http"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

const (
	followFirst = 500 * time.Millisecond // between two looks at a log that is followed
	followMost  = 5 * time.Second
	// followOutage is how long nothing may answer before following gives up, as for the
	// logs of programs that sbx has started.
	followOutage = time.Minute
)

// entrypoint is one reader's place in the log of the image's own program, which
// each answer brings whole: how many bytes of each stream were given.
type entrypoint struct {
	c     *Client
	id    string
	given struct{ stdout, stderr int }
}

// give yields what there is, then what comes until the sandbox ends. A toolbox
// that knows no entrypoint has an empty log.
func (e *entrypoint) give(ctx context.Context, q providers.LogQuery, yield func(sandbox.LogLine, error) bool) {
	fresh, err := e.look(ctx, q.Follow)
	if httpx.Status(err) == http.StatusNotFound {
		err = nil
	}
	if q.Tail > 0 {
		fresh = fresh[max(0, len(fresh)-q.Tail):]
	}
	answered := time.Now()
	for pause := followFirst; ; pause = min(2*pause, followMost) {
		outage := q.Follow && fault.KindOf(err) == fault.KindUnavailable && time.Since(answered) < followOutage
		if err == nil {
			answered = time.Now()
		}
		if err != nil && !outage {
			yield(sandbox.LogLine{}, e.c.inside(err))
			return
		}
		if len(fresh) > 0 {
			pause = followFirst
		}
		if !guest.Give(fresh, yield) || !q.Follow {
			return
		}
		if err := guest.Wait(ctx, pause); err != nil {
			yield(sandbox.LogLine{}, fault.Placed(err, e.c.name, "logs "+e.id))
			return
		}
		if e.over(ctx) {
			return
		}
		fresh, err = e.look(ctx, true)
	}
}

// look gives the lines that were not given yet; while more may come, only those
// that have ended.
func (e *entrypoint) look(ctx context.Context, more bool) ([]sandbox.LogLine, error) {
	var w wireLogs
	_, err := e.c.http.JSON(ctx, e.c.toolbox(httpx.Request{Op: "logs " + e.id, Path: "/process/session/entrypoint/logs"}, e.id, true), &w)
	if err != nil {
		return nil, err
	}
	return append(fresh("stdout", w.Stdout, &e.given.stdout, more), fresh("stderr", w.Stderr, &e.given.stderr, more)...), nil
}

// over says that the sandbox runs no more, and its log can grow no more.
func (e *entrypoint) over(ctx context.Context) bool {
	now, err := e.c.detail(ctx, "logs", e.id)
	return fault.KindOf(err) == fault.KindNotFound || (err == nil && stateOf(now) != sandbox.StateRunning)
}

// fresh gives the lines of a stream behind what was given, and moves that on. A
// stream that is shorter than it was has begun anew.
func fresh(stream, text string, given *int, more bool) []sandbox.LogLine {
	if len(text) < *given {
		*given = 0
	}
	text = text[*given:]
	if more {
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	*given += len(text)
	return split(stream, text)
}

func split(stream, text string) []sandbox.LogLine {
	var lines []sandbox.LogLine
	for line := range strings.Lines(text) {
		lines = append(lines, sandbox.LogLine{Stream: stream, Text: strings.TrimRight(line, "\r\n"), Source: "entrypoint"})
	}
	return lines
}
