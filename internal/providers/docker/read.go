package docker

import (
	"context"
	"fmt"
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

// Processes lists the commands that run in a container beside its main program, without the scripts of sbx, and what of
// the program of a container of sbx writes elsewhere than into its log.
func (c *Client) Processes(ctx context.Context, id string) ([]providers.Process, error) {
	op := "processes " + id
	began := time.Now()
	w, err := c.inspect(ctx, "processes", id) // its commands are those of this moment
	if err != nil {
		return nil, err
	}
	wirekit.NoteInLook(ctx, id, began, w)
	if notes := httpx.LookNotes(ctx); notes != nil {
		notes.Store(noteRecord, w)
	}
	var found []providers.Process
	for _, exec := range w.ExecIDs { // those that have ended stay in the record for minutes
		if _, over := c.over.Load(exec); over {
			continue
		}
		var e wireExec
		err := c.json(ctx, httpx.Request{Op: op, Path: httpx.Path("exec", exec, "json")}, &e)
		switch {
		case wirekit.Missing(err), err == nil && !e.Running && e.ExitCode != nil: // it has ended
			c.over.Store(exec, true)
		case err != nil:
			return nil, err
		case e.Running && !slices.Contains(e.ProcessConfig.Arguments, guest.ScriptName) && !w.isHealthCheck(e):
			found = append(found, providers.Process{Args: append([]string{e.ProcessConfig.Entrypoint}, e.ProcessConfig.Arguments...)})
		}
	}
	if stateOf(w.State.Status) != sandbox.StateRunning || !madeBySbx(w.Config.Labels) {
		return found, nil
	}
	unseen, runs, err := guest.UnseenProcesses(ctx, c.shellOf(w.ID, nil), guest.MainTag)
	if notes := httpx.LookNotes(ctx); notes != nil && err == nil {
		notes.Store(noteAnswers, true)
		notes.Store(noteRuns, slices.ContainsFunc(runs, func(r guest.Run) bool { return r.Tag == guest.MainTag && !r.Ended }))
	}
	return append(found, unseen...), fault.Placed(err, c.Profile, op)
}

// What the list of the processes has told the other questions of its look, each of which would need a command of its own.
const (
	noteAnswers = "a shell answers"
	noteRuns    = "its program runs"
	noteRecord  = "its record"
)

func heard(ctx context.Context, note string) bool {
	notes := httpx.LookNotes(ctx)
	if notes == nil {
		return false
	}
	is, _ := notes.Load(note)
	return is == true
}

// Usage reads one sample of the container's control group. One-shot answers at once: without it the engine
// takes two samples, a second apart.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	w, err := c.inspectInLook(ctx, "usage", id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	limits := w.HostConfig.limits()
	if !w.State.Running {
		return sandbox.Usage{At: c.Now(), Source: "engine (it is " + w.State.Status + ")", MemoryLimitBytes: limits.MemoryBytes}, nil
	}
	var m wireStats
	if err := c.json(ctx, httpx.Request{Op: "usage " + id, Path: httpx.Path("containers", w.ID, "stats"), Query: url.Values{"stream": {"0"}, "one-shot": {"1"}}}, &m); err != nil {
		return sandbox.Usage{}, err
	}
	if m.ID != "" {
		if err := providers.CheckAnswerID(c.Profile, "usage "+id, w.ID, m.ID); err != nil {
			return sandbox.Usage{}, err
		}
	}
	if m.CPUStats.CPUUsage.TotalUsage == nil && m.MemoryStats.Usage == nil {
		return sandbox.Usage{}, c.Fault(fault.KindUnavailable, "usage "+id, "the engine reports no figures").Inside()
	}
	u := sandbox.Usage{
		At: c.Now(), Source: "engine statistics", MemoryLimitBytes: limits.MemoryBytes, MemoryBytes: m.MemoryStats.workingSet(),
		MemoryPeakBytes: atLeastOne(m.MemoryStats.MaxUsage),
	}
	if at := providers.ValidTime(m.Read.UTC()); !at.IsZero() {
		u.At = at
	}
	if n := m.CPUStats.CPUUsage.TotalUsage; n != nil && *n >= 0 {
		u.CPUSeconds = new(float64(*n) / 1e9)
	}
	u.Tasks, u.Operations = atLeastOne(m.PidsStats.Current), m.operations()
	return u, c.dropHostFigures(ctx, "usage "+id, &u)
}

// dropHostFigures leaves out the figures that are of the whole machine, since the container has no control group of them.
func (c *Client) dropHostFigures(ctx context.Context, op string, u *sandbox.Usage) error {
	lacksMemory, err := c.lacksGroup(ctx, op, groupMemory)
	if err != nil {
		return err
	}
	lacksPIDs, err := c.lacksGroup(ctx, op, groupPIDs)
	if lacksMemory {
		u.MemoryBytes, u.MemoryPeakBytes = nil, nil
	}
	if lacksPIDs {
		u.Tasks = nil
	}
	return err
}

