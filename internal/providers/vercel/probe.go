package vercel

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// patience is how long a probe waits for a word from inside.
const patience = 10 * time.Second

// Probe judges by the session's status first, then by the codes of 410 and 422:
// that a name can be read does not mean that it answers. Whether a stopped sandbox
// can be resumed is asked of its snapshot, never by a resume.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	v, err := c.resolve(ctx, "probe", id)
	if fault.KindOf(err) == fault.KindGone {
		return c.health(sandbox.False, providers.ConditionRecreate, "sandbox", err.Error()), nil
	}
	if err != nil {
		return providers.Health{}, err
	}
	verdict, condition := judge(v)
	h := c.health(verdict, condition, "session status", v.session.Status)
	if v.followed() {
		h.Evidence = append(h.Evidence, sandbox.Evidence{What: "resumed as", Value: v.box.CurrentSessionID, Source: "API", At: c.now()})
	}
	switch condition {
	case providers.ConditionHealthy:
		err = c.answers(ctx, v, &h)
	case providers.ConditionResumable:
		err = c.kept(ctx, v, &h)
	default:
	}
	return h, err
}

func (c *Client) health(verdict sandbox.Verdict, condition providers.Condition, what, value string) providers.Health {
	return providers.Health{
		Verdict: verdict, Condition: condition,
		Evidence: []sandbox.Evidence{{What: what, Value: value, Source: "API", At: c.now()}},
	}
}

// judge says what a status means.
func judge(v view) (sandbox.Verdict, providers.Condition) {
	switch status := v.session.Status; {
	case status == "running":
		return sandbox.True, providers.ConditionHealthy
	case status == "pending", status == "stopping", status == "snapshotting":
		return sandbox.Unknown, providers.ConditionWait
	case over(status):
		return sandbox.False, v.after()
	}
	return sandbox.Unknown, providers.ConditionUnknown
}

// after is what can be done once a session is over. Where it was resumed as
// another since, nothing is concluded: that one is to be judged.
func (v view) after() providers.Condition {
	switch {
	case v.followed():
		return providers.ConditionUnknown
	case v.box != nil && v.persistent():
		return providers.ConditionResumable
	}
	return providers.ConditionRecreate
}

// followed says that the sandbox has another session by now.
func (v view) followed() bool {
	return v.box != nil && v.box.CurrentSessionID != "" && v.box.CurrentSessionID != v.session.ID
}

// answers runs a command that does nothing.
func (c *Client) answers(ctx context.Context, v view, h *providers.Health) error {
	short, cancel := context.WithTimeoutCause(ctx, patience, fault.New(fault.KindUnavailable, "nothing inside answers within %s", patience))
	defer cancel()
	said := "answers"
	_, _, err := c.shell(short, v.session.ID, "exit 0", nil)
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil:
		h.Verdict, h.Condition = refusal(v, err)
		said = err.Error()
	}
	h.Evidence = append(h.Evidence, sandbox.Evidence{What: "command", Value: said, Source: "session", At: c.now()})
	return nil
}

// refusal says what a command's refusal means for a session that was running a
// moment ago (Vercel Sandbox API, error codes). What cannot be asked is unknown.
func refusal(v view, err error) (sandbox.Verdict, providers.Condition) {
	switch kind := fault.KindOf(err); {
	case moving(err):
		return sandbox.Unknown, providers.ConditionWait
	case codeOf(err) == "snapshot_not_found", kind == fault.KindNotFound:
		return sandbox.False, providers.ConditionRecreate
	case kind == fault.KindGone:
		return sandbox.False, v.after()
	}
	return sandbox.Unknown, providers.ConditionUnknown
}

// kept looks whether the snapshot that a resume would need is there.
func (c *Client) kept(ctx context.Context, v view, h *providers.Health) error {
	if v.box.CurrentSnapshotID == "" {
		return nil // the API does not tell; the status stands
	}
	var one wireOneSnapshot
	err := c.get(ctx, "probe "+v.session.ID, httpx.Path("v2", "sandboxes", "snapshots", v.box.CurrentSnapshotID), &one)
	said := one.Snapshot.Status
	switch expires := one.Snapshot.ExpiresAt.time(); {
	case ctx.Err() != nil:
		return err
	case missing(err):
		h.Condition, said = providers.ConditionRecreate, err.Error()
	case err != nil:
		h.Condition, said = providers.ConditionUnknown, err.Error()
	case said == "":
		h.Condition, said = providers.ConditionUnknown, "the answer has no status"
	case said != "created", !expires.IsZero() && expires.Before(c.now()):
		h.Condition = providers.ConditionRecreate
	}
	h.Evidence = append(h.Evidence, sandbox.Evidence{What: "snapshot", Value: said, Source: "API", At: c.now()})
	return nil
}
