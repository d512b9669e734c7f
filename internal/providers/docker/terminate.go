package docker

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Terminate stops a container, which keeps its disk and its log, and keeps its restart policy from starting it again
// when the engine restarts. With Delete it is removed with its anonymous volumes. What was never
// started has nothing to keep, and is removed.
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	op := "terminate " + id
	w, err := c.inspectForEnd(ctx, id, o)
	defer c.lately.Forget(id)
	c.started.Forget(id)
	if err != nil {
		return providers.NothingSent(err)
	}
	state := stateOf(w.State.Status)
	runs := slices.Contains([]sandbox.State{sandbox.StateRunning, sandbox.StatePaused}, state)
	switch {
	case state == sandbox.StateTerminating && w.State.Status == "removing":
		return nil // it ends already
	case !o.Delete && (state == sandbox.StateStopped || state.Ended()):
		return c.Fault(fault.KindGone, op, "it is %s", w.State.Status)
	case runs:
		if err := c.stop(ctx, op, w, o.Grace); err != nil && (!o.Delete || !providers.Answered(err)) {
			return providers.EndFailed(err)
		}
	}
	if !o.Delete && state != sandbox.StateProvisioning {
		c.keepDown(ctx, op, w)
		return nil
	}
	err = c.send(
		ctx,
		httpx.Request{Op: op, Method: http.MethodDelete, Path: httpx.Path("containers", w.ID), Query: url.Values{"force": {"1"}, "v": {"1"}}, Timeout: createTimeout},
	)
	switch {
	case runs && httpx.AnsweredMissing(err): // `--rm` has removed it when it stopped
		return nil
	case httpx.Status(err) == http.StatusConflict: // "removal of container is already in progress"
		now, failed := c.inspect(ctx, "terminate", w.ID)
		if httpx.AnsweredMissing(failed) || failed == nil && now.State.Status == "removing" {
			return nil
		}
	case !runs:
		return providers.EndFailed(err)
	}
	return err
}

// inspectForEnd reads a container that is to be ended. The read of the caller right before counts where it has shown that
// it runs. With Insist, one that is missing or has stopped counts as running: another source says so.
func (c *Client) inspectForEnd(ctx context.Context, id string, o providers.TerminateOptions) (wireContainer, error) {
	if o.Seen != nil && !o.Insist {
		if w, known, err := c.lately.Last(ctx, id); known && err == nil && stateOf(w.State.Status) == sandbox.StateRunning {
			return w, nil
		}
	}
	w, err := c.inspect(ctx, "terminate", id)
	if o.Insist && (httpx.AnsweredMissing(err) || err == nil && w.State.Status != "removing") {
		w.ID, w.State.Status, err = id, "running", nil
	}
	return w, err
}

// stop sends TERM, and KILL after the grace; it returns when the container has stopped. What is paused has to go on
// first where the engine does not stop it (Podman 4: 500, "container state improper").
func (c *Client) stop(ctx context.Context, op string, w wireContainer, grace time.Duration) error {
	stop := httpx.Request{
		Op: op, Method: http.MethodPost, Path: httpx.Path("containers", w.ID, "stop"),
		Query: url.Values{"t": {strconv.Itoa(int(math.Ceil(grace.Seconds())))}}, Timeout: grace + createTimeout,
	}
	err := c.send(ctx, stop)
	if w.State.Status != "paused" || !providers.Answered(err) || httpx.AnsweredMissing(err) {
		return err
	}
	if failed := c.send(ctx, httpx.Request{Op: op, Method: http.MethodPost, Path: httpx.Path("containers", w.ID, "unpause")}); failed != nil {
		return err
	}
	return c.send(ctx, stop)
}

// startsAgain is the restart policy by which an engine that restarts also starts what was stopped.
const startsAgain = "always"

// endNote is what a plan says of a restart policy.
func (c *Client) endNote(p wireRestart) string {
	switch {
	case p.Name != startsAgain:
		return ""
	case c.changesPolicies():
		return "its restart policy " + startsAgain + " becomes unless-stopped"
	}
	return "its restart policy is " + startsAgain + ", which this engine cannot change: it runs again when the engine restarts, unless it is deleted"
}