// workingSet is the memory without what the kernel would drop first (Docker, `docker stats`).
func (m wireMemory) workingSet() *int64 {
	used := atLeastOne(providers.ValidBytes(m.Usage))
	if used == nil {
		return nil
	}
	for _, name := range []string{"inactive_file", "total_inactive_file"} { // version 2 and 1; version 1 has both, and the total counts
		if cache, ok := m.Stats[name]; ok && cache > 0 && cache < *m.Usage {
			used = new(*m.Usage - cache)
		}
	}
	return used
}

func atLeastOne(n *int64) *int64 {
	if n == nil || *n <= 0 {
		return nil
	}
	return n
}

// operations are the packets and the disk operations since the start.
func (m wireStats) operations() *int64 {
	var sum int64
	for _, n := range m.Networks {
		sum += n.RxPackets + n.TxPackets
	}
	for _, b := range m.BlkioStats.Serviced {
		if strings.EqualFold(b.Op, "read") || strings.EqualFold(b.Op, "write") {
			sum += b.Value
		}
	}
	return &sum
}

// Probe starts a shell in a container that runs.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	w, err := c.inspectInLook(ctx, "probe", id)
	if err != nil {
		return providers.Health{}, err
	}
	h := wirekit.StateHealth(stateOf(w.State.Status), c.Evidence("state", w.State.Status, "engine"))
	if w.RestartCount > 0 {
		h.Evidence = append(h.Evidence, c.Evidence("restarts", strconv.Itoa(w.RestartCount)+" by policy "+w.HostConfig.RestartPolicy.Name, "engine"))
	}
	if policy := w.HostConfig.RestartPolicy.Name; policy != "" && policy != "no" {
		h.Evidence = append(h.Evidence, c.Evidence("restart policy", policy, "engine"))
	}
	if said := w.failedStart(); said != "" {
		h.Verdict, h.Condition, h.Evidence = sandbox.False, providers.ConditionRecreate, append(h.Evidence, c.Evidence("error", said, "engine"))
	}
	if stateOf(w.State.Status) != sandbox.StateRunning {
		return h, nil
	}
	code := 0
	if !heard(ctx, noteAnswers) {
		_, code, err = c.shellOf(w.ID, nil)(ctx, ":")
	}
	h = c.WithShell(h, code, err)
	if check := w.State.Health; check != nil && check.Status == unhealthy { // a shell that answers does not outweigh what its owner checks
		h.Verdict, h.Condition, h.Evidence = sandbox.Unknown, providers.ConditionUnknown, append(h.Evidence, c.Evidence("health check", unhealthy, "engine"))
	}
	return h, nil
}

// Exit is the exit of the program that create started, from its file inside; of any other container that of
// its main program.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	op := "exit " + id
	if exit, known := c.watches.Exit(id); known {
		return exit, nil
	}
	w, young, err := c.inspectStarted(ctx, "exit", id)
	switch {
	case err != nil:
		return nil, err
	case !madeBySbx(w.Config.Labels) && w.State.Running:
		return nil, nil //nolint:nilnil // it runs
	case !madeBySbx(w.Config.Labels):
		if exit := c.exitOf(w); exit != nil {
			return exit, nil
		}
		return nil, c.Fault(fault.KindNotFound, op, "its program was never started")
	case w.State.Status != "running":
		return nil, c.Fault(fault.KindUnavailable, op, "it is %s, and its exit is stored in it", w.State.Status).Inside()
	}
	if heard(ctx, noteRuns) {
		return nil, nil //nolint:nilnil // it runs
	}
	if exit, known := c.watches.ExitSoon(ctx, id, young); known {
		return exit, nil
	}
	exit, err := guest.Exit(ctx, c.shellOf(w.ID, nil), guest.MainTag)
	return exit, fault.Placed(err, c.Profile, op)
}

// inspectStarted is inspectOwn, but for a container that Create has made and started a program in a moment ago (young). A
// look reads its own.
func (c *Client) inspectStarted(ctx context.Context, op, id string) (w wireContainer, young bool, err error) {
	if w, known, _ := c.started.Last(ctx, id); known && httpx.LookNotes(ctx) == nil {
		return w, true, nil
	}
	w, err = c.inspectOwn(ctx, op, id)
	return w, false, err
}

// Events reads what the engine remembers of a container: its memory holds some hundred events of all.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	op := "events " + id
	w, err := c.inspect(ctx, "events", id)
	if err != nil {
		return nil, err
	}
	all := []sandbox.Event{{At: w.Created.UTC(), Event: "created"}}
	remembered, err := c.remembered(ctx, op, w.ID, w.Created, 0)
	for _, e := range remembered {
		if e.Event != "create" {
			all = append(all, e)
		}
	}
	if started := providers.ValidTime(w.State.StartedAt.UTC()); len(remembered) == 0 && !started.IsZero() {
		all = append(all, sandbox.Event{At: started, Event: "start"})
	}
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return all, err
}

