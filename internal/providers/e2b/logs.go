package e2b

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// envdSource names the API's log as the source of lines: it has the actions of envd and no
// output of programs, so an empty log says nothing about a program.
const envdSource = "envd events (the API keeps no output of programs)"

// KeepsLogs is true: the API has the logs of ended sandboxes, too.
func (c *Client) KeepsLogs() bool { return true }

// Logs reads the output of the program that create started, from its files inside; of any
// other sandbox the API's log, which outlives the sandbox.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		if q.NoProgram && !q.Follow {
			c.deliverAPILog(ctx, id, q, nil, yield)
			return
		}
		w, err := c.insideRecord(ctx, id, c.lookDetail)
		switch {
		case err == nil && w.State == "running" && w.Metadata[sandbox.LabelRun] != "":
			for line, err := range guest.Logs(ctx, c.shellOf(id, nil), w.Metadata[sandbox.LabelRun], q) {
				if !yield(line, fault.Placed(err, c.Profile, "logs "+id)) {
					return
				}
			}
		case err == nil || fault.KindOf(err) == fault.KindNotFound:
			c.deliverAPILog(ctx, id, q, err, yield)
		default:
			yield(sandbox.LogLine{}, err)
		}
	}
}

// deliverAPILog yields the API's log; missing is the error of a read of the sandbox, whose log
// may outlive it. With an empty log, missing is the result.
func (c *Client) deliverAPILog(ctx context.Context, id string, q providers.LogQuery, missing error, yield func(sandbox.LogLine, error) bool) {
	r := &apiLog{c: c, id: id, since: q.Since, work: q.Work}
	lines, err := r.readAvailable(ctx)
	if missing != nil && len(lines) == 0 {
		err = missing
	}
	switch {
	case !wirekit.YieldLines(wirekit.LastLines(lines, q.Tail), yield):
	case err != nil:
		yield(sandbox.LogLine{}, err)
	case q.Follow && missing == nil:
		wirekit.Follow{First: time.Second, Longest: 5 * time.Second, Profile: c.Profile, Op: "logs " + id}.Run(ctx, r.readMore, yield)
	}
}

type apiLog struct {
	c     *Client
	id    string
	since time.Time
	last  []wireLog // the entries of the newest timestamp, which the next page repeats
	old   bool      // the newer route is missing
	work  bool      // only what is work of the sandbox
}

// logPageSize is the longest page (E2B API, limit 0..1000).
const logPageSize = 1000

// readAvailable reads forward until a page brings nothing new.
func (r *apiLog) readAvailable(ctx context.Context) ([]sandbox.LogLine, error) {
	var all []wireLog
	for {
		page, full, err := r.readPage(ctx)
		fresh := r.newEntries(page)
		all = append(all, fresh...)
		switch {
		case err != nil || !full:
			return r.lines(all), err
		case len(fresh) == 0:
			return r.lines(all), r.c.Fault(fault.KindUnavailable, "logs "+r.id, "there may be more: a full page of %d entries has nothing new", len(page)).
				WithHint("the API ignores the position, or more entries than a page have one timestamp: `--since` a later time shows what follows")
		}
	}
}

// readPage reads the page at the position; full = there may be another one.
func (r *apiLog) readPage(ctx context.Context) (page []wireLog, full bool, err error) {
	var got wireLogs
	from := strconv.FormatInt(max(0, r.since.UnixMilli()), 10)
	op := "logs " + r.id
	if !r.old && !r.c.newLogs.missing() {
		query := url.Values{"direction": {"forward"}, "limit": {strconv.Itoa(logPageSize)}}
		if !r.since.IsZero() {
			query.Set("cursor", from)
		}
		_, err := r.c.API.JSON(ctx, httpx.Request{Op: op, Path: httpx.Path("v2", "sandboxes", r.id, "logs"), Query: query}, &got)
		r.c.newLogs.note(r.id, err)
		if !routeMissing(err) {
			return r.checkEntries(got, err)
		}
		r.old = true
	}
	query := url.Values{"limit": {strconv.Itoa(logPageSize)}}
	if !r.since.IsZero() {
		query.Set("start", from)
	}
	_, err = r.c.API.JSON(ctx, httpx.Request{Op: op, Path: httpx.Path("sandboxes", r.id, "logs"), Query: query}, &got)
	if routeMissing(err) {
		return nil, false, r.c.Fault(fault.KindUnsupported, op, "this API keeps no logs")
	}
	return r.checkEntries(got, err)
}

