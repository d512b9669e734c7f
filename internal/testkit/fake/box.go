package fake

import (
	"context"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// box is one sandbox: its fields, and the timestamps that determine its state at any moment.
type box struct {
	s             sandbox.Sandbox
	program       program
	execs         int           // commands that run in it now
	keepAfterExit bool          // it stays after the end of the program
	finish        time.Time     // when Finish ended the program; zero = it ends by itself
	finishAs      *sandbox.Exit // with which exit
	listed        time.Time     // since when listings show it; zero = always
	ready         time.Time     // the end of provisioning; zero = it was not provisioned
	enforced      bool          // ExpiresAt ends it
	endFor        time.Duration
	asked         time.Time // when its end was asked for
	by            string
	deleted       bool
	leftover      bool // a sweep will find it
	dead          bool // it does not answer
	env           []string
	logs          []sandbox.LogLine // in addition to the program's output
	flood         int               // further lines, made when they are read
	usage         func(now time.Time) sandbox.Usage
}

// programEnd is when and how the program ended, independent of the box; zero = it runs, or there is
// no program.
func (b *box) programEnd(now time.Time) (time.Time, *sandbox.Exit) {
	at, exit := b.finish, b.finishAs
	if d, ends := b.program.runTime(); ends && !b.ready.IsZero() {
		if by := b.ready.Add(d); !by.After(now) && (at.IsZero() || by.Before(at)) {
			at, exit = by, b.program.exitOfProgram()
		}
	}
	return at, exit
}

// endState is when and how the box ended; zero = it has not. A program that ended before keeps its
// own exit.
func (b *box) endState(now time.Time) (time.Time, *sandbox.Exit) {
	if b.s.State.Ended() {
		if at := b.s.EndedAt; !at.IsZero() {
			return at, b.s.Exit
		}
		return b.s.CreatedAt.Add(1), b.s.Exit // the end has no time
	}
	var at time.Time
	var exit *sandbox.Exit
	earliest := func(t time.Time, e *sandbox.Exit) {
		if !t.After(now) && (at.IsZero() || t.Before(at)) {
			at, exit = t, e
		}
	}
	over, own := b.programEnd(now)
	if !b.keepAfterExit && !over.IsZero() {
		earliest(over, own)
	}
	if b.enforced && !b.s.ExpiresAt.IsZero() {
		earliest(b.s.ExpiresAt, exitOf(137, sandbox.ClassTimeout, sandbox.CauseTimeout))
	}
	if !b.asked.IsZero() && b.endFor != Forever {
		earliest(b.asked.Add(b.endFor), exitOf(143, sandbox.ClassKilledByUs, sandbox.CauseStopped))
	}
	if b.keepAfterExit && !over.IsZero() && !over.After(at) {
		exit = own
	}
	return at, exit
}

func (b *box) endedByRequest(at time.Time) bool {
	return !b.asked.IsZero() && b.endFor != Forever && at.Equal(b.asked.Add(b.endFor))
}

func exitOf(code int, class sandbox.Class, cause sandbox.Cause) *sandbox.Exit {
	return &sandbox.Exit{Code: &code, Class: class, Cause: cause, Confidence: sandbox.Certain}
}

func (b *box) toSandbox(now time.Time) sandbox.Sandbox {
	s := b.s.Clone()
	at, exit := b.endState(now)
	switch {
	case !at.IsZero():
		s.State, s.EndedAt, s.Exit = stateAfterEnd(b, at, exit), at, exit
	case !b.asked.IsZero():
		s.State, s.EndingAt = sandbox.StateTerminating, b.asked
	case now.Before(b.ready):
		s.State = sandbox.StateProvisioning
	}
	if !b.ready.IsZero() && !b.ready.After(now) {
		s.StartedAt = b.ready
	}
	if s.Exit == nil && b.keepAfterExit {
		_, s.Exit = b.programEnd(now)
	}
	if s.RawState == "" {
		s.RawState = string(s.State)
	}
	return s
}

func stateAfterEnd(b *box, at time.Time, exit *sandbox.Exit) sandbox.State {
	switch {
	case b.s.State.Ended():
		return b.s.State
	case b.endedByRequest(at):
		return sandbox.StateTerminated
	case exit == nil, exit.Class == sandbox.ClassOK, exit.Class == sandbox.ClassKilledByUs:
		return sandbox.StateTerminated
	}
	return sandbox.StateFailed
}

// nextChange is the next moment at which the box changes by itself; zero = none.
func (b *box) nextChange(now time.Time) time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	sooner(b.ready)
	if !b.ready.IsZero() {
		for _, d := range b.program.stepTimes() {
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

// findBox finds the box of an id, or returns the error of a read. The lock is held.
func (p *Provider) findBox(op Op, id string) (*box, error) {
	b, ok := p.boxes[id]
	if !ok {
		kind := fault.KindNotFound
		if p.hasLie(LieGoneForUnknown) {
			kind = fault.KindGone
		}
		return nil, p.newRefusal(kind, op, id, "no such sandbox")
	}
	switch p.whatRemains(b, p.o.Now()) {
	case AfterGone:
		return nil, p.newRefusal(fault.KindGone, op, id, "it has ended")
	case AfterMissing:
		return nil, p.newRefusal(fault.KindNotFound, op, id, "no such sandbox")
	case AfterKept:
	}
	return b, nil
}

// readBox runs read with the box of an id, under the lock, as every read of a sandbox begins.
func readBox[R any](ctx context.Context, p *Provider, op Op, id string, read func(b *box, now time.Time) (R, error)) (R, error) {
	var none R
	if _, err := p.beginRequest(ctx, op, id, 0); err != nil {
		return none, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.findBox(op, p.answeringID(op, id))
	if err != nil {
		return none, err
	}
	now := p.o.Now()
	p.applyReadLies(b, now)
	return read(b, now)
}

// editBox edits the box of an id, under the lock; false without one.
func (p *Provider) editBox(id string, edit func(b *box)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.boxes[id]
	if ok {
		edit(b)
		p.notifyChange()
	}
	return ok
}

// Orphan drops the record of a sandbox that still runs, as an API whose node has refused to end it: no
// read and no proof shows it.
func (p *Provider) Orphan(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.boxes, id)
	p.order = slices.DeleteFunc(p.order, func(other string) bool { return other == id })
	p.notifyChange()
}

// answeringID is the id of the box that answers a read of id. The lock is held.
func (p *Provider) answeringID(op Op, id string) string {
	if op == OpGet && p.hasLie(LieOtherID) {
		for _, other := range p.order {
			if other != id {
				return other
			}
		}
	}
	return id
}

// whatRemains is what reads find of a box now. The lock is held.
func (p *Provider) whatRemains(b *box, now time.Time) After {
	at, _ := b.endState(now)
	switch {
	case at.IsZero():
		return AfterKept
	case b.deleted && p.o.After == AfterKept:
		return AfterMissing
	case b.s.State.Ended() && !b.deleted:
		return AfterKept // it was added as ended: the record is kept
	}
	return p.o.After
}

// listedView is toSandbox with the lies about it. The lock is held.
func (p *Provider) listedView(b *box, now time.Time) sandbox.Sandbox {
	s := b.toSandbox(now)
	if p.hasLie(LieShowEnv) && len(b.env) > 0 {
		s.Labels = map[string]string{"env": b.env[0]}
	}
	return s
}
