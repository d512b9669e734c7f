package daytona

import (
	"cmp"
	"context"
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

// CapturesOutput is true for sandboxes of sbx, whose program writes into files. The log of
// any other sandbox is that of its image's entrypoint: the output of commands and sessions
// is not in it.
func (c *Client) CapturesOutput(s sandbox.Sandbox) bool { return s.Labels[sandbox.LabelRun] != "" }

// Processes lists the commands that `sbx exec` runs in a sandbox, and what of its program writes elsewhere than
// into its log. Commands of other clients
// of the toolbox are not listed: their calls count as activity, every 50 s while one is
// open (Daytona, proxy).
func (c *Client) Processes(ctx context.Context, id string) ([]providers.Process, error) {
	w, err := c.detail(ctx, "processes", id)
	if err != nil || stateOf(w) != sandbox.StateRunning {
		return nil, err
	}
	found, _, err := guest.UnseenProcesses(ctx, c.shellOf(w.ID, nil, true), w.Labels[sandbox.LabelRun])
	return found, fault.Placed(err, c.Profile, "processes "+id)
}

// Logs reads the output of the program that create started, from its files inside; of any
// other sandbox the log of its image's entrypoint.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		w, err := c.detail(ctx, "logs", id)
		switch {
		case err != nil:
			yield(sandbox.LogLine{}, err)
		case stateOf(w) != sandbox.StateRunning:
			c.deliverBuildLog(ctx, w, q, yield)
		case w.Labels[sandbox.LabelRun] != "":
			for line, err := range guest.Logs(ctx, c.shellOf(w.ID, nil, true), w.Labels[sandbox.LabelRun], q) {
				if !yield(line, fault.Placed(err, c.Profile, "logs "+id)) {
					return
				}
			}
		default:
			newEntrypointLog(c, w.ID, q).deliver(ctx, q, yield)
		}
	}
}

// deliverBuildLog yields the log of the build of a sandbox's image, the only log of a
// sandbox that does not run.
func (c *Client) deliverBuildLog(ctx context.Context, w wireSandbox, q providers.LogQuery, yield func(sandbox.LogLine, error) bool) {
	op := "logs " + w.ID
	if !slices.Contains([]string{"build_failed", "pending_build", "building_snapshot"}, w.State) {
		yield(sandbox.LogLine{}, c.Fault(fault.KindUnavailable, op, "it is %s, and its output is stored in it", w.State).Inside().
			WithHint("its disk is kept: the log can be read when it runs again"))
		return
	}
	var at wireURL
	if _, err := c.API.JSON(ctx, httpx.Request{Op: op, Path: httpx.Path("sandbox", w.ID, "build-logs-url")}, &at); err != nil {
		yield(sandbox.LogLine{}, err)
		return
	}
	res, err := c.API.Do(ctx, httpx.Request{Op: op, URL: at.URL})
	if err != nil {
		yield(sandbox.LogLine{}, err)
		return
	}
	lines := wirekit.LastLines(splitLines("build", string(res.Body)), q.Tail)
	for i := range lines {
		lines[i].Source = "build log"
	}
	wirekit.YieldLines(lines, yield)
}