// keepDown changes the restart policy of a stopped container to the one that differs in this alone: it stays down until
// somebody starts it. An engine may not be able to (Podman before 5.1): the proof of the end says so.
func (c *Client) keepDown(ctx context.Context, op string, w wireContainer) {
	if w.HostConfig.RestartPolicy.Name == startsAgain {
		_ = c.send(
			ctx,
			httpx.Request{Op: op, Method: http.MethodPost, Path: httpx.Path("containers", w.ID, "update"), JSON: wireUpdate{wireRestart{"unless-stopped"}}},
		)
	}
}

// VerifyEnd reads the container again. A stop is proved where the list of all agrees. A delete is proved where the engine does not find it, neither by its id
// nor in the list of all, and its memory of events adds when its main program died.
func (c *Client) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	w, known, err := c.lately.Last(ctx, id) // the list of all is the second source
	if !known {
		w, err = c.inspect(ctx, "verify", id)
	}
	switch {
	case err == nil && !q.Delete && !w.State.Running && stateOf(w.State.Status) == sandbox.StateStopped:
		if q.Request.Sent() && !madeBySbx(w.Config.Labels) && q.Now.Sub(q.Since) < restartPause {
			return providers.Proof{Ended: sandbox.Unknown, Reason: "it has just stopped, and something may start it again"}, nil
		}
		return c.verifyStopped(ctx, w)
	case err == nil:
		return providers.Proof{Ended: sandbox.False, Reason: "it is " + w.State.Status, KeptBy: c.startedAgain(w, q.Request)}, nil
	case !httpx.AnsweredMissing(err):
		return providers.Proof{}, err
	}
	rows, err := c.rows(ctx, "verify "+id, filters("id", id))
	switch {
	case err != nil:
		return providers.Proof{}, err
	case len(rows) > 0:
		return providers.Proof{Ended: sandbox.False, Reason: "the list still has it as " + rows[0].State}, nil
	}
	proof := providers.Proof{
		Ended: sandbox.True, Evidence: []sandbox.Evidence{c.Evidence("read by id", "not found", "engine"), c.Evidence("list", "not in it", "engine")},
	}
	ahead, _ := c.Skew()
	for _, more := range []time.Duration{0, clockStep} { // the clock of the engine is known to a second
		events, err := c.remembered(ctx, "verify "+id, id, q.Since.Add(ahead-eventWindow), more)
		for _, e := range events {
			if err == nil && e.Event == "die" {
				proof.Independent = true
				proof.Evidence = append(proof.Evidence, sandbox.Evidence{What: "event", Value: "die " + e.Detail, Source: "engine", At: e.At})
			}
		}
		if proof.Independent || !q.Request.Unconfirmed() {
			break
		}
	}
	return proof, nil
}

// restartPause is how long a container of others has to stay down: what watches over it may start it again at once.
const restartPause = 500 * time.Millisecond

// startedAgain says that something has started a container again since the request to end it; "" = it has not.
func (c *Client) startedAgain(w wireContainer, asked *sandbox.EndRequest) string {
	ahead, _ := c.Skew()
	if !asked.Sent() || stateOf(w.State.Status) != sandbox.StateRunning ||
		!w.State.FinishedAt.After(asked.At.Add(ahead-clockStep)) || w.State.StartedAt.Before(w.State.FinishedAt) {
		return ""
	}
	return "it was stopped, and something has started it again at " + w.State.StartedAt.UTC().Format(time.RFC3339)
}

// verifyStopped compares the record of a stopped container with its row in the list.
func (c *Client) verifyStopped(ctx context.Context, w wireContainer) (providers.Proof, error) {
	rows, err := c.rows(ctx, "verify "+w.ID, filters("id", w.ID))
	if err != nil {
		return providers.Proof{}, err
	}
	said := "not in it"
	for _, row := range rows {
		if said = row.State; stateOf(said) != sandbox.StateStopped {
			return providers.Proof{Ended: sandbox.False, Reason: "it is " + w.State.Status + ", and the list shows it as " + said}, nil
		}
	}
	proof := providers.Proof{
		Ended: sandbox.True, Independent: true,
		Evidence: []sandbox.Evidence{c.Evidence("state", w.State.Status, "engine"), c.Evidence("list", said, "engine")},
	}
	if w.HostConfig.RestartPolicy.Name == startsAgain {
		proof.Reason = "its restart policy is still " + startsAgain + ": it runs again when the engine restarts, unless it is deleted"
	}
	return proof, nil
}

// clockStep is how exactly the clock of an engine is known.
const clockStep = time.Second

// eventWindow is how long before the end was first seen its events may be.
const eventWindow = time.Hour
