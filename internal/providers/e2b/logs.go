package e2b

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// envdSource names the API's log where it is shown: it holds what envd did, not
// what programs wrote, and an empty one does not tell quiet from broken.
const envdSource = "envd events (the API keeps no output of programs)"

// KeepsLogs is true: the API answers for what is gone, too.
func (c *Client) KeepsLogs() bool { return true }

// Logs reads the output of the program that create started, from its files
// inside; of any other sandbox the API's log, which survives the sandbox.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		w, err := c.detail(ctx, id)
		switch {
		case err == nil && w.State == "running" && w.Metadata[sandbox.LabelRun] != "":
			for line, err := range guest.Logs(ctx, c.shellOf(id), w.Metadata[sandbox.LabelRun], q) {
				if !yield(line, fault.Placed(err, c.name, "logs "+id)) {
					return
				}
			}
		case err == nil || fault.KindOf(err) == fault.KindNotFound:
			c.apiLogs(ctx, id, q, err, yield)
		default:
			yield(sandbox.LogLine{}, err)
		}
	}
}

// apiLogs yields the API's log; missing is what a read of the sandbox said. The
// log of one that is gone may be there still: an empty one is then no sandbox.
func (c *Client) apiLogs(ctx context.Context, id string, q providers.LogQuery, missing error, yield func(sandbox.LogLine, error) bool) {
	r := &apiLog{c: c, id: id, since: q.Since}
	lines, err := r.all(ctx)
	if missing != nil && len(lines) == 0 {
		err = missing
	}
	if q.Tail > 0 && len(lines) > q.Tail {
		lines = lines[len(lines)-q.Tail:]
	}
	switch {
	case !guest.Give(lines, yield):
	case err != nil:
		yield(sandbox.LogLine{}, err)
	case q.Follow && missing == nil:
		r.follow(ctx, yield)
	}
}

// apiLog is one reader's place in the API's log of a sandbox.
type apiLog struct {
	c     *Client
	id    string
	since time.Time
	last  []wireLog // those of the newest timestamp, which the next page repeats
	old   bool      // the newer route is not there
}

// logPage is the most that a page may hold (E2B API, limit 0..1000).
const logPage = 1000

// all reads forward until a page brings nothing new.
func (r *apiLog) all(ctx context.Context) ([]sandbox.LogLine, error) {
	var lines []sandbox.LogLine
	for {
		page, err := r.page(ctx)
		if err != nil {
			return lines, err
		}
		fresh := r.fresh(page)
		for _, l := range fresh {
			lines = append(lines, l.line())
		}
		if len(fresh) == 0 || len(page) < logPage {
			return lines, nil
		}
	}
}

func (r *apiLog) page(ctx context.Context) ([]wireLog, error) {
	var got wireLogs
	from := strconv.FormatInt(max(0, r.since.UnixMilli()), 10)
	op := "logs " + r.id
	if !r.old {
		query := url.Values{"direction": {"forward"}, "limit": {strconv.Itoa(logPage)}}
		if !r.since.IsZero() {
			query.Set("cursor", from)
		}
		_, err := r.c.api.JSON(ctx, httpx.Request{Op: op, Path: httpx.Path("v2", "sandboxes", r.id, "logs"), Query: query}, &got)
		if !absent(err) {
			return r.entries(got, err)
		}
		r.old = true
	}
	query := url.Values{"limit": {strconv.Itoa(logPage)}}
	if !r.since.IsZero() {
		query.Set("start", from)
	}
	_, err := r.c.api.JSON(ctx, httpx.Request{Op: op, Path: httpx.Path("sandboxes", r.id, "logs"), Query: query}, &got)
	if absent(err) {
		return nil, fault.New(fault.KindUnsupported, "this API keeps no logs").At(r.c.name, op)
	}
	return r.entries(got, err)
}

// entries are those of an answer, which must have a list of them.
func (r *apiLog) entries(got wireLogs, err error) ([]wireLog, error) {
	if err != nil {
		return nil, err
	}
	rows, err := got.Logs.Rows()
	return rows, fault.Placed(err, r.c.name, "logs "+r.id)
}

// fresh drops what the page before has shown and moves the place on: there is no
// page token, and many entries may share a millisecond.
func (r *apiLog) fresh(page []wireLog) []wireLog {
	slices.SortStableFunc(page, func(a, b wireLog) int { return a.Timestamp.Compare(b.Timestamp) })
	fresh := slices.DeleteFunc(slices.Clone(page), func(l wireLog) bool {
		return l.Timestamp.Before(r.since) || slices.ContainsFunc(r.last, func(o wireLog) bool {
			return o.Timestamp.Equal(l.Timestamp) && o.Message == l.Message && o.Line == l.Line
		})
	})
	if len(fresh) == 0 {
		return nil
	}
	newest := fresh[len(fresh)-1].Timestamp
	if ms := newest.Truncate(time.Millisecond); ms.After(r.since) {
		r.since, r.last = ms, nil
	}
	for _, l := range fresh {
		if !l.Timestamp.Before(r.since) {
			r.last = append(r.last, l)
		}
	}
	return fresh
}

func (l wireLog) line() sandbox.LogLine {
	out := sandbox.LogLine{At: l.Timestamp, Stream: l.Fields["logger"], Text: l.Message, Source: envdSource}
	if l.Line != "" {
		out.Text = l.Line
		var inner struct {
			Message string `json:"message"`
			Logger  string `json:"logger"`
		}
		if json.Unmarshal([]byte(l.Line), &inner) == nil && inner.Message != "" {
			out.Text, out.Stream = inner.Message, inner.Logger
		}
	}
	if out.Stream == "" {
		out.Stream = "envd"
	}
	return out
}

// follow looks again until the sandbox is gone.
func (r *apiLog) follow(ctx context.Context, yield func(sandbox.LogLine, error) bool) {
	const least, most = time.Second, 5 * time.Second
	for pause := least; ; {
		err := guest.Wait(ctx, pause)
		var lines []sandbox.LogLine
		if err == nil {
			lines, err = r.all(ctx)
		}
		if !guest.Give(lines, yield) {
			return
		}
		if err != nil {
			yield(sandbox.LogLine{}, fault.Placed(err, r.c.name, "logs "+r.id))
			return
		}
		if pause = min(2*pause, most); len(lines) > 0 {
			pause = least
			continue
		}
		if _, err := r.c.detail(ctx, r.id); fault.KindOf(err) == fault.KindNotFound {
			return
		}
	}
}
