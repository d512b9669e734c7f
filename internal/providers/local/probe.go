package local

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// answerLimit is how long a stub may take to answer; it needs less than a
// millisecond, and on a machine that swaps, some hundred.
const answerLimit = 2 * time.Second

// Probe looks whether the supervisor lives and asks the stub. That the program of a
// lingering sandbox has ended is no illness.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	r, err := c.load(ctx, "probe", id)
	if err != nil {
		return providers.Health{}, err
	}
	h := providers.Health{Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown}
	h.Evidence = append(h.Evidence, c.fact("state", string(r.State), "record"))
	if r.State.Ended() {
		h.Verdict, h.Condition = sandbox.False, providers.ConditionRecreate
		return h, nil
	}
	alive, err := c.alive(r)
	if err != nil {
		return h, nil //nolint:nilerr // not knowing is the answer of a probe
	}
	h.Evidence = append(h.Evidence, c.fact("supervisor", word(alive), "lock of the record"))
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

// probeStub asks the stub for nothing, which it refuses, and thereby answers.
func (c *Client) probeStub(ctx context.Context, r record.Record, h *providers.Health) error {
	err := c.ask(ctx, r)
	switch {
	case ctx.Err() != nil:
		return c.trouble("probe "+r.ID, ctx.Err())
	case errors.Is(err, errors.ErrUnsupported):
		return c.probeProgram(r, h)
	case err == nil:
		h.Evidence = append(h.Evidence, c.fact("stub", "answers", "command socket"))
		h.Verdict, h.Condition = sandbox.True, providers.ConditionHealthy
		return nil
	}
	h.Evidence = append(h.Evidence, c.fact("stub", err.Error(), "command socket"))
	h.Verdict, h.Condition = sandbox.False, providers.ConditionBroken
	if now, err := c.store.Read(r.ID); err == nil && now.State.Ended() { // it came to its end between the two looks
		h.Condition = providers.ConditionRecreate
	}
	return nil
}

// probeProgram stands in where there is no socket: what runs is taken for healthy.
func (c *Client) probeProgram(r record.Record, h *providers.Health) error {
	if r.ProgramEnded() {
		return nil // nothing is left that could be asked
	}
	running, err := r.Program.Alive()
	if err != nil {
		return nil //nolint:nilerr // not knowing is the answer of a probe
	}
	h.Evidence = append(h.Evidence, c.fact("program", word(running), "process list"))
	if running {
		h.Verdict, h.Condition = sandbox.True, providers.ConditionHealthy
	}
	return nil
}

// ask returns nil when the stub has answered.
func (c *Client) ask(ctx context.Context, r record.Record) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errors.New("no answer within "+answerLimit.String()))
	defer cancel()
	conn, err := connect(ctx, c.store.Dir(r.ID))
	if err != nil {
		return err
	}
	defer conn.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	defer hangUpWith(ctx, conn)()
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

// connect hears the end of ctx also where those who asked a hung stub before have
// filled its queue.
func connect(ctx context.Context, dir string) (*os.File, error) {
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for {
		conn, err := wire.TryConnect(dir)
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-pace.C:
		}
	}
}

func (c *Client) fact(what, value, source string) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: source, At: c.now().UTC()}
}

func word(alive bool) string {
	if alive {
		return "alive"
	}
	return "dead"
}
