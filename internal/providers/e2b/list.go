package e2b

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// pageSize is the longest page (E2B API, limit 1..100).
const pageSize = 100

// List reads page by page, oldest first where the API has an order. The query always has
// states, since the API's default has changed before. A listing with fewer running sandboxes
// than the API reports ends in an error.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		l := &listing{c: c, query: c.listQuery(q), least: -1}
		if err := l.readAll(ctx, yield); err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

func (c *Client) listQuery(q providers.Query) url.Values {
	states := []string{"running", "paused"}
	if only := slices.DeleteFunc(slices.Clone(states), func(s string) bool { return !slices.Contains(q.States, sandbox.State(s)) }); len(only) > 0 {
		states = only
	}
	v := url.Values{"state": {strings.Join(states, ",")}, "limit": {strconv.Itoa(pageSize)}}
	if !c.dialect.old {
		v.Set("order", "asc")
	}
	if len(q.Labels) > 0 {
		v.Set("metadata", metadataFilter(q.Labels))
	}
	return v
}

// metadataFilter is k=v&k=v. The server unescapes the parameter, then the string, then each
// key and value, so each is escaped twice here and the whole once more by url.Values.
func metadataFilter(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	twice := func(s string) string { return url.QueryEscape(url.QueryEscape(s)) }
	for k, v := range labels {
		pairs = append(pairs, twice(k)+"="+twice(v))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

type listing struct {
	c       *Client
	query   url.Values
	old     bool // the newer list is missing
	running int  // rows that are not paused
	least   int  // the least number of running sandboxes that any page reported; -1 = none did
}

// readAll yields all rows; nil also when the consumer has stopped.
func (l *listing) readAll(ctx context.Context, yield func(sandbox.Sandbox, error) bool) error {
	stopped := false
	err := wirekit.EachRow(l.c.Profile, "list", func(token string) (wirekit.Page[wireSandbox], error) { return l.readPage(ctx, token) }, l.c.idOf, func(w wireSandbox) bool {
		s := l.c.sandbox(w)
		if s.State != sandbox.StatePaused { // one whose state cannot be read may be running
			l.running++
		}
		stopped = !yield(s, nil)
		return !stopped
	})
	switch {
	case err != nil || stopped:
		return err
	case l.old && l.query.Get("state") != "running":
		return l.c.Fault(fault.KindUnsupported, "list", "this API lists only running sandboxes; paused ones are unknown").
			WithHint("use `--state running`, which the API supports")
	case l.least > l.running:
		return l.c.Fault(fault.KindUnavailable, "list", "the listing shows %d of %d running sandboxes", l.running, l.least).
			WithHint("list again; if it happens again, the provider's index is behind")
	}
	return nil
}

// readPage reads a page of the list. Where that is missing it reads the list of the first
// API, which has one page with running sandboxes only.
func (l *listing) readPage(ctx context.Context, token string) (wirekit.Page[wireSandbox], error) {
	if token != "" {
		l.query.Set("nextToken", token)
	}
	var page httpx.List[wireSandbox]
	res, err := l.c.API.JSON(ctx, httpx.Request{Op: "list", Path: "/v2/sandboxes", Query: l.query}, &page)
	if l.old = routeMissing(err) && token == ""; l.old {
		query := url.Values{}
		if m := l.query.Get("metadata"); m != "" {
			query.Set("metadata", m)
		}
		res, err = l.c.API.JSON(ctx, httpx.Request{Op: "list", Path: "/sandboxes", Query: query}, &page)
	}
	if err != nil {
		return wirekit.Page[wireSandbox]{}, l.c.ListFault(err, "list", "check the url: the API has no list there")
	}
	rows, bad := page.Named(func(w wireSandbox) string { return w.SandboxID })
	if l.old {
		for i := range rows {
			rows[i].State = cmp.Or(rows[i].State, "running")
		}
		return wirekit.Page[wireSandbox]{Rows: rows}, fault.Placed(bad, l.c.Profile, "list")
	}
	// The API sends the total where running sandboxes are asked for; one that ignores tokens does not.
	counted := l.countReported(res.Header)
	got := wirekit.Page[wireSandbox]{Rows: rows, Next: res.Header.Get("X-Next-Token"), Unmarked: !counted, Full: page.Len() >= pageSize}
	return got, fault.Placed(bad, l.c.Profile, "list")
}

// countReported records the number of running sandboxes that a page reports. The least one
// counts, since sandboxes end while pages are read. False for a page without the number.
func (l *listing) countReported(h http.Header) bool {
	n, err := strconv.Atoi(h.Get("X-Total-Running"))
	if err != nil || n < 0 {
		return false
	}
	if l.least < 0 || n < l.least {
		l.least = n
	}
	return true
}

// Get reads one by id. A missing one is fault.KindNotFound: the API answers alike for an
// unknown id, for an ended sandbox and for one of another team.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	w, err := c.detail(ctx, id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return c.sandbox(w), nil
}

// detail reads the record, which has the token of the sandbox's host.
func (c *Client) detail(ctx context.Context, id string) (wireSandbox, error) {
	var w wireSandbox
	_, err := c.API.JSON(ctx, httpx.Request{Op: "get " + id, Path: httpx.Path("sandboxes", id)}, &w)
	switch {
	case err != nil:
		return w, err
	case !c.SameID(id, c.idOf(w)):
		return wireSandbox{}, providers.CheckAnswerID(c.Profile, "get "+id, id, w.SandboxID)
	case w.Domain != "":
		c.domains.Store(id, w.Domain)
	}
	return w, nil
}

// SameID accepts both spellings of an old id, with the client's id and without, as the API
// does.
func (c *Client) SameID(a, b string) bool {
	shortA, _, longA := strings.Cut(a, "-")
	shortB, _, longB := strings.Cut(b, "-")
	return a == b || longA != longB && shortA == shortB
}

// idOf is the id of a row: in two parts in domains with such ids.
func (c *Client) idOf(w wireSandbox) string {
	if c.legacy && w.ClientID != "" && !strings.HasSuffix(w.SandboxID, "-"+w.ClientID) {
		return w.SandboxID + "-" + w.ClientID
	}
	return w.SandboxID
}

// sandbox converts a record of the API. startedAt is the start of the current run: a resume
// sets it again. endAt of a paused sandbox is the time of its pause and no expiry.
func (c *Client) sandbox(w wireSandbox) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: c.Profile, ProviderType: c.TypeName, ID: c.idOf(w), RawState: w.State,
		StartedAt: providers.ValidTime(w.StartedAt), Template: cmp.Or(w.Alias, w.TemplateID), Labels: w.Metadata,
		Name: w.Metadata[sandbox.LabelName], TaskID: w.Metadata[sandbox.LabelTask], AgentType: w.Metadata[sandbox.LabelAgentType],
		Activity: sandbox.Unknown,
	}
	switch w.State {
	case "running":
		s.State, s.ExpiresAt = sandbox.StateRunning, providers.ValidTime(w.EndAt)
	case "paused":
		s.State = sandbox.StatePaused
	default:
		s.State = sandbox.StateUnknown
	}
	s.Limits = sandbox.Limits{CPU: w.CPUCount, MemoryBytes: mebibytes(w.MemoryMB), DiskBytes: mebibytes(w.DiskSizeMB), Isolation: "microVM"}
	return s
}

// mebibytes converts MiB to bytes; nil for none and for a value out of range.
func mebibytes(n *int64) *int64 {
	if n == nil || *n <= 0 || *n > 1<<32 {
		return nil
	}
	return new(*n * sandbox.MiB)
}

// envdPort is the port of envd in every sandbox.
const envdPort = 49983

func (c *Client) toHost(r httpx.Request, id, token string) httpx.Request {
	if c.sandboxURL == "" {
		domain := c.domain
		if own, ok := c.domains.Load(id); ok {
			domain, _ = own.(string)
		}
		host := strconv.Itoa(envdPort) + "-" + id + "." + domain
		if hasSharedHost(domain) {
			host = "sandbox." + domain
		}
		r.URL = "https://" + host + r.Path
	}
	h := http.Header{}
	maps.Copy(h, r.Header)
	h.Set(c.dialect.header+"-Sandbox-Id", id)
	h.Set(c.dialect.header+"-Sandbox-Port", strconv.Itoa(envdPort))
	if token != "" {
		h.Set("X-Access-Token", token)
	}
	r.Header, r.OneSandbox, r.OwnHost = h, true, true
	return r
}