// checkEntries are the entries of an answer, which must have a list.
func (r *apiLog) checkEntries(got wireLogs, err error) (page []wireLog, full bool, _ error) {
	if err != nil {
		return nil, false, err
	}
	page, err = got.Logs.Rows()
	return page, got.Logs.Len() >= logPageSize, fault.Placed(err, r.c.Profile, "logs "+r.id)
}

// newEntries are the entries that earlier pages did not have; it advances the position. There
// is no page token, and many entries may share a millisecond.
func (r *apiLog) newEntries(page []wireLog) []wireLog {
	position := r.since
	for i, l := range page {
		if !l.Timestamp.IsZero() {
			position = l.Timestamp
		}
		page[i].position = position
	}
	slices.SortStableFunc(page, func(a, b wireLog) int { return a.position.Compare(b.position) })
	fresh := slices.DeleteFunc(slices.Clone(page), func(l wireLog) bool {
		return l.position.Before(r.since) || slices.ContainsFunc(r.last, func(o wireLog) bool {
			return o.position.Equal(l.position) && o.Message == l.Message && o.Line == l.Line
		})
	})
	if len(fresh) == 0 {
		return nil
	}
	newest := fresh[len(fresh)-1].position
	if ms := newest.Truncate(time.Millisecond); ms.After(r.since) {
		r.since, r.last = ms, nil
	}
	for _, l := range fresh {
		if !l.position.Before(r.since) {
			r.last = append(r.last, l)
		}
	}
	return fresh
}

// lines are the entries as lines; of those that are no work of the sandbox none where only work is
// wanted. Envd logs each call that it serves, also those of a look: the entry of the start of a program
// alone has the command line, and the operation joins the others to it.
func (r *apiLog) lines(all []wireLog) []sandbox.LogLine {
	facts := make([]envdEntry, len(all))
	scripts := map[string][]time.Time{} // by operation, which a restart of envd counts anew
	for i, l := range all {
		facts[i] = l.entry()
		if e := facts[i]; e.isScript() && e.Operation != "" {
			scripts[e.Operation] = append(scripts[e.Operation], l.position)
		}
	}
	lines := make([]sandbox.LogLine, 0, len(all))
	for i, l := range all {
		ofScript := func(at time.Time) bool { return at.Sub(l.position).Abs() <= longestScript }
		if e := facts[i]; r.work && (e.isQuery() || e.isScript() || slices.ContainsFunc(scripts[e.Operation], ofScript)) {
			continue
		}
		lines = append(lines, l.logLine(facts[i]))
	}
	return lines
}

// longestScript is more than a script of sbx takes: such a one is given up earlier.
const longestScript = time.Minute

// envdEntry is what an entry says of the call that envd has served.
type envdEntry struct {
	Message   string `json:"message"`
	Logger    string `json:"logger"`
	Method    string `json:"method"`       // HTTP method and path: "POST /process.Process/List"
	Operation string `json:"operation_id"` // of one call, a number that envd counts
	Command   string `json:"command"`      // of a program that was started, its words joined by blanks
}

// isScript reports the start of a script of sbx.
func (e envdEntry) isScript() bool {
	return slices.Contains(strings.Fields(e.Command), guest.ScriptName)
}

// isQuery reports a call that only reads, by whichever client.
func (e envdEntry) isQuery() bool {
	_, path, _ := strings.Cut(e.Method, " ")
	switch path {
	case "/process.Process/List", "/filesystem.Filesystem/Stat", "/filesystem.Filesystem/ListDir", "/health", "/metrics":
		return true
	}
	return false
}

