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

// tracked is a condition whose state is kept in the store.
type tracked struct {
	kind           kind
	key            string
	verdict        sandbox.Verdict
	evidence       []string
	holdFor, every time.Duration

	read  store.Doc // what was read already; Version 0 = nothing
	state State
	at    time.Time // of state, by the store's clock
}

// advance stores the next state. Claimed = this process has to send its notification.
func (t *tracked) advance(ctx context.Context, docs store.DocStore, tries int) (claimed bool, err error) {
	return t.swap(ctx, docs, tries, func(s State, now time.Time) State {
		s = Step(s, t.verdict, now, t.holdFor, t.every)
		if t.verdict == sandbox.True || t.verdict == sandbox.False {
			s.Evidence = t.evidence
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
func (t *tracked) deliver(ctx context.Context, docs store.DocStore, send SendEvent) error {
	event, claim, mine := t.state.Send, t.state.SendUntil, false
	err := t.change(ctx, docs, func(s State, now time.Time) State {
		if mine = s.SendUntil.Equal(claim); mine {
			s.SendUntil = now.Add(claimFor)
		}
		return s
	})
	if err != nil || !mine {
		return err
	}
	claim = t.state.SendUntil
	left, sendErr := send(ctx, event, t.state.Left)
	err = t.change(ctx, docs, func(s State, _ time.Time) State {
		if !s.SendUntil.Equal(claim) {
			return s // it took too long, and another process has taken over
		}
		if sendErr != nil {
			if s.Send == event && len(left) > 0 {
				s.Left = left
			}
			return s
		}
		if s.SendUntil = (time.Time{}); s.Send == event {
			s.Send, s.Left = EventNone, nil
		}
		return s
	})
	return errors.Join(sendErr, err)
}

// change is swap around the sending, which an interrupt of the verb does not end.
func (t *tracked) change(ctx context.Context, docs store.DocStore, step func(State, time.Time) State) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), StoreLimit)
	defer stop()
	t.read = store.Doc{}
	_, err := t.swap(ctx, docs, swapTries, step)
	return err
}

// swap changes the stored state by compare-and-set; claimed reports that this process has
// changed until when its notification is sent, and so sends it.
func (t *tracked) swap(ctx context.Context, docs store.DocStore, tries int, step func(State, time.Time) State) (claimed bool, err error) {
	for range tries {
		doc := t.read
		if t.read = (store.Doc{}); doc.Version == 0 {
			if doc, err = docs.Doc(ctx, string(t.kind), t.key); err != nil {
				return false, err
			}
		}
		before := stateOf(doc)
		t.at, t.state = doc.ReadAt, step(before, doc.ReadAt)
		if t.state.idle() && before.idle() {
			return false, nil // nothing to keep
		}
		if doc.Body, err = json.Marshal(t.state); err != nil {
			return false, err
		}
		if _, err = docs.SwapDoc(ctx, doc); err == nil {
			return t.state.Send != EventNone && !t.state.SendUntil.Equal(before.SendUntil), nil
		}
		if !errors.Is(err, store.ErrSwapped) {
			return false, err
		}
	}
	return false, fault.New(fault.KindLocked, "the state of alert %s changes all the time: %w", t.key, err)
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
