package local

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/supervisor"
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
	limit := c.deps.TimeScale.Limit(answerLimit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("no answer within "+limit.String()))
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

// Reexec runs the process as a supervisor or stub when its first argument says so, and
// returns the exit status. main calls it before anything else, so that those processes stay
// small.
func Reexec(args []string) (status int, done bool) {
	if len(args) != 2 {
		return 0, false
	}
	switch args[1] {
	case wire.SupervisorArg:
		return supervisor.Run(), true
	case wire.StubArg:
		return supervisor.RunStub(), true
	}
	return 0, false
}

// Birth identifies a process of this machine among all that ever have its PID: the owner of
// a task stores it beside the PID. "" where it is unknown: no such process, or neither Linux
// nor macOS.
func Birth(pid int) string {
	birth, err := identity.Birth(pid)
	if err != nil {
		return ""
	}
	return birth
}

// Lives reports whether the process with this Birth still runs. False is proof: it has
// exited (also as a zombie), its PID belongs to another process, or the machine was booted
// again. Unknown: the birth is empty or invalid, it was taken in another PID namespace (a
// neighbouring container), or this system cannot determine it.
//
// PID and birth must be of this machine: another machine's boot differs, which reads as
// False.
func Lives(pid int, birth string) sandbox.Verdict {
	lives, err := identity.Lives(pid, birth)
	if err != nil {
		return sandbox.Unknown
	}
	return sandbox.VerdictOf(lives)
}

// clockTicks is the kernel's USER_HZ, in which /proc counts CPU time.
const clockTicks = 100

// Usage reads one sample: from the cgroup where there is one, else as the sum over the
// process tree. Operations are read and write calls of the processes alive now. Of an ended
// sandbox it returns what the record has.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	r, err := c.loadRecord(ctx, "usage", id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	if r.State.Ended() {
		return lastUsage(r), nil
	}
	u := sandbox.Usage{At: c.now().UTC(), MemoryLimitBytes: ifPositive(r.Limits.MemoryBytes)}
	sources := make([]string, 0, 2)
	tree, err := c.listTree(r)
	if err != nil {
		return u, fault.New(fault.KindUnavailable, "%w", err).At(c.name, "usage "+id)
	}
	if group, err := cgroup.ReopenRecorded(r.Cgroup); err == nil && len(group.Paths()) > 0 {
		defer group.Close() // read only
		addGroupUsage(&u, group.Stats())
		sources = append(sources, string(group.Enforcement()))
	} else {
		addTreeUsage(&u, tree)
	}
	u.Operations, u.Busiest = sumOperations(tree), busiestThread(tree)
	if r.Program.PID > 0 && !r.ProgramEnded() { // its PID may belong to another process by then
		u.Waiting = identity.Host().Waiting(r.Program.PID)
	}
	u.Source = strings.Join(append(sources, "/proc"), " + ")
	return u, nil
}

func addGroupUsage(u *sandbox.Usage, s cgroup.Stats) {
	u.CPUSeconds, u.MemoryBytes, u.MemoryPeakBytes = s.CPUSeconds, s.MemoryBytes, s.PeakBytes
	u.PIDs, u.OOMKills, u.Tasks, u.TasksRefused = s.PIDs, s.OOMKills, s.Tasks, s.Refused
	if s.LimitBytes != nil {
		u.MemoryLimitBytes = s.LimitBytes
	}
}

// listTree lists the sandbox's living processes without its stub. It reads only this tree:
// with many sandboxes, reading the whole machine each time would be too slow.
func (c *Client) listTree(r record.Record) ([]identity.Stat, error) {
	if r.Stub.PID <= 0 {
		return nil, nil
	}
	all, err := identity.Host().Offspring(r.Stub.PID)
	return slices.DeleteFunc(all, identity.Stat.Dead), err
}

func addTreeUsage(u *sandbox.Usage, tree []identity.Stat) {
	var resident, ticks int64
	for _, p := range tree {
		resident += p.RSSBytes
		ticks += int64(p.UTimeSTimeTicks)
	}
	u.MemoryBytes, u.CPUSeconds, u.PIDs = &resident, new(float64(ticks)/clockTicks), new(int64(len(tree)))
}

// sumOperations is nil when a process does not show its operations.
func sumOperations(tree []identity.Stat) *int64 {
	var sum int64
	for _, p := range tree {
		n, known := identity.Host().IOOperations(p.PID)
		if !known {
			return nil
		}
		sum += n
	}
	return &sum
}

// busiestThread is nil when a process does not show its threads.
func busiestThread(tree []identity.Stat) *sandbox.ThreadUsage {
	var busiest *identity.Thread
	for _, p := range tree {
		thread, known := identity.Host().BusiestThread(p.PID)
		if !known {
			return nil
		}
		if busiest == nil || thread.Wanted > busiest.Wanted {
			busiest = &thread
		}
	}
	if busiest == nil {
		return nil
	}
	return &sandbox.ThreadUsage{
		ID: strconv.Itoa(busiest.TID), WantedSeconds: busiest.Wanted.Seconds(), Runnable: busiest.Runnable, Sleeps: busiest.Sleeps,
	}
}

func lastUsage(r record.Record) sandbox.Usage {
	u := sandbox.Usage{At: r.EndedAt, Source: "record", MemoryLimitBytes: ifPositive(r.Limits.MemoryBytes)}
	if e := r.Exit; e != nil {
		u.MemoryPeakBytes, u.CPUSeconds, u.OOMKills, u.TasksRefused = e.PeakBytes, e.CPUSeconds, e.OOMKills, e.TasksRefused
	}
	if e := r.End; e != nil {
		u.MemoryPeakBytes, u.CPUSeconds, u.OOMKills = e.PeakBytes, e.CPUSeconds, e.OOMKills
	}
	return u
}
