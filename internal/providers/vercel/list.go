package vercel

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
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// pageSize is how many rows a page is asked for.
const pageSize = 100

// List reads page by page, oldest name first, so that sandboxes that are created meanwhile
// come at the end. A 410 or 404 here means that team or project are gone, and never that
// there are no sandboxes.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		err := c.eachRow(ctx, "list", c.listQuery(q), func(w wireBox) bool { return yield(c.sandbox(view{box: &w}), nil) })
		if err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

// listQuery filters by what the API supports: one status, one tag.
func (c *Client) listQuery(q providers.Query) url.Values {
	query := c.teamQuery("project", c.project, "limit", strconv.Itoa(pageSize), "sortBy", "createdAt", "sortOrder", "asc")
	if slices.Equal(q.States, []sandbox.State{sandbox.StateRunning}) {
		query.Set("status", "running")
	}
	wanted := toTags(q.Labels)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if !strings.Contains(key+wanted[key], ":") && wanted[key] != "" {
			query.Set("tags", key+":"+wanted[key])
			break
		}
	}
	return query
}

// eachRow gives each row of the list to take until take returns false, and records which
// session belongs to which name.
func (c *Client) eachRow(ctx context.Context, op string, query url.Values, take func(wireBox) bool) error {
	read := func(token string) (wirekit.Page[wireBox], error) {
		if token != "" {
			query.Set("cursor", token)
		}
		var page wirePage
		if _, err := c.API.JSON(ctx, httpx.Request{Op: op, Path: "/v2/sandboxes", Query: query}, &page); err != nil {
			return wirekit.Page[wireBox]{}, c.ListFault(err, op, "the team or project may be deleted: `sbx doctor --provider "+c.Profile+"` shows more")
		}
		got, err := wirekit.NewPage(page.Sandboxes, page.Pagination.Next, pageSize, wireBox.id)
		return got, fault.Placed(err, c.Profile, op)
	}
	return wirekit.EachRow(c.Profile, op, read, wireBox.id, func(w wireBox) bool {
		c.names.record(w.CurrentSessionID, w.Name)
		return take(w)
	})
}

func (w wireBox) id() string { return cmp.Or(w.CurrentSessionID, w.Name) }

// sessionNames maps sessions to names of sandboxes. The record of a session may lack the name
// (the SDK's schema has no sourceSandboxName), and after a delete no other record has it.
type sessionNames struct {
	mu sync.Mutex
	of map[string]string
}

func (n *sessionNames) record(session, name string) {
	if session == "" || name == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[string]string{}
	}
	n.of[session] = name
}

func (n *sessionNames) nameOf(session string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of[session]
}

// sandboxName finds the name of a session: in its own record, in what was read before, or in
// the row of the list whose current session it is; "" = not found.
func (c *Client) sandboxName(ctx context.Context, op string, w *wireSession) (string, error) {
	if name := cmp.Or(w.SourceSandboxName, c.names.nameOf(w.ID)); name != "" {
		return name, nil
	}
	err := c.eachRow(ctx, op, c.listQuery(providers.Query{}), func(row wireBox) bool { return row.CurrentSessionID != w.ID })
	return c.names.nameOf(w.ID), err
}

// view is the two objects of one sandbox; either may be nil.
type view struct {
	box     *wireBox
	session *wireSession
}

// persistent is true by default, as in the API.
func (v view) persistent() bool {
	return v.box == nil || v.box.Persistent == nil || *v.box.Persistent
}

// madeBySbx says that the sandbox has the owner tag of sbx.
func (v view) madeBySbx() bool {
	return v.box != nil && v.box.Tags[labelTags()[sandbox.LabelOwner]] != ""
}

