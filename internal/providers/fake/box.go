package fake

import (
	"time"

	"sbx/internal/sandbox"
)

// box is one sandbox: what was said of it, and the timestamps from which its
// state at any moment follows.
type box struct {
	s        sandbox.Sandbox
	program  program
	execs    int           // commands that run in it now
	linger   bool          // it stays when the program has ended
	finish   time.Time     // when the program was made to end; zero = it ends by itself
	finishAs *sandbox.Exit // as what
	listed   time.Time     // from when on listings show it; zero = at once
	ready    time.Time     // when provisioning is over; zero = it never provisioned
	enforced bool          // ExpiresAt ends it
	endFor   time.Duration
	asked    time.Time // when its end was asked for
	by       string
	deleted  bool
	leftover bool // a sweep will find it
	dead     bool // nothing inside answers
	env      []string
	logs     []sandbox.LogLine // said beside what the program writes
	flood    int               // further lines, made when they are read
	usage    func(now time.Time) sandbox.Usage
}

// finished says when, and how, the program ended, whatever became of the box since;
// zero = it runs, or there is none.
func (b *box) finished(now time.Time) (time.Time, *sandbox.Exit) {
	at, exit := b.finish, b.finishAs
	if d, ends := b.program.length(); ends && !b.ready.IsZero() {
		if by := b.ready.Add(d); !by.After(now) && (at.IsZero() || by.Before(at)) {
			at, exit = by, b.program.exit()
		}
	}
	return at, exit
}

// ended says when, and how, the box came to its end; zero = it lives. A program
// that ended before keeps its own exit.
func (b *box) ended(now time.Time) (time.Time, *sandbox.Exit) {
	if b.s.State.Ended() {
		if at := b.s.EndedAt; !at.IsZero() {
			return at, b.s.Exit
		}
		return b.s.CreatedAt.Add(1), b.s.Exit // an end without a time still is one
	}
	var at time.Time
	var exit *sandbox.Exit
	earliest := func(t time.Time, e *sandbox.Exit) {
		if !t.After(now) && (at.IsZero() || t.Before(at)) {
			at, exit = t, e
		}
	}
	over, own := b.finished(now)
	if !b.linger && !over.IsZero() {
		earliest(over, own)
	}
	if b.enforced && !b.s.ExpiresAt.IsZero() {
		earliest(b.s.ExpiresAt, exitOf(137, sandbox.ClassTimeout, sandbox.CauseTimeout))
	}
	if !b.asked.IsZero() && b.endFor != Forever {
		earliest(b.asked.Add(b.endFor), exitOf(143, sandbox.ClassKilledByUs, sandbox.CauseStopped))
	}
	if b.linger && !over.IsZero() && !over.After(at) {
		exit = own
	}
	return at, exit
}

// stopped says that the end at that moment is the one that was asked for.
func (b *box) stopped(at time.Time) bool {
	return !b.asked.IsZero() && b.endFor != Forever && at.Equal(b.asked.Add(b.endFor))
}

func exitOf(code int, class sandbox.Class, cause sandbox.Cause) *sandbox.Exit {
	return &sandbox.Exit{Code: &code, Class: class, Cause: cause, Confidence: sandbox.Certain}
}

// view is the box as a provider describes it at a moment.
func (b *box) view(now time.Time) sandbox.Sandbox {
	s := b.s.Clone()
	at, exit := b.ended(now)
	switch {
	case !at.IsZero():
		s.State, s.EndedAt, s.Exit = endState(b, at, exit), at, exit
	case !b.asked.IsZero():
		s.State = sandbox.StateTerminating
	case now.Before(b.ready):
		s.State = sandbox.StateProvisioning
	}
	if !b.ready.IsZero() && !b.ready.After(now) {
		s.StartedAt = b.ready
	}
	if s.Exit == nil && b.linger {
		_, s.Exit = b.finished(now)
	}
	if s.RawState == "" {
		s.RawState = string(s.State)
	}
	return s
}

func endState(b *box, at time.Time, exit *sandbox.Exit) sandbox.State {
	switch {
	case b.s.State.Ended():
		return b.s.State
	case b.stopped(at):
		return sandbox.StateTerminated
	case exit == nil, exit.Class == sandbox.ClassOK, exit.Class == sandbox.ClassKilledByUs:
		return sandbox.StateTerminated
	}
	return sandbox.StateFailed
}

// next is the next moment at which the box changes by itself; zero = none.
func (b *box) next(now time.Time) time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	sooner(b.ready)
	if !b.ready.IsZero() {
		for _, d := range b.program.moments() {
			sooner(b.ready.Add(d))
		}
	}
	if b.enforced {
		sooner(b.s.ExpiresAt)
	}
	if !b.asked.IsZero() && b.endFor != Forever {
		sooner(b.asked.Add(b.endFor))
	}
	return next
}