// Usage asks the toolbox or, where an older one has no figures, measures with a script
// inside. Neither counts as activity. Source says which one it was.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	w, err := c.detail(ctx, "usage", id)
	switch {
	case err != nil:
		return sandbox.Usage{}, err
	case stateOf(w) != sandbox.StateRunning:
		return sandbox.Usage{At: c.Now(), Source: "API (it is " + w.State + ")", MemoryLimitBytes: gibibytes(w.Memory)}, nil
	}
	var m wireMetrics
	_, err = c.API.JSON(ctx, c.toolbox(httpx.Request{Op: "usage " + id, Path: "/system/metrics"}, w.ID, true), &m)
	switch {
	case httpx.AnsweredMissing(err):
		u, err := guest.Usage(ctx, c.turns.Measurement(w.ID, c.untimedShell(w.ID, nil, true)), c.Now())
		return u, fault.Placed(err, c.Profile, "usage "+id)
	case err != nil:
		return sandbox.Usage{}, c.toolboxFault(w.ID, err)
	}
	if m.MemUsed == nil && m.CPUUsedPct == nil {
		return sandbox.Usage{}, c.Fault(fault.KindUnavailable, "usage "+id, "the toolbox reports no figures").Inside()
	}
	u := sandbox.Usage{At: c.Now(), Source: "toolbox metrics", MemoryLimitBytes: providers.ValidBytes(m.MemTotal)}
	if m.TimestampUnix > 0 {
		u.At = time.Unix(m.TimestampUnix, 0).UTC()
	}
	if used, cache := providers.ValidBytes(m.MemUsed), providers.ValidBytes(m.MemCache); used != nil && cache != nil { // used has the cache
		u.MemoryBytes = new(max(0, *used-*cache))
	}
	if m.CPUUsedPct != nil && m.CPUCount != nil {
		u.CPUPercent = providers.ValidPercent(new(*m.CPUUsedPct * *m.CPUCount))
	}
	return u, nil
}

// Pages of the audit log: the longest one, and how many are read. The log is that of the whole organization.
const (
	auditPageSize = 200
	maxAuditPages = 10
)

// Events reads the organization's audit log, the newest entries first. A key needs a permission of its own for that.
// Where the log has more entries than are read, the error says so beside those that were found.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	op := "events " + id
	w, err := c.detail(ctx, "events", id)
	if err != nil {
		return nil, err
	}
	all := []sandbox.Event{{At: w.CreatedAt, Event: "created"}}
	read := func(token string) (wirekit.Page[wireAuditLog], error) {
		return c.readAudit(ctx, op, w.OrganizationID, token)
	}
	err = wirekit.EachRow(c.Profile, op, read, func(e wireAuditLog) string { return e.ID }, func(e wireAuditLog) bool {
		if e.TargetID == w.ID && e.Action != "create" {
			all = append(
				all,
				sandbox.Event{
					At: e.CreatedAt, Event: e.Action,
					Detail: strings.Join(slices.DeleteFunc([]string{e.ActorEmail, e.Source, e.ErrorMessage}, func(s string) bool { return s == "" }), ", "),
				},
			)
		}
		return true
	})
	if fault.KindOf(err) == fault.KindAuth {
		return nil, c.Fault(fault.KindUnsupported, op, "the key has no right to read the audit log").WithHint("it needs the right read:audit_logs")
	}
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return all, err
}

// readAudit reads a page of the audit log; the token is its number, from 1.
func (c *Client) readAudit(ctx context.Context, op, organization, token string) (wirekit.Page[wireAuditLog], error) {
	var log wireAudit
	n, _ := strconv.Atoi(cmp.Or(token, "1"))
	_, err := c.API.JSON(ctx, httpx.Request{
		Op: op, Path: httpx.Path("audit", "organizations", organization), Query: url.Values{"limit": {strconv.Itoa(auditPageSize)}, "page": {strconv.Itoa(n)}},
	}, &log)
	if err != nil {
		return wirekit.Page[wireAuditLog]{}, err
	}
	rows, err := log.Items.Named(func(e wireAuditLog) string { return e.ID })
	page := wirekit.Page[wireAuditLog]{Rows: rows}
	switch full := log.Items.Len() >= auditPageSize; {
	case !full, log.Total != nil && int64(n*auditPageSize) >= *log.Total:
	case n == maxAuditPages:
		page.Unmarked, page.Full = true, true
	default:
		page.Next = strconv.Itoa(n + 1)
	}
	return page, fault.Placed(err, c.Profile, op)
}

