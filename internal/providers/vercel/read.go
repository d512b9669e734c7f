package vercel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// Usage is measured by a command inside while the session runs, since the API has
// no live figures; afterwards it tells the processor time of the whole run.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	v, err := c.resolve(ctx, "usage", id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	if v.session.Status == "running" {
		u, err := guest.Usage(ctx, c.shellOf(v.session.ID), c.now())
		return u, c.at(err, "usage "+id)
	}
	u := sandbox.Usage{At: c.now(), Source: "API (after the end)"}
	if ms := v.session.ActiveCPUDurationMS; ms != nil {
		u.CPUSeconds = new(*ms / 1000)
	}
	return u, nil
}

// Events tells a session's life from its timestamps; the API keeps no other.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	v, err := c.resolve(ctx, "events", id)
	if err != nil {
		return nil, err
	}
	w := v.session
	var all []sandbox.Event
	for _, e := range []struct {
		at   millis
		name string
	}{
		{w.RequestedAt, "requested"}, {w.StartedAt, "started"}, {w.RequestedStopAt, "stop requested"},
		{w.SnapshottedAt, "snapshotted"}, {w.StoppedAt, "stopped"}, {w.AbortedAt, "aborted"},
	} {
		if at := e.at.time(); !at.IsZero() {
			all = append(all, sandbox.Event{At: at, Event: e.name})
		}
	}
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return all, nil
}

// Probe judges by the session's status first, then by the codes of 410 and 422:
// that a name can be read does not mean that it answers.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	v, err := c.resolve(ctx, "probe", id)
	if err != nil {
		return providers.Health{}, err
	}
	verdict, condition := judge(v)
	h := providers.Health{
		Verdict: verdict, Condition: condition,
		Evidence: []sandbox.Evidence{{What: "session status", Value: v.session.Status, Source: "API", At: c.now()}},
	}
	if v.session.Status != "running" {
		return h, nil
	}
	_, _, err = c.shell(ctx, v.session.ID, "exit 0", nil)
	if err == nil {
		h.Evidence = append(h.Evidence, sandbox.Evidence{What: "command", Value: "answers", Source: "session", At: c.now()})
		return h, nil
	}
	if ctx.Err() != nil {
		return h, err
	}
	h.Verdict, h.Condition = refused(err)
	h.Evidence = append(h.Evidence, sandbox.Evidence{What: "command", Value: err.Error(), Source: "session", At: c.now()})
	return h, nil
}

// judge says what a status means (Vercel API, section 6 of its errors).
func judge(v view) (sandbox.Verdict, providers.Condition) {
	switch v.session.Status {
	case "running":
		return sandbox.True, providers.ConditionHealthy
	case "pending", "stopping", "snapshotting":
		return sandbox.Unknown, providers.ConditionWait
	case "stopped", "failed", "aborted":
		if v.box != nil && v.box.Persistent != nil && *v.box.Persistent {
			return sandbox.False, providers.ConditionResumable
		}
		return sandbox.False, providers.ConditionRecreate
	}
	return sandbox.Unknown, providers.ConditionUnknown
}

// refused says what a command's refusal means for a session that was running a
// moment ago.
func refused(err error) (sandbox.Verdict, providers.Condition) {
	switch kind := fault.KindOf(err); {
	case moving(err):
		return sandbox.Unknown, providers.ConditionWait
	case codeOf(err) == "snapshot_not_found", kind == fault.KindNotFound:
		return sandbox.False, providers.ConditionRecreate
	case kind == fault.KindGone:
		return sandbox.False, providers.ConditionResumable
	}
	return sandbox.Unknown, providers.ConditionUnknown
}

// Exit is that of the program which create started, from its file inside; of a
// session that is over, whether its time was.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	v, err := c.resolve(ctx, "exit", id)
	switch {
	case err != nil:
		return nil, err
	case v.session.over():
		return v.session.exit(), nil
	case v.box == nil || v.box.Tags[tagRun] == "" || v.session.Status != "running":
		return nil, c.at(fault.New(fault.KindNotFound, "%w", guest.ErrNoRun), "exit "+id)
	}
	exit, err := guest.Exit(ctx, c.shellOf(v.session.ID), v.box.Tags[tagRun])
	return exit, c.at(err, "exit "+id)
}

// late is how much later than its deadline a session may have stopped that was
// stopped by it.
const late = 2 * time.Second

func (w *wireSession) exit() *sandbox.Exit {
	e := failed(w)
	deadline, ended := w.deadline(), w.ended()
	switch {
	case w.RequestedStopAt.time().IsZero() && !deadline.IsZero() && !ended.Before(deadline.Add(-late)):
		e.Class, e.Cause, e.Confidence = sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable
		e.Evidence = append(e.Evidence, sandbox.Evidence{What: "deadline", Value: deadline.Format(time.RFC3339), Source: "API", At: ended})
	case w.Status == "stopped":
		e.Class, e.Cause, e.Confidence = sandbox.ClassStopped, sandbox.CauseStopped, sandbox.Probable
	}
	return e
}

// Check looks at the profile: do token, team and project lead to a list, do the
// clocks agree, does anything run beyond its time.
func (c *Client) Check(ctx context.Context) []providers.Check {
	counts := map[sandbox.State]int{}
	overdue := 0
	for s, err := range c.List(ctx, providers.Query{}) {
		if err != nil {
			return []providers.Check{{Check: "api", Verdict: sandbox.False, Message: err.Error(), Hint: fault.HintOf(err)}}
		}
		counts[s.State]++
		if s.State == sandbox.StateRunning && !s.ExpiresAt.IsZero() && s.ExpiresAt.Before(c.now()) {
			overdue++
		}
	}
	found := []providers.Check{{Check: "api", Verdict: sandbox.True, Message: fmt.Sprintf("answers; %d running, %d stopped", counts[sandbox.StateRunning], counts[sandbox.StateStopped])}}
	if overdue > 0 {
		found = append(found, providers.Check{Check: "overdue", Verdict: sandbox.False, Message: fmt.Sprintf("%d sandboxes run beyond their time", overdue), Hint: "`sbx ls --provider " + c.name + " --sort age` shows them"})
	}
	if n := counts[sandbox.StateStopped]; n > 0 {
		found = append(found, providers.Check{Check: "snapshots", Verdict: sandbox.True, Info: true, Message: fmt.Sprintf("%d stopped sandboxes keep billed snapshots", n)})
	}
	if ahead, known := c.http.Skew(); known && ahead.Abs() > httpx.SkewTolerated {
		found = append(found, providers.Check{Check: "clock", Verdict: sandbox.False, Message: "the API's clock is " + ahead.String() + " ahead of this machine's", Hint: "ages are counted with this machine's clock; set it right"})
	}
	return found
}