func (l wireLog) entry() envdEntry {
	e := envdEntry{Message: l.Message, Logger: l.Fields["logger"], Method: l.Fields["method"], Operation: l.Fields["operation_id"], Command: l.Fields["command"]}
	if l.Line == "" {
		return e
	}
	var inner envdEntry
	if json.Unmarshal([]byte(l.Line), &inner) == nil && inner.Message != "" {
		return inner
	}
	e.Message = l.Line
	return e
}

func (l wireLog) logLine(e envdEntry) sandbox.LogLine {
	return sandbox.LogLine{At: l.Timestamp, Stream: cmp.Or(e.Logger, "envd"), Text: e.Message, Source: envdSource}
}

// readMore is one read while following; the log ends with the sandbox.
func (r *apiLog) readMore(ctx context.Context) (lines []sandbox.LogLine, ended bool, err error) {
	if lines, err = r.readAvailable(ctx); err == nil && len(lines) == 0 {
		_, missing := r.c.detail(ctx, r.id)
		ended = fault.KindOf(missing) == fault.KindNotFound
	}
	return lines, ended, err
}

// Events reads the lifecycle of a sandbox, also after its end: no other official record says
// who ended it. Clones lack it.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	var all []sandbox.Event
	read := func(offset string) (wirekit.Page[wireEvent], error) {
		page, err := c.readEvents(ctx, id, cmp.Or(offset, "0"))
		if err != nil {
			return wirekit.Page[wireEvent]{}, err
		}
		got := wirekit.Page[wireEvent]{}
		if page.Len() >= pageSize {
			before, _ := strconv.Atoi(offset)
			got.Next = strconv.Itoa(before + pageSize)
		}
		got.Rows, err = page.Named(func(e wireEvent) string { return e.ID })
		return got, fault.Placed(err, c.Profile, "events "+id)
	}
	err := wirekit.EachRow(c.Profile, "events "+id, read, func(e wireEvent) string { return e.ID }, func(e wireEvent) bool {
		all = append(all, sandbox.Event{At: e.Timestamp, Event: strings.TrimPrefix(e.Type, "sandbox.lifecycle."), Detail: formatEventData(e.EventData)})
		return true
	})
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	if err == nil && len(all) == 0 { // the API answers alike for an unknown id and for a sandbox without events
		_, err = c.detail(ctx, id)
	}
	return all, err
}

func (c *Client) readEvents(ctx context.Context, id, offset string) (page httpx.List[wireEvent], err error) {
	r := httpx.Request{
		Op: "events " + id, Path: httpx.Path("events", "sandboxes", id),
		Query: url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {offset}, "orderAsc": {"true"}},
	}
	if c.dialect.old {
		r.Path = "/sandboxes/events"
		r.Query.Set("sandboxID", id)
	}
	if _, err = c.API.JSON(ctx, r, &page); !routeMissing(err) {
		return page, err
	}
	if _, gone := c.detail(ctx, id); gone != nil {
		return page, gone
	}
	return page, c.Fault(fault.KindUnsupported, "events "+id, "this API keeps no events")
}

func formatEventData(data map[string]any) string {
	words := make([]string, 0, len(data))
	for _, key := range slices.Sorted(maps.Keys(data)) {
		words = append(words, fmt.Sprintf("%s=%v", key, data[key]))
	}
	return strings.Join(words, " ")
}

// Novita is a client of Novita's dialect, which alone has quotas.
type Novita struct{ *Client }

// Quota reads the limits of the account; older domains have no such route.
func (n *Novita) Quota(ctx context.Context) ([]providers.Quota, error) {
	var w wireQuota
	if _, err := n.API.JSON(ctx, httpx.Request{Op: "quota", Path: "/sandboxes/quota"}, &w); err != nil {
		if routeMissing(err) {
			return nil, n.Fault(fault.KindUnsupported, "quota", "this domain does not report limits")
		}
		return nil, err
	}
	return []providers.Quota{
		{Name: "concurrent sandboxes", Unit: "sandboxes", Used: w.Usage.Instances, Limit: w.Limit.Instances},
		{Name: "cpu", Unit: "cores", Used: w.Usage.VCPU, Limit: w.Limit.VCPU},
		{Name: "memory", Unit: "MiB", Used: w.Usage.RAM, Limit: w.Limit.RAM},
	}, nil
}