// Exit is the exit of the program that create started, from its file inside.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	w, err := c.detail(ctx, "exit", id)
	switch {
	case err != nil:
		return nil, err
	case w.Labels[sandbox.LabelRun] == "":
		return nil, fault.Placed(fault.New(fault.KindNotFound, "%w", guest.ErrNoRun), c.Profile, "exit "+id)
	case stateOf(w) != sandbox.StateRunning:
		return nil, c.Fault(fault.KindUnavailable, "exit "+id, "it is %s, and its exit is stored in it", w.State).Inside()
	}
	exit, err := guest.Exit(ctx, c.shellOf(w.ID, nil, true), w.Labels[sandbox.LabelRun])
	return exit, fault.Placed(err, c.Profile, "exit "+id)
}

// probePause is the time between two probes of a toolbox that does not answer: a daemon that
// is being restarted answers the second one.
const probePause = 2 * time.Second

// Probe reads the record and, in state `started`, asks the toolbox, twice if the first answer
// says that it is broken: after memory ran out inside, a sandbox stays `started` for minutes.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	w, err := c.detail(ctx, "probe", id)
	if err != nil {
		return providers.Health{}, err
	}
	h := providers.Health{Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown, Evidence: []sandbox.Evidence{c.Evidence("state", w.State, "API")}}
	switch s := stateOf(w); {
	case isTransitional(s):
		h.Condition = providers.ConditionWait
		return h, nil
	case s == sandbox.StateStopped, s == sandbox.StatePaused, s == sandbox.StateFailed && w.Recoverable:
		h.Verdict, h.Condition = sandbox.False, providers.ConditionResumable
		return h, nil
	case s.Ended():
		h.Verdict, h.Condition = sandbox.False, providers.ConditionRecreate
		return h, nil
	case s != sandbox.StateRunning:
		return h, nil
	}
	ask := func() error {
		_, err := c.API.Do(ctx, c.toolbox(httpx.Request{Op: "probe " + id, Path: "/version", Once: true, Fresh: true}, w.ID, true))
		return err
	}
	if err = httpx.LookAnswer(ctx); err == nil { // else the look has the first answer
		err = ask()
	}
	if showsBroken(err) {
		if err := wirekit.Sleep(ctx, probePause); err != nil {
			return h, fault.Placed(err, c.Profile, "probe "+id)
		}
		err = ask()
	}
	return c.toolboxHealth(h, err), ctx.Err()
}

// showsBroken reports whether an answer of the toolbox, or of the proxy in front of it, says that the sandbox does not
// work.
func showsBroken(err error) bool { return saysBroken(httpx.StatusOf(err)) }

func saysBroken(s *httpx.StatusError) bool {
	return lacksDaemon(s) || lacksAddress(s) || lacksContainer(s)
}

func (c *Client) toolboxHealth(h providers.Health, err error) providers.Health {
	fact := c.Evidence("toolbox", "answers", "toolbox")
	h.Verdict, h.Condition = sandbox.True, providers.ConditionHealthy
	if err != nil {
		fact.Value = err.Error()
		h.Verdict, h.Condition = sandbox.Unknown, providers.ConditionUnknown
		if showsBroken(err) {
			h.Verdict, h.Condition = sandbox.False, providers.ConditionBroken
		}
	}
	h.Evidence = append(h.Evidence, fact)
	return h
}

// Quota reads the limits of the organization, by region. The organization of a key is known
// from the settings or from any sandbox; without both nothing is used of limits that are not known.
func (c *Client) Quota(ctx context.Context) ([]providers.Quota, error) {
	for _, query := range []url.Values{listQuery(providers.Query{}), hiddenQuery("")} { // hidden ones use quota, too
		if c.knownAccount() != "" {
			break
		}
		if err := c.eachRow(ctx, query, func(wireSandbox) bool { return false }); err != nil {
			return nil, err
		}
	}
	id := c.knownAccount()
	if id == "" {
		return []providers.Quota{{Name: "sandboxes", Unit: "sandboxes", Used: new(0.0)}}, nil
	}
	var w wireUsage
	if _, err := c.API.JSON(ctx, httpx.Request{Op: "quota", Path: httpx.Path("organizations", id, "usage")}, &w); err != nil {
		return nil, err
	}
	regions, err := w.RegionUsage.Rows()
	var all []providers.Quota
	for _, r := range regions {
		scope := r.RegionID
		if r.Class != "" {
			scope += " " + r.Class
		}
		all = append(all,
			providers.Quota{Name: "cpu", Scope: scope, Unit: "cores", Used: r.CPUUsed, Limit: r.CPU},
			providers.Quota{Name: "memory", Scope: scope, Unit: "GiB", Used: r.MemUsed, Limit: r.Mem},
			providers.Quota{Name: "disk", Scope: scope, Unit: "GiB", Used: r.DiskUsed, Limit: r.Disk})
	}
	return all, fault.Placed(err, c.Profile, "quota")
}

