package alert

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// kind is a kind of documents with states.
type kind string

const (
	kindRule kind = "alert"     // of the rules, by rule and provider
	kindRun  kind = "alert_run" // of Follow
)

const (
	// claimFor is how long a process may take to send a notification before another one sends
	// it. It is longer than the notification services may take.
	claimFor = time.Minute
	// swapTries bounds how often a state is read again that another process has changed.
	swapTries = 5
)

// storedAlert is a condition whose state is kept in the store.
type storedAlert struct {
	kind           kind
	key            string
	verdict        sandbox.Verdict
	evidence       []string
	holdFor, every time.Duration

	known store.Doc // the state as it was read before; Version 0 = it is to be read
	state State     // as it is stored
	at    time.Time // of state, by the store's clock
}

// advance stores the next state. Claimed = this process has to send its notification.
func (a *storedAlert) advance(ctx context.Context, docs store.DocStore, tries int) (claimed bool, err error) {
	return a.swapState(ctx, docs, tries, func(s State, now time.Time) State {
		s = Step(s, a.verdict, now, a.holdFor, a.every)
		if a.verdict == sandbox.True || a.verdict == sandbox.False {
			s.Evidence = a.evidence
		}
		if s.Send != EventNone && !now.Before(s.SendUntil) {
			s.SendUntil = now.Add(claimFor)
		}
		return s
	})
}

// SendEvent sends an event to the services that are left; none = to all. Beside an error it
// returns those that have not got it; none = no one has.
type SendEvent func(ctx context.Context, event Event, left []string) (stillLeft []string, err error)

// deliver sends the notification that advance has claimed, and stores that it was sent. It renews
// the claim first: the answer of the verb is shown in between, which may take long, and then
// another process may have taken over. After an error SendUntil passes, and the next evaluation
// sends it to the services that have not got it.
func (a *storedAlert) deliver(ctx context.Context, docs store.DocStore, send SendEvent) error {
	event := a.state.Send
	mine, err := a.renewClaim(ctx, docs)
	if err != nil || !mine {
		return err
	}
	stillLeft, errSend := send(ctx, event, a.state.Left)
	return errors.Join(errSend, a.storeSent(ctx, docs, event, stillLeft, errSend))
}

// renewClaim prolongs the claim; false = another process has it.
func (a *storedAlert) renewClaim(ctx context.Context, docs store.DocStore) (mine bool, err error) {
	claim := a.state.SendUntil
	err = a.swapUninterrupted(ctx, docs, func(s State, now time.Time) State {
		if mine = s.SendUntil.Equal(claim); mine {
			s.SendUntil = now.Add(claimFor)
		}
		return s
	})
	return mine, err
}

// storeSent stores what came of sending an event.
func (a *storedAlert) storeSent(ctx context.Context, docs store.DocStore, event Event, stillLeft []string, errSend error) error {
	claim := a.state.SendUntil
	return a.swapUninterrupted(ctx, docs, func(s State, _ time.Time) State {
		stillDue := s.Send == event // an evaluation may have made another event due meanwhile
		switch {
		case !s.SendUntil.Equal(claim): // sending took too long, and another process has taken over
		case errSend == nil:
			s.SendUntil = time.Time{}
			if stillDue {
				s.Send, s.Left = EventNone, nil
			}
		case stillDue && len(stillLeft) > 0:
			s.Left = stillLeft
		}
		return s
	})
}

// swapUninterrupted is swapState before and after the sending, which an interrupt of the verb does not end.
func (a *storedAlert) swapUninterrupted(ctx context.Context, docs store.DocStore, next func(State, time.Time) State) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), StoreLimit)
	defer stop()
	a.known = store.Doc{}
	_, err := a.swapState(ctx, docs, swapTries, next)
	return err
}

// swapState changes the stored state by compare-and-set. Claimed = this process has changed until when
// the notification is being sent, and so sends it.
func (a *storedAlert) swapState(ctx context.Context, docs store.DocStore, tries int, next func(State, time.Time) State) (claimed bool, err error) {
	for range tries {
		doc := a.known
		a.known = store.Doc{} // it is used once: another process may have changed the state
		if doc.Version == 0 {
			if doc, err = docs.Doc(ctx, string(a.kind), a.key); err != nil {
				return false, err
			}
		}
		before := stateOf(doc)
		a.at, a.state = doc.ReadAt, next(before, doc.ReadAt)
		if a.state.idle() && before.idle() {
			return false, nil // nothing to keep
		}
		if doc.Body, err = json.Marshal(a.state); err != nil {
			return false, err
		}
		_, err = docs.SwapDoc(ctx, doc)
		if err == nil {
			return a.state.Send != EventNone && !a.state.SendUntil.Equal(before.SendUntil), nil
		}
		if !errors.Is(err, store.ErrSwapped) {
			return false, err
		}
	}
	return false, fault.New(fault.KindLocked, "the state of alert %s changes all the time: %w", a.key, err)
}

// idle reports whether nothing is open and nothing is to be sent.
func (s State) idle() bool { return s.Phase != Pending && s.Phase != Firing && s.Send == EventNone }

// stateOf reads a state. One that is broken, or of another version, begins again.
func stateOf(doc store.Doc) State {
	var s State
	if len(doc.Body) > 0 && json.Unmarshal(doc.Body, &s) != nil {
		return State{}
	}
	return s
}
