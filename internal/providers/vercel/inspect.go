package vercel

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Exit is the exit of the program that create started, from its file inside; after the
// session has ended, how that ended.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	v, err := c.resolve(ctx, "exit", id)
	op := "exit " + id
	switch {
	case err != nil:
		return nil, err
	case sessionEnded(v.session.Status):
		return sessionExit(v.session.Status, v.session, v.session.endTime()), nil
	case !v.madeBySbx():
		return nil, fault.Placed(fault.New(fault.KindNotFound, "%w", guest.ErrNoRun), c.Profile, op)
	}
	if err := c.checkRunning(v, op); err != nil {
		return nil, err
	}
	exit, err := guest.Exit(ctx, c.shellOf(v.session.ID, nil), guest.MainTag)
	return exit, fault.Placed(err, c.Profile, op)
}

// Events are the timestamps of a session, and the creation of its name, which may be long
// before; the API keeps no other record.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	v, err := c.resolve(ctx, "events", id)
	if err != nil {
		return nil, err
	}
	var all []sandbox.Event
	add := func(at millis, name, detail string) {
		if moment := at.time(); !moment.IsZero() {
			all = append(all, sandbox.Event{At: moment, Event: name, Detail: detail})
		}
	}
	if v.box != nil {
		add(v.box.CreatedAt, "created", "the name "+v.box.Name)
	}
	w := v.session
	add(w.RequestedAt, "requested", "session "+w.ID)
	add(w.StartedAt, "started", "")
	add(w.RequestedStopAt, "stop requested", "")
	add(w.SnapshottedAt, "snapshotted", "")
	add(w.StoppedAt, "stopped", "")
	add(w.AbortedAt, "aborted", "by the platform")
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return all, nil
}

// Usage is measured by a command inside while the session runs, since the API has no live
// figures; after a regular stop the API has the processor time of the whole run.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	v, err := c.findSession(ctx, "usage", id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	limit := toLimits(nil, v.session.Memory).MemoryBytes
	if v.session.Status != "running" {
		u := sandbox.Usage{At: c.Now(), Source: "API (the whole run, after its end)", MemoryLimitBytes: limit}
		if ms := v.session.ActiveCPUDurationMS; ms != nil && *ms >= 0 {
			u.CPUSeconds = new(*ms / 1000)
		}
		return u, nil
	}
	u, err := guest.Usage(ctx, c.turns.Measurement(v.session.ID, c.untimedShell(v.session.ID, nil)), c.Now())
	if u.MemoryLimitBytes == nil {
		u.MemoryLimitBytes = limit
	}
	return u, fault.Placed(err, c.Profile, "usage "+id)
}

// probeTimeout is how long a probe waits for an answer from inside.
const probeTimeout = 10 * time.Second

// Probe reads the session's status and runs a command in a running session: a record that can
// be read is no proof that the VM answers. Whether a stopped sandbox can be resumed is known
// by its snapshot, without a resume.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	v, err := c.resolve(ctx, "probe", id)
	if fault.KindOf(err) == fault.KindGone {
		return c.health(sandbox.False, providers.ConditionRecreate, "sandbox", err.Error()), nil
	}
	if err != nil {
		return providers.Health{}, err
	}
	verdict, condition := statusHealth(v)
	h := c.health(verdict, condition, "session status", v.session.Status)
	if v.wasResumed() {
		h.Evidence = append(h.Evidence, c.Evidence("resumed as", v.box.CurrentSessionID, "API"))
	}
	switch condition {
	case providers.ConditionHealthy:
		err = c.probeCommand(ctx, v, &h)
	case providers.ConditionResumable:
		err = c.probeSnapshot(ctx, v, &h)
	default:
	}
	return h, err
}

func (c *Client) health(verdict sandbox.Verdict, condition providers.Condition, what, value string) providers.Health {
	return providers.Health{
		Verdict: verdict, Condition: condition, Evidence: []sandbox.Evidence{c.Evidence(what, value, "API")},
	}
}

func statusHealth(v view) (sandbox.Verdict, providers.Condition) {
	switch status := v.session.Status; {
	case status == "running":
		return sandbox.True, providers.ConditionHealthy
	case status == "pending", status == "stopping", status == "snapshotting":
		return sandbox.Unknown, providers.ConditionWait
	case sessionEnded(status):
		return sandbox.False, v.conditionAfterEnd()
	}
	return sandbox.Unknown, providers.ConditionUnknown
}

// conditionAfterEnd is the condition of a session that has ended. It is unknown where the
// sandbox was resumed: then it is that of the newer session.
func (v view) conditionAfterEnd() providers.Condition {
	switch {
	case v.wasResumed():
		return providers.ConditionUnknown
	case v.box != nil && v.persistent():
		return providers.ConditionResumable
	}
	return providers.ConditionRecreate
}

func (v view) wasResumed() bool {
	return v.box != nil && v.box.CurrentSessionID != "" && v.box.CurrentSessionID != v.session.ID
}