// remembered are the events of a container since a time, without those of commands, until more behind now. The API
// waits for that time, and leaves out the second of a time without a fraction.
func (c *Client) remembered(ctx context.Context, op, id string, since time.Time, more time.Duration) ([]sandbox.Event, error) {
	query := filters("container", id)
	query.Set("since", strconv.FormatInt(since.Unix(), 10))
	query.Set("until", secondsWithFraction(c.ServerNow().Add(more)))
	r, err := c.request(ctx, httpx.Request{Op: op, Path: "/events", Query: query})
	if err != nil {
		return nil, err
	}
	s, err := c.API.Stream(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Body.Close() }()
	var found []sandbox.Event
	for m, err := range jsonLines(s.Body) {
		if err != nil {
			return found, fault.Placed(err, c.Profile, op)
		}
		if m.Actor.ID != id || strings.HasPrefix(m.Action, "exec_") || m.TimeNano <= 0 {
			continue
		}
		found = append(found, sandbox.Event{At: time.Unix(0, m.TimeNano).UTC(), Event: m.Action, Detail: eventDetail(m.Actor.Attributes)})
	}
	return found, nil
}

// eventDetail is what the engine adds to an event, without what the labels say.
func eventDetail(attributes map[string]string) string {
	var words []string
	for _, name := range []string{"exitCode", "signal", "execDuration"} {
		if value := attributes[name]; value != "" {
			words = append(words, name+"="+value)
		}
	}
	return strings.Join(words, " ")
}

// Quota is what the engine's machine has, of which containers take shares.
func (c *Client) Quota(ctx context.Context) ([]providers.Quota, error) {
	var w wireInfo
	if err := c.json(ctx, httpx.Request{Op: "quota", Path: "/info"}, &w); err != nil {
		return nil, err
	}
	all := []providers.Quota{{Name: "cpu", Unit: "cores", Limit: w.NCPU}, {Name: "running containers", Unit: "containers", Used: w.ContainersRunning}}
	if w.MemTotal != nil {
		all = append(all, providers.Quota{Name: "memory", Unit: "MiB", Limit: new(*w.MemTotal / sandbox.MiB)})
	}
	return all, nil
}

// Check checks the profile: address, rights, versions, limits that the engine does not enforce, and clocks.
func (c *Client) Check(ctx context.Context) []providers.Check {
	var v wireVersion
	if err := c.json(ctx, httpx.Request{Op: "version", Path: "/version"}, &v); err != nil {
		return []providers.Check{wirekit.FailedCheck("engine", err)}
	}
	name := "Docker"
	if c.isPodman() {
		name = "Podman"
	}
	known, _ := c.knownEngine(ctx, "version")
	found := []providers.Check{{
		Check: "engine", Verdict: sandbox.True,
		Message: fmt.Sprintf("%s %s at %s, API %s of its %s to %s", name, v.Version, c.at.Host, known.api, v.MinAPIVersion, v.APIVersion),
	}}
	var w wireInfo
	if err := c.json(ctx, httpx.Request{Op: "info", Path: "/info"}, &w); err != nil {
		return append(found, wirekit.FailedCheck("info", err))
	}
	for _, text := range w.Warnings {
		if strings.HasPrefix(text, "WARNING: No ") && strings.Contains(text, "limit") {
			found = append(
				found,
				providers.Check{Check: "limits", Verdict: sandbox.False, Message: text, Hint: "limits of that kind have no effect: `--require-hard-limit` refuses them"},
			)
		}
	}
	if c.isPodman() {
		found = append(
			found,
			providers.Check{
				Check: "out of memory", Verdict: sandbox.Unknown, Message: "Podman may not report that memory ran out",
				Hint: "an exit 137 then has an unknown cause", Info: true,
			},
		)
	}
	return append(append(found, providers.CheckClock(c.API)), c.checkLeft(ctx)...)
}

// checkLeft counts the containers of sbx that have ended and keep their disk, as after their time limit; none = no row.
func (c *Client) checkLeft(ctx context.Context) []providers.Check {
	rows, err := c.rows(ctx, "left", filters("label", sandbox.LabelRun))
	left := 0
	for _, w := range rows {
		if stateOf(w.State) == sandbox.StateStopped {
			left++
		}
	}
	if err != nil || left == 0 {
		return nil // the checks before it have said what does not answer
	}
	return []providers.Check{{
		Check: "stopped containers", Verdict: sandbox.False, Message: fmt.Sprintf("%d of sbx have ended, by --ttl or a stop, and keep their disks", left),
		Hint: "`sbx cleanup --provider " + c.Profile + " --state stopped --delete` shows them; with --yes it removes them", Info: true,
	}}
}