// findSession finds the session of an id, which may be a sandbox id of the first API, or the
// current session of a name.
func (c *Client) findSession(ctx context.Context, op, id string) (view, error) {
	var one wireOneSession
	err := c.getObject(ctx, op+" "+id, sessionPath(id), &one)
	switch {
	case fault.KindOf(err) == fault.KindNotFound, httpx.Status(err) == http.StatusBadRequest: // names do not have the form of ids
		named, err := c.getByName(ctx, op+" "+id, id)
		return view{&named.Sandbox, &named.Session}, err
	case err != nil:
		return view{}, err
	}
	return view{session: &one.Session}, providers.CheckAnswerID(c.Profile, op+" "+id, id, one.Session.ID)
}

// resolve is findSession with the sandbox of the session. A session whose name is deleted is
// fault.KindGone.
func (c *Client) resolve(ctx context.Context, op, id string) (view, error) {
	v, err := c.findSession(ctx, op, id)
	if err != nil || v.box != nil {
		return v, err
	}
	name, err := c.sandboxName(ctx, op+" "+id, v.session)
	if err != nil || name == "" {
		return v, err
	}
	named, err := c.getByName(ctx, op+" "+id, name)
	switch {
	case wirekit.Missing(err):
		return v, fault.New(fault.KindGone, "its sandbox %s is deleted", name).At(c.Profile, op+" "+id)
	case err != nil:
		return v, err
	}
	v.box = &named.Sandbox
	return v, nil
}

// getByName reads a sandbox by name. It never sends `resume`, which would start a VM.
func (c *Client) getByName(ctx context.Context, op, name string) (wireNamed, error) {
	var n wireNamed
	_, err := c.API.JSON(ctx, httpx.Request{Op: op, Path: httpx.Path("v2", "sandboxes", name), Query: c.teamQuery("projectId", c.project)}, &n)
	if err != nil {
		return n, err
	}
	n.Session.ID, n.Session.Status = cmp.Or(n.Session.ID, n.Sandbox.CurrentSessionID), cmp.Or(n.Session.Status, n.Sandbox.Status)
	if n.Session.ID == "" || n.Sandbox.Name == "" {
		return n, fault.New(fault.KindUnavailable, "the answer names no sandbox").At(c.Profile, op)
	}
	c.names.record(n.Session.ID, n.Sandbox.Name)
	return n, providers.CheckAnswerID(c.Profile, op, name, n.Sandbox.Name)
}

// TakesName is true for every word that is not the id of a session.
func (*Client) TakesName(word string) bool {
	return !strings.HasPrefix(word, "sbx_")
}

// Get reads one by the id of its session, or by its name.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	v, err := c.resolve(ctx, "get", id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return c.sandbox(v), nil
}

// sandbox converts the records of the API.
//
// Ages are the ages of a session. CreatedAt stays empty: createdAt of the API belongs to the
// name, and after a resume a VM of a minute would look weeks old. StartedAt is the start of
// the session; a row of the list lacks it and gets the last change of the status, which is
// never before the start: for a running session it is the start, for any other one the age is
// a lower bound.
func (c *Client) sandbox(v view) sandbox.Sandbox {
	s := sandbox.Sandbox{Provider: c.Profile, ProviderType: TypeName, Activity: sandbox.Unknown}
	if v.session != nil {
		v.session.fillSandbox(&s)
	}
	if v.box != nil {
		v.box.fillSandbox(&s, v.session)
	}
	s.State = stateOf(s.RawState, v.persistent())
	if s.State == sandbox.StateTerminating {
		s.EndingAt = v.endingAt()
	}
	if sessionEnded(s.RawState) {
		s.ExpiresAt = time.Time{}
		s.Exit = sessionExit(s.RawState, v.session, s.EndedAt)
	}
	return s
}

// endingAt is when the end of a session began: its stop was requested, or its status has changed. A stop at the time
// limit may have no request.
func (v view) endingAt() time.Time {
	if v.session != nil {
		return v.session.RequestedStopAt.time()
	}
	return v.box.StatusUpdatedAt.time()
}

func (w *wireSession) fillSandbox(s *sandbox.Sandbox) {
	s.ID, s.Name, s.RawState, s.Template = w.ID, w.SourceSandboxName, w.Status, w.Runtime
	s.StartedAt, s.EndedAt, s.ExpiresAt = w.startTime(), w.endTime(), w.deadline()
	s.Limits = toLimits(w.VCPUs, w.Memory)
}