// Check checks the profile: address, key and its permissions, clocks, sandboxes without an
// end, failed ones by runner, and hidden ones.
func (c *Client) Check(ctx context.Context) []providers.Check {
	t := &doctorCounts{errors: map[string]int{}}
	if err := c.eachRow(ctx, listQuery(providers.Query{}), t.countRow); err != nil {
		return []providers.Check{wirekit.FailedCheck("api", err)}
	}
	found := []providers.Check{{Check: "api", Verdict: sandbox.True, Message: fmt.Sprintf("answers; %d sandboxes", t.all)}}
	found = append(found, c.checkPermissions(ctx))
	found = append(found, t.findings(c.Profile)...)
	lost := 0
	if err := c.eachRow(ctx, hiddenQuery(""), func(w wireSandbox) bool {
		if w.DesiredState == "destroyed" {
			lost++
		}
		return true
	}); err == nil && lost > 0 {
		found = append(
			found,
			providers.Check{
				Check: "hidden", Verdict: sandbox.False,
				Message: fmt.Sprintf("%d failed sandboxes are deleted in the API and may still be held by a runner", lost),
				Hint:    "they use quota until the runner releases them: report them to its operator",
			},
		)
	}
	return append(found, providers.CheckClock(c.API))
}

func (c *Client) knownAccount() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.account
}

func (c *Client) checkPermissions(ctx context.Context) providers.Check {
	var key wireKey
	if _, err := c.API.JSON(ctx, httpx.Request{Op: "key", Path: "/api-keys/current"}, &key); err != nil {
		return providers.Check{Check: "key", Verdict: sandbox.Unknown, Message: err.Error(), Info: true}
	}
	for right, verb := range map[string]string{"write:sandboxes": "create and stop", "delete:sandboxes": "delete"} {
		if !slices.Contains(key.Permissions, right) {
			return providers.Check{
				Check: "key", Verdict: sandbox.False, Message: "the key " + key.Name + " may not " + verb + " sandboxes", Hint: "it lacks the right " + right,
			}
		}
	}
	return providers.Check{Check: "key", Verdict: sandbox.True, Message: "has the rights to create, stop and delete"}
}

type doctorCounts struct {
	all, endless int
	errors       map[string]int // by runner and reason
}

func (t *doctorCounts) countRow(w wireSandbox) bool {
	t.all++
	if stateOf(w) == sandbox.StateRunning && w.AutoStopInterval != nil && *w.AutoStopInterval == 0 && w.AutoDestroyAt.IsZero() {
		t.endless++
	}
	if stateOf(w) == sandbox.StateFailed {
		t.errors["runner "+w.RunnerID+": "+w.ErrorReason]++
	}
	return true
}

func (t *doctorCounts) findings(profile string) []providers.Check {
	var found []providers.Check
	if t.endless > 0 {
		found = append(
			found,
			providers.Check{
				Check: "endless", Verdict: sandbox.False, Message: fmt.Sprintf("%d running sandboxes have auto-stop off and no time limit", t.endless),
				Hint: "`sbx ls --provider " + profile + " --older-than 1h` finds them",
			},
		)
	}
	for _, where := range slices.Sorted(maps.Keys(t.errors)) {
		found = append(
			found,
			providers.Check{
				Check: "errors", Verdict: sandbox.False, Message: fmt.Sprintf("%d failed: %s", t.errors[where], where),
				Hint: "if many are on one runner, the runner is the cause",
			},
		)
	}
	return found
}
