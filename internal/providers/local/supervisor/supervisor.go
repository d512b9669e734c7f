//go:build unix

package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"sbx/internal/process"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/runlog"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// supervisor is the state of one run.
type supervisor struct {
	order wire.Order
	store record.Store
	rec   record.Record
	lock  *os.File
	log   *os.File
	self  identity.Process

	group     *cgroup.Group // nil without a cgroup
	softLimit bool          // the memory limit is enforced by the watchdog
	output    *runlog.Writer
	copiers   []*copier
	copyDone  chan struct{} // closed when all output is copied
	stub      *stubProcess
	now       func() time.Time
	timeScale process.TimeScale
	watchHit  int64 // resident bytes when the watchdog fired; 0 = it did not
	timedOut  bool
	endLock   *os.File // held from the end of its time on: nobody moves that any more
	stop      *record.Stop
	stubLost  bool // the stub ended although its sandbox lingers
	last      lastSample
	counters  *cgroup.Stats // nil = not read yet, or no counters
	oom       oomGrowth
	reported  time.Time // when the stub reported last: the program's end
}

type lastSample struct {
	bytes int64
	at    time.Time
}

// Run is the main function of the supervisor: it reads its order from standard input, starts
// the program inside its limits, answers on SupervisorReadyFD, and returns the exit status of
// the process when the sandbox has ended and its record says so.
func Run() int {
	// The stub's parent-death signal is tied to the thread that forked it.
	runtime.LockOSThread()
	debug.SetGCPercent(20)

	ready := wire.File(wire.SupervisorReadyFD, "ready")
	lock := wire.File(wire.SupervisorLockFD, "lock")
	s := &supervisor{lock: lock, log: os.NewFile(2, "log"), now: time.Now}
	order := os.NewFile(0, "order")
	defer order.Close()
	if err := wire.NewReader(order).Next(&s.order); err != nil {
		return sendAnswer(ready, wire.Ready{Fail: wire.AsFail(fmt.Errorf("reading the order: %w", err))})
	}
	s.store = record.Store{Root: s.order.Root}
	s.rec, s.timeScale = s.order.Record, process.TimeScale(s.order.TimeScale)
	signals := watchSignals()
	if err := s.startSandbox(); err != nil {
		return sendAnswer(ready, wire.Ready{Fail: s.abortStart(err)})
	}
	if sendAnswer(ready, wire.Ready{Record: &s.rec}) != 0 { // the client is dead and does not know the sandbox
		s.stop = &record.Stop{By: "sbx: its client died before it received the start", At: s.now().UTC()}
		return s.finishSandbox()
	}
	s.order = wire.Order{} // releases the environment
	s.watchSandbox(signals)
	return s.finishSandbox()
}

func sendAnswer(ready *os.File, r wire.Ready) int {
	err := errors.Join(wire.Write(ready, r), ready.Close())
	if r.Fail != nil || err != nil {
		return 1
	}
	return 0
}

func (s *supervisor) startSandbox() error {
	if err := s.signLock(); err != nil {
		return err
	}
	if err := s.setUpLimits(); err != nil {
		return err
	}
	if err := s.store.Write(s.rec); err != nil { // before anything runs, so that leftovers can be found
		return err
	}
	if err := s.launchStub(); err != nil {
		return err
	}
	at := s.now().UTC()
	s.rec.State, s.rec.StartedAt = sandbox.StateRunning, at
	if ttl := s.rec.Limits.TTLSeconds; ttl > 0 {
		s.rec.ExpiresAt, s.rec.EndMoves = at.Add(time.Duration(ttl*float64(time.Second))), true
	}
	if !s.rec.ExpiresAt.IsZero() {
		_ = s.store.SetDue(s.rec.ID, s.rec.ExpiresAt) // without it, sweeps read the record
	}
	s.rec.Note(at, "started", "limits by "+string(s.rec.Limits.Enforcement)+", isolation "+s.rec.Limits.Isolation)
	return s.store.Write(s.rec)
}

// signLock identifies this process as the sandbox's supervisor and makes it the parent of its
// orphans.
func (s *supervisor) signLock() error {
	self, err := identity.Self()
	if err != nil {
		return fmt.Errorf("reading its own identity: %w", err)
	}
	s.self, s.rec.Supervisor = self, self
	if err := adoptOrphans(); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	return record.SignLock(s.lock, self)
}

// setUpLimits makes the cgroup, or records the softer enforcement.
func (s *supervisor) setUpLimits() error {
	l := &s.rec.Limits
	group, enforcement, reason := makeGroup(s.store.Owner(), s.rec.ID, s.order.InScope, *l)
	s.group, l.Enforcement, l.Reason = group, enforcement, reason
	s.softLimit = l.MemoryBytes > 0 && !enforcement.Hard()
	if s.softLimit && s.order.RequireHard {
		return &wire.Fail{Kind: wire.FailSoftLimit, Message: "no hard memory limit is possible here: " + reason}
	}
	if group == nil {
		return nil
	}
	raw, err := json.Marshal(group.State())
	s.rec.Cgroup = raw
	return err
}

// abortStart undoes a failed start and writes a record with the reason.
func (s *supervisor) abortStart(cause error) *wire.Fail {
	fail := wire.AsFail(cause)
	s.clearTree()
	at := s.now().UTC()
	s.rec.State, s.rec.EndedAt = sandbox.StateFailed, at
	s.rec.Exit = &record.Exit{StartError: fail.Message, At: &at}
	code := 125
	switch fail.Kind {
	case wire.FailNotFound:
		code = 127
	case wire.FailNotExecutable:
		code = 126
	case wire.FailWorkdir, wire.FailSoftLimit, wire.FailIsolation, wire.FailDisk, wire.FailLauncher:
	}
	s.rec.Exit.Code = &code
	s.rec.Note(at, "failed", "not started: "+fail.Message)
	if err := s.store.Write(s.rec); err != nil {
		fail.Message += " (and the record could not be written: " + err.Error() + ")"
		return fail
	}
	if err := s.store.Finish(s.rec.ID); err != nil {
		s.logError("releasing the lock", err)
	}
	return fail
}

// makeGroup makes the strongest group that this machine allows. Without one it returns the
// softer enforcement and the reason.
func makeGroup(owner, id string, inScope bool, l record.Limits) (*cgroup.Group, sandbox.Enforcement, string) {
	group, err := tryGroup(owner, id, inScope, l)
	if err == nil {
		return group, group.Enforcement(), missingLimits(group)
	}
	if l.MemoryBytes > 0 {
		return nil, sandbox.EnforcementWatch, err.Error()
	}
	return nil, sandbox.EnforcementNone, err.Error()
}

func tryGroup(owner, id string, inScope bool, l record.Limits) (*cgroup.Group, error) {
	host, err := cgroup.Detect(cgroup.Roots{Proc: "/proc", Owner: owner}, 0)
	if err != nil {
		return nil, err
	}
	if inScope {
		group, err := cgroup.OwnScope(host, id)
		if !errors.Is(err, cgroup.ErrNoScope) {
			return group, err
		}
	}
	return cgroup.Create(host, id, cgroup.Limits{MemoryBytes: l.MemoryBytes, PIDs: l.PIDs, CPU: l.CPU})
}

// missingLimits names the other limits that are not enforced.
func missingLimits(g *cgroup.Group) string {
	var words []string
	for _, m := range g.Missing() {
		words = append(words, m.Limit+" not limited: "+m.Reason)
	}
	return strings.Join(words, "; ")
}