// fillSandbox adds the fields of the name and, without a session, what its row says about the
// current session.
func (b *wireBox) fillSandbox(s *sandbox.Sandbox, w *wireSession) {
	s.Labels = toLabels(b.Tags)
	s.TaskID, s.AgentType = s.Labels[sandbox.LabelTask], s.Labels[sandbox.LabelAgentType]
	s.Name = cmp.Or(s.Labels[sandbox.LabelName], b.Name)
	s.Template = cmp.Or(b.Image, b.Runtime, s.Template)
	if w != nil {
		return
	}
	s.ID, s.RawState = cmp.Or(b.CurrentSessionID, b.Name), b.Status
	s.StartedAt, s.ExpiresAt = b.StatusUpdatedAt.time(), b.ExpiresAt.time()
	if sessionEnded(b.Status) {
		s.EndedAt = b.StatusUpdatedAt.time()
	}
	s.Limits = toLimits(b.VCPUs, b.Memory)
}

// stateOf converts a status: a stopped sandbox that keeps a snapshot may be resumed, any
// other stopped one has ended.
func stateOf(status string, persistent bool) sandbox.State {
	switch status {
	case "pending":
		return sandbox.StateProvisioning
	case "running":
		return sandbox.StateRunning
	case "stopping", "snapshotting":
		return sandbox.StateTerminating
	case "stopped":
		if persistent {
			return sandbox.StateStopped
		}
		return sandbox.StateTerminated
	case "failed", "aborted":
		return sandbox.StateFailed
	}
	return sandbox.StateUnknown
}

func sessionEnded(status string) bool {
	return status == "stopped" || status == "failed" || status == "aborted"
}

func toLimits(vcpus, memory *float64) sandbox.Limits {
	l := sandbox.Limits{CPU: vcpus, Isolation: "microVM"}
	if memory != nil && *memory > 0 && *memory < 1<<32 {
		l.MemoryBytes = new(int64(*memory) * sandbox.MiB)
	}
	return l
}

// stopDelay is how long a session may take to stop at its time limit. A stop that was
// requested that close to the limit counts as the service's own.
const stopDelay = 2 * time.Second

func (w *wireSession) startTime() time.Time {
	return cmp.Or(w.StartedAt, w.CreatedAt, w.RequestedAt).time()
}

func (w *wireSession) endTime() time.Time { return cmp.Or(w.StoppedAt, w.AbortedAt).time() }

func (w *wireSession) deadline() time.Time {
	started, timeout := w.StartedAt.time(), w.Timeout.duration()
	if started.IsZero() || timeout <= 0 {
		return time.Time{}
	}
	return started.Add(timeout)
}

// limitReached is how long the session ran and its limit; zero where it was stopped before
// the limit, or where that is not known.
func (w *wireSession) limitReached() (ran, limit time.Duration) {
	ended, deadline, asked := w.endTime(), w.deadline(), w.RequestedStopAt.time()
	if ended.IsZero() || deadline.IsZero() || (!asked.IsZero() && asked.Before(deadline.Add(-stopDelay))) {
		return 0, 0
	}
	return ended.Sub(w.StartedAt.time()), w.Timeout.duration()
}

// sessionExit is the exit of a session that has ended; w is nil where only the status is
// known.
func sessionExit(status string, w *wireSession, at time.Time) *sandbox.Exit {
	f := triage.ExitFacts{Words: exitWords(), Provider: TypeName, Raw: status, Source: "API", At: at}
	if w != nil {
		f.Ran, f.Limit = w.limitReached()
	}
	e := triage.ClassifyExit(nil, f)
	if w != nil && w.RequestedStopAt > 0 {
		e.Evidence = append(e.Evidence, sandbox.Evidence{What: "stop requested", Value: w.RequestedStopAt.time().Format(time.RFC3339), Source: "API", At: at})
	}
	return &e
}
