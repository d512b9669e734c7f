//go:build unix

package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/runlog"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// supervisor is one run of it.
type supervisor struct {
	order wire.Order
	store record.Store
	rec   record.Record
	lock  *os.File
	log   *os.File
	self  identity.Process

	group    *cgroup.Group // nil without a cgroup
	soft     bool          // the watchdog holds the memory limit
	output   *runlog.Writer
	copiers  []*copier
	copied   chan struct{} // closed when all output has been copied
	stub     *stubProcess
	now      func() time.Time
	watchHit int64 // resident bytes when the watchdog fired; 0 = it did not
	timedOut bool
	stop     *record.Stop
	stubLost bool // it went while it should have stayed behind its program
	last     lastSample
	counted  *cgroup.Stats // by the kernel; nil = not yet, or no counter
}

type lastSample struct {
	bytes int64
	at    time.Time
}

// Run is the supervisor's life: it reads its order from standard input, starts
// the program inside its limits, answers on SupervisorReadyFD, and returns the
// exit status of the process when the sandbox has ended and its record says so.
func Run() int {
	// The stub's parent-death signal is tied to the thread that forked it.
	runtime.LockOSThread()
	debug.SetGCPercent(20)

	ready := wire.File(wire.SupervisorReadyFD, "ready")
	lock := wire.File(wire.SupervisorLockFD, "lock")
	s := &supervisor{lock: lock, log: os.NewFile(2, "log"), now: time.Now}
	if err := wire.NewReader(os.NewFile(0, "order")).Next(&s.order); err != nil {
		return answer(ready, wire.Ready{Fail: wire.AsFail(fmt.Errorf("reading the order: %w", err))})
	}
	s.store = record.Store{Root: s.order.Root}
	s.rec = s.order.Record
	signals := watchSignals()
	if err := s.start(); err != nil {
		return answer(ready, wire.Ready{Fail: s.abort(err)})
	}
	if answer(ready, wire.Ready{Record: &s.rec}) != 0 { // its client is dead, and nobody knows of it
		s.stop = &record.Stop{By: "sbx: its client died before it heard of the start", At: s.now().UTC()}
		return s.finish()
	}
	s.order = wire.Order{} // the environment is the stub's alone from here on
	s.watch(signals)
	return s.finish()
}

func answer(ready *os.File, r wire.Ready) int {
	err := errors.Join(wire.Write(ready, r), ready.Close())
	if r.Fail != nil || err != nil {
		return 1
	}
	return 0
}

// start brings the sandbox from nothing to running.
func (s *supervisor) start() error {
	if err := s.sign(); err != nil {
		return err
	}
	if err := s.limit(); err != nil {
		return err
	}
	if err := s.store.Write(s.rec); err != nil { // before anything runs: leftovers must be findable
		return err
	}
	if err := s.launch(); err != nil {
		return err
	}
	at := s.now().UTC()
	s.rec.State, s.rec.StartedAt = sandbox.StateRunning, at
	if ttl := s.rec.Limits.TTLSeconds; ttl > 0 {
		s.rec.ExpiresAt = at.Add(time.Duration(ttl * float64(time.Second)))
	}
	if !s.rec.ExpiresAt.IsZero() {
		_ = s.store.SetDue(s.rec.ID, s.rec.ExpiresAt) // without it, sweeps read the record
	}
	s.rec.Note(at, "started", "limits by "+string(s.rec.Limits.Enforcement)+", isolation "+s.rec.Limits.Isolation)
	return s.store.Write(s.rec)
}

// sign makes this process known as the sandbox's supervisor and the one that
// orphans inside it fall to.
func (s *supervisor) sign() error {
	self, err := identity.Self()
	if err != nil {
		return fmt.Errorf("reading the own identity: %w", err)
	}
	s.self, s.rec.Supervisor = self, self
	if err := adoptOrphans(); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	return record.SignLock(s.lock, self)
}

// limit puts the cgroup up, or says which softer means stand in for it.
func (s *supervisor) limit() error {
	l := &s.rec.Limits
	group, enforcement, reason := makeGroup(s.store.Owner(), s.rec.ID, s.order.InScope, *l)
	s.group, l.Enforcement, l.Reason = group, enforcement, reason
	s.soft = l.MemoryBytes > 0 && !enforcement.Hard()
	if s.soft && s.order.RequireHard {
		return &wire.Fail{Kind: wire.FailSoftLimit, Message: "no hard memory limit can be had here: " + reason}
	}
	if group == nil {
		return nil
	}
	raw, err := json.Marshal(group.State())
	s.rec.Cgroup = raw
	return err
}

// abort undoes a start that failed and leaves a record that says why.
func (s *supervisor) abort(cause error) *wire.Fail {
	fail := wire.AsFail(cause)
	s.clear()
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
		s.complain("letting go of the lock", err)
	}
	return fail
}