func (c *Client) probeCommand(ctx context.Context, v view, h *providers.Health) error {
	short, cancel := context.WithTimeoutCause(ctx, probeTimeout, fault.New(fault.KindUnavailable, "it did not respond within %s", probeTimeout))
	defer cancel()
	said := "answers"
	_, _, err := c.shellOf(v.session.ID, nil)(short, "exit 0")
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil:
		h.Verdict, h.Condition = refusalHealth(v, err)
		said = err.Error()
	}
	h.Evidence = append(h.Evidence, c.Evidence("command", said, "session"))
	return nil
}

// refusalHealth is what the refusal of a command means for a session that was running a
// moment ago (Vercel Sandbox API, error codes). Without an answer it is unknown.
func refusalHealth(v view, err error) (sandbox.Verdict, providers.Condition) {
	switch kind := fault.KindOf(err); {
	case inTransition(err):
		return sandbox.Unknown, providers.ConditionWait
	case errorCode(err) == "snapshot_not_found", kind == fault.KindNotFound:
		return sandbox.False, providers.ConditionRecreate
	case kind == fault.KindGone:
		return sandbox.False, v.conditionAfterEnd()
	}
	return sandbox.Unknown, providers.ConditionUnknown
}

// probeSnapshot reads whether the snapshot exists that a resume needs.
func (c *Client) probeSnapshot(ctx context.Context, v view, h *providers.Health) error {
	if v.box.CurrentSnapshotID == "" {
		return nil // not known: the status alone decides
	}
	var one wireOneSnapshot
	err := c.getObject(ctx, "probe "+v.session.ID, httpx.Path("v2", "sandboxes", "snapshots", v.box.CurrentSnapshotID), &one)
	said := one.Snapshot.Status
	switch expires := one.Snapshot.ExpiresAt.time(); {
	case ctx.Err() != nil:
		return err
	case wirekit.Missing(err):
		h.Condition, said = providers.ConditionRecreate, err.Error()
	case err != nil:
		h.Condition, said = providers.ConditionUnknown, err.Error()
	case said == "":
		h.Condition, said = providers.ConditionUnknown, "the answer has no status"
	case said != "created", !expires.IsZero() && expires.Before(c.Now()):
		h.Condition = providers.ConditionRecreate
	}
	h.Evidence = append(h.Evidence, c.Evidence("snapshot", said, "API"))
	return nil
}

// Check checks the profile: token, team and project by a listing, the clocks, sandboxes that
// run beyond their time, and stopped ones that may be billed.
func (c *Client) Check(ctx context.Context) []providers.Check {
	running, stopped, overdue := 0, 0, 0
	for s, err := range c.List(ctx, providers.Query{}) {
		if err != nil {
			return []providers.Check{c.listCheck(err), providers.CheckClock(c.API)}
		}
		switch s.State {
		case sandbox.StateRunning:
			running++
			if !s.ExpiresAt.IsZero() && s.ExpiresAt.Before(c.Now().Add(-httpx.SkewTolerated)) {
				overdue++
			}
		case sandbox.StateStopped:
			stopped++
		default:
		}
	}
	found := []providers.Check{{Check: "api", Verdict: sandbox.True, Message: fmt.Sprintf("answers; %d running, %d stopped", running, stopped)}}
	if overdue > 0 {
		found = append(found, providers.Check{
			Check: "overdue", Verdict: sandbox.False, Message: fmt.Sprintf("%d sandboxes run longer than their time limit", overdue),
			Hint: "`sbx ls --provider " + c.Profile + "` shows when each should have ended",
		})
	}
	if stopped > 0 {
		found = append(found, providers.Check{
			Check: "snapshots", Verdict: sandbox.True, Info: true, Message: fmt.Sprintf("%d stopped sandboxes may keep billed snapshots", stopped),
			Hint: "`sbx terminate REF --delete` deletes one with its snapshot",
		})
	}
	return append(append(found, c.checkToken()...), providers.CheckClock(c.API))
}

// listCheck says which setting is wrong where the list cannot be read: the API answers alike
// for a project that does not exist and for one that the token may not see.
func (c *Client) listCheck(err error) providers.Check {
	k := wirekit.FailedCheck("api", err)
	switch httpx.Status(err) {
	case http.StatusUnauthorized:
		k.Check, k.Hint = "token", "the token is wrong or has expired: set VERCEL_TOKEN"
	case http.StatusForbidden:
		k.Check, k.Hint = "team", "the token has no access to team "+c.team+": check that VERCEL_TEAM_ID is its id"
	case http.StatusNotFound, http.StatusBadRequest:
		k.Check, k.Hint = "project", "team "+c.team+" has no project "+c.project+": check that VERCEL_PROJECT_ID is its id"
	case http.StatusGone:
		k.Check, k.Hint = "project", "team "+c.team+" or project "+c.project+" has been deleted"
	}
	return k
}

// checkToken says when an OIDC token expires, which takes hours.
func (c *Client) checkToken() []providers.Check {
	left := c.expires.Sub(c.Now())
	switch {
	case c.expires.IsZero() || left > time.Hour:
		return nil
	case left <= 0:
		return []providers.Check{{Check: "token", Verdict: sandbox.False, Message: "the token has expired", Hint: "pull a new OIDC token, or set an access token"}}
	}
	return []providers.Check{{Check: "token", Verdict: sandbox.True, Info: true, Message: "the token expires in " + sandbox.FormatDuration(left)}}
}
