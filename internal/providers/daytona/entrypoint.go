package daytona

import (
	"context"
	"net/http"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Pauses while the log of an entrypoint is followed, and how long it may fail.
const (
	entrypointFollowMin = 500 * time.Millisecond
	entrypointFollowMax = 5 * time.Second
	entrypointOutage    = time.Minute
)

// entrypointLog is the position of one reader in the log of the image's own program. Each
// answer has the whole log.
type entrypointLog struct {
	c         *Client
	id        string
	delivered struct{ stdout, stderr int } // bytes of each stream
}

// deliver yields the lines so far, and with q.Follow those that come until the sandbox ends.
// A toolbox that knows no entrypoint has an empty log.
func (e *entrypointLog) deliver(ctx context.Context, q providers.LogQuery, yield func(sandbox.LogLine, error) bool) {
	lines, err := e.newLines(ctx, q.Follow)
	if httpx.Status(err) == http.StatusNotFound {
		err = nil
	}
	switch {
	case err != nil && (!q.Follow || fault.KindOf(err) != fault.KindUnavailable):
		yield(sandbox.LogLine{}, e.c.toolboxFault(err))
	case wirekit.YieldLines(wirekit.LastLines(lines, q.Tail), yield) && q.Follow:
		wirekit.Follow{First: entrypointFollowMin, Longest: entrypointFollowMax, Outage: entrypointOutage, Profile: e.c.Profile, Op: "logs " + e.id}.Run(ctx, e.readMore, yield)
	}
}

// readMore is one read while following; the log ends with the sandbox.
func (e *entrypointLog) readMore(ctx context.Context) (lines []sandbox.LogLine, ended bool, err error) {
	now, err := e.c.detail(ctx, "logs", e.id)
	if fault.KindOf(err) == fault.KindNotFound || (err == nil && stateOf(now) != sandbox.StateRunning) {
		return nil, true, nil
	}
	lines, err = e.newLines(ctx, true)
	return lines, false, e.c.toolboxFault(err)
}

// newLines gives the lines that were not delivered yet. With more to come, a line that has
// not ended is left for later.
func (e *entrypointLog) newLines(ctx context.Context, more bool) ([]sandbox.LogLine, error) {
	var w wireLogs
	_, err := e.c.API.JSON(ctx, e.c.toolbox(httpx.Request{Op: "logs " + e.id, Path: "/process/session/entrypoint/logs"}, e.id, true), &w)
	if err != nil {
		return nil, err
	}
	return append(linesBehind("stdout", w.Stdout, &e.delivered.stdout, more), linesBehind("stderr", w.Stderr, &e.delivered.stderr, more)...), nil
}

// linesBehind gives the lines of a stream behind the delivered bytes and counts them as
// delivered. A stream that has become shorter was started again.
func linesBehind(stream, text string, delivered *int, more bool) []sandbox.LogLine {
	if len(text) < *delivered {
		*delivered = 0
	}
	text = text[*delivered:]
	if more {
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	*delivered += len(text)
	return splitLines(stream, text)
}

func splitLines(stream, text string) []sandbox.LogLine {
	var lines []sandbox.LogLine
	for line := range strings.Lines(text) {
		lines = append(lines, sandbox.LogLine{Stream: stream, Text: strings.TrimRight(line, "\r\n"), Source: "entrypoint"})
	}
	return lines
}
