package local

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// answerLimit is how long a stub may take to answer; it needs less than a millisecond, and
// some hundred on a machine that swaps.
const answerLimit = 2 * time.Second

// Probe checks whether the supervisor is alive and asks the stub. A lingering sandbox whose
// program has ended is healthy.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	r, err := c.loadRecord(ctx, "probe", id)
	if err != nil {
		return providers.Health{}, err
	}
	h := providers.Health{Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown}
	h.Evidence = append(h.Evidence, c.newEvidence("state", string(r.State), "record"))
	if r.State.Ended() {
		h.Verdict, h.Condition = sandbox.False, providers.ConditionRecreate
		return h, nil
	}
	alive, err := c.supervisorAlive(r)
	if err != nil {
		return h, nil //nolint:nilerr // "unknown" is a result of a probe
	}
	h.Evidence = append(h.Evidence, c.newEvidence("supervisor", aliveWord(alive), "lock of the record"))
	switch {
	case !alive:
		h.Verdict, h.Condition = sandbox.False, providers.ConditionRecreate
	case r.State != sandbox.StateRunning:
		h.Condition = providers.ConditionWait
	default:
		err = c.probeStub(ctx, r, &h)
	}
	return h, err
}

// probeStub sends the stub an empty command, which it answers with a refusal.
func (c *Client) probeStub(ctx context.Context, r record.Record, h *providers.Health) error {
	err := c.askStub(ctx, r)
	switch {
	case ctx.Err() != nil:
		return c.classifyError("probe "+r.ID, ctx.Err())
	case errors.Is(err, errors.ErrUnsupported):
		return c.probeProgram(r, h)
	case err == nil:
		h.Evidence = append(h.Evidence, c.newEvidence("stub", "answers", "command socket"))
		h.Verdict, h.Condition = sandbox.True, providers.ConditionHealthy
		return nil
	}
	h.Evidence = append(h.Evidence, c.newEvidence("stub", err.Error(), "command socket"))
	h.Verdict, h.Condition = sandbox.False, providers.ConditionBroken
	if now, err := c.store.Read(r.ID); err == nil && now.State.Ended() { // it ended meanwhile
		h.Condition = providers.ConditionRecreate
	}
	return nil
}

// probeProgram is used where there is no socket: a running program counts as healthy.
func (c *Client) probeProgram(r record.Record, h *providers.Health) error {
	if r.ProgramEnded() {
		return nil // no process is left to check
	}
	running, err := r.Program.Alive()
	if err != nil {
		return nil //nolint:nilerr // "unknown" is a result of a probe
	}
	h.Evidence = append(h.Evidence, c.newEvidence("program", aliveWord(running), "process list"))
	if running {
		h.Verdict, h.Condition = sandbox.True, providers.ConditionHealthy
	}
	return nil
}

// askStub returns nil when the stub has answered.
func (c *Client) askStub(ctx context.Context, r record.Record) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errors.New("no answer within "+answerLimit.String()))
	defer cancel()
	conn, err := connectStub(ctx, c.store.Dir(r.ID))
	if err != nil {
		return err
	}
	defer conn.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	defer closeOnCancel(ctx, conn)()
	if err := wire.SendExec(conn, wire.Exec{}, [3]*os.File{null, null, null}); err != nil {
		return err
	}
	var answer wire.StubReport
	if err := wire.NewReader(conn).Next(&answer); ctx.Err() != nil {
		return context.Cause(ctx)
	} else if err != nil {
		return err
	}
	return nil
}

// connectInterval is the time between two attempts to connect.
const connectInterval = 20 * time.Millisecond

// connectStub also returns at the end of ctx where the queue of a hanging stub is full.
func connectStub(ctx context.Context, dir string) (*os.File, error) {
	for {
		conn, err := wire.TryConnect(dir)
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		if err := poll.Sleep(ctx, connectInterval); err != nil {
			return nil, err
		}
	}
}

func (c *Client) newEvidence(what, value, source string) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: source, At: c.now().UTC()}
}

func aliveWord(alive bool) string {
	if alive {
		return "alive"
	}
	return "dead"
}
