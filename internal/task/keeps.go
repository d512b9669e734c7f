package task

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/poll"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// keptKind is the kind of the list's documents in the store.
const keptKind = "kept"

// claimMemory is how long a claim is remembered. A process that was suspended for less
// cannot put a claimed sandbox back onto the list.
const claimMemory = 7 * 24 * time.Hour

// KeepList is the list of sandboxes that outlive their tasks. Each is claimed by one task only.
type KeepList struct{ Store store.DocStore }

// keptEntry is one sandbox of the list; its key is the REF.
type keptEntry struct {
	Task      string    `json:"task"`
	ExpiresAt time.Time `json:"expires_at"`
	Host      string    `json:"host,omitempty"`
	// Claimed is when a task claimed it, which then has to end it.
	Claimed time.Time `json:"claimed_at,omitzero"`
	By      string    `json:"claimed_by,omitempty"`
	// Sweeps counts the calls of EndKept that did not see it end; the next one tries at SweepAfter.
	Sweeps     int       `json:"sweeps,omitempty"`
	SweepAfter time.Time `json:"sweep_after,omitzero"`

	ref sandbox.Ref
	doc store.Doc
}

// claimable reports whether it may be claimed, by the store's clock.
func (e keptEntry) claimable() bool { return e.Claimed.IsZero() && e.doc.ReadAt.Before(e.ExpiresAt) }

// postponed reports whether EndKept leaves it alone for now.
func (e keptEntry) postponed() bool { return e.doc.ReadAt.Before(e.SweepAfter) }

// postponeSweep records that an entry was not seen to end. One that another process has changed
// meanwhile stays as it is.
func (l KeepList) postponeSweep(ctx context.Context, e keptEntry) {
	e.SweepAfter = e.doc.ReadAt.Add(sweepPause(e.Sweeps))
	e.Sweeps++
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	_ = l.writeEntry(ctx, e)
}

func decodeKeptEntry(doc store.Doc) (keptEntry, bool) {
	e := keptEntry{doc: doc}
	e.ref = sandbox.ReadRef(doc.Key)
	return e, doc.Version > 0 && json.Unmarshal(doc.Body, &e) == nil
}

// Keep puts a sandbox on the list. It may be called more than once for one task, also late:
// an entry that exists or existed is not changed.
func (l KeepList) Keep(ctx context.Context, k Kept, task string) error {
	doc, err := l.Store.Doc(ctx, keptKind, k.Ref.String())
	if err != nil || doc.Version > 0 {
		return err
	}
	err = l.writeEntry(ctx, keptEntry{Task: task, ExpiresAt: k.ExpiresAt, Host: k.Host, doc: doc})
	if errors.Is(err, store.ErrSwapped) {
		return nil // another process has put it there for the same task
	}
	return err
}

// Claim gives a sandbox of the list to a task, which then has to end it. It may be
// repeated. False = another task has it, its time is over, or it was never there.
func (l KeepList) Claim(ctx context.Context, ref sandbox.Ref, task string) (bool, error) {
	e, ok, err := l.readEntry(ctx, ref)
	if err != nil || !ok || !e.claimable() {
		return err == nil && ok && e.By == task, err
	}
	e.Claimed, e.By = e.doc.ReadAt, task
	err = l.writeEntry(ctx, e)
	if errors.Is(err, store.ErrSwapped) {
		return false, nil
	}
	return err == nil, err
}

// Return puts back a sandbox that a task claimed and did not enter.
func (l KeepList) Return(ctx context.Context, ref sandbox.Ref, task string) error {
	e, ok, err := l.readEntry(ctx, ref)
	if err != nil || !ok || e.By != task {
		return err
	}
	e.Claimed, e.By = time.Time{}, ""
	return l.writeEntry(ctx, e)
}

// Release ends the time of an unclaimed sandbox: it cannot be claimed any more, and the
// next EndKept ends it. A claimed one is left to the task by.
func (l KeepList) Release(ctx context.Context, ref sandbox.Ref) (by string, err error) {
	for {
		e, ok, err := l.readEntry(ctx, ref)
		if err != nil || !ok || !e.claimable() {
			return e.By, err
		}
		e.ExpiresAt = e.doc.ReadAt
		if err = l.writeEntry(ctx, e); !errors.Is(err, store.ErrSwapped) {
			return "", err
		}
	}
}

// Waiting lists the sandboxes that may be claimed, and until when.
func (l KeepList) Waiting(ctx context.Context) (map[sandbox.Ref]time.Time, error) {
	all, err := l.readEntries(ctx)
	waiting := map[sandbox.Ref]time.Time{}
	for _, e := range all {
		if e.claimable() {
			waiting[e.ref] = e.ExpiresAt
		}
	}
	return waiting, err
}

// EndKept ends, within SweepTime, the kept sandboxes whose time is over, or whose claimer
// died before it recorded the claim. It returns those that were seen to end. The others stay
// on the list, left alone by EndKept for sweepPause, and so do those that the operator
// protects.
//
// The lifetime at the provider is longer: it covers all that an attempt may take, and the
// time of keeping begins when the attempt ends.
func EndKept(ctx context.Context, o Options) ([]sandbox.Ref, error) {
	gone, _, err := o.endDue(ctx, keptEntry.postponed)
	return gone, err
}

// endDue is EndKept but for what skip reports, with the reasons for which due sandboxes stay.
func (o Options) endDue(ctx context.Context, skip func(keptEntry) bool) (gone []sandbox.Ref, stay map[sandbox.Ref]string, err error) {
	l := o.KeepList
	if l == nil {
		return nil, nil, nil
	}
	ctx, stop := context.WithTimeout(ctx, SweepTime)
	defer stop()
	all, err := l.readEntries(ctx)
	if err != nil {
		return nil, nil, err
	}
	due, targets := map[sandbox.Ref]keptEntry{}, map[bool][]sandbox.Sandbox{}
	for _, e := range all {
		if skip(e) {
			continue
		}
		if end, forget := o.isDue(ctx, e); end {
			deletes := o.DeleteOnEnd != nil && o.DeleteOnEnd(e.ref.Provider)
			due[e.ref] = e
			targets[deletes] = append(targets[deletes], sandbox.Sandbox{Provider: e.ref.Provider, ID: e.ref.ID, State: sandbox.StateRunning})
		} else if forget {
			_ = l.Store.DropDoc(ctx, e.doc) // the next call repeats it
		}
	}
	stay = map[sandbox.Ref]string{}
	why := runs.Origin{Verb: runs.VerbTask, Reason: "its task kept it, and that time has ended"}
	for deletes, some := range targets {
		how := fleet.EndOptions{Wait: SweepTime, By: o.Owner.Who, Delete: deletes}
		for e := range safety.End(ctx, o.Sandboxes, some, safety.Options{Verb: safety.VerbKept, How: how, Protected: o.protectionReason, Open: o.openEnds(why)}) {
			switch e.Outcome {
			case sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone:
				gone = append(gone, e.Ref)
				_ = l.Store.DropDoc(ctx, due[e.Ref].doc) // another process that dropped it has seen the same end
			case sandbox.OutcomeSkipped:
				stay[e.Ref] = e.Reason
			case sandbox.OutcomeAccepted, sandbox.OutcomeStuck, sandbox.OutcomeFailed, sandbox.OutcomeChanged, sandbox.OutcomeNotAttempted:
				l.postponeSweep(ctx, due[e.Ref])
			}
		}
	}
	return gone, stay, nil
}

// endReleased ends a released sandbox. It reports whether it was seen to be gone within
// EndWait, else why it may not be ended.
func (o Options) endReleased(ctx context.Context, ref sandbox.Ref) (gone bool, why string) {
	for began := time.Now(); time.Since(began) < EndWait; {
		_, stay, err := o.endDue(ctx, func(keptEntry) bool { return false })
		if err == nil {
			if _, there, err := o.KeepList.readEntry(ctx, ref); err == nil && !there {
				return true, ""
			}
		}
		if stay[ref] != "" {
			return false, stay[ref] // waiting would change nothing
		}
		if poll.Sleep(ctx, SettleLook) != nil {
			break
		}
	}
	return false, ""
}

// endKept ends the sandbox that a finished task has kept. fault.KindRefused where another
// task uses it.
func (o Options) endKept(ctx context.Context, t Task) error {
	if t.Kept == nil || o.KeepList == nil {
		return nil
	}
	by, err := o.KeepList.Release(ctx, t.Kept.Ref)
	if err != nil {
		return err
	}
	if by != "" {
		other, err := o.Ledger.Read(ctx, by)
		if err != nil || other.State.Final() {
			return err // the other task has ended the sandbox
		}
		return fault.New(fault.KindRefused, "task %s continues in %s", by, t.Kept.Ref).WithHint("`sbx stop %s` ends both", by)
	}
	switch gone, why := o.endReleased(ctx, t.Kept.Ref); {
	case why != "":
		return fault.New(fault.KindRefused, "its kept sandbox %s stays: %s", t.Kept.Ref, why).WithHint("remove the protection, and stop it again")
	case !gone:
		return unverifiedError(t, "its kept sandbox, "+t.Kept.Ref.String()+", is not verified ended")
	}
	return nil
}

// CanReach reports whether this host can see a sandbox that was made on host: the sandboxes
// of a host-bound profile are visible there only.
func (o Options) CanReach(ref sandbox.Ref, host string) bool {
	return o.HostBound == nil || host == "" || host == o.Owner.Host || !o.HostBound(ref.Provider)
}

// protectionReason is why a kept sandbox may not be ended; "" = it may.
func (o Options) protectionReason(s sandbox.Sandbox) string {
	if o.Protected == nil {
		return ""
	}
	return o.Protected(s)
}

// isDue reports whether a sandbox of the list is to be ended here, or its entry may be
// forgotten.
func (o Options) isDue(ctx context.Context, e keptEntry) (end, forget bool) {
	if !o.CanReach(e.ref, e.Host) {
		return false, false
	}
	if e.Claimed.IsZero() {
		return !e.claimable(), false
	}
	t, err := o.Ledger.Read(ctx, e.By)
	if err != nil {
		return fault.KindOf(err) == fault.KindNotFound, false
	}
	for _, a := range t.Attempts {
		if a.Ref() == e.ref {
			return false, e.doc.ReadAt.Sub(e.Claimed) >= claimMemory // the claimer records it, and so ends it
		}
	}
	return t.State.Final() || !t.Held(), false // otherwise the claimer is about to record it
}

func (l KeepList) readEntry(ctx context.Context, ref sandbox.Ref) (keptEntry, bool, error) {
	doc, err := l.Store.Doc(ctx, keptKind, ref.String())
	if err != nil {
		return keptEntry{}, false, err
	}
	e, ok := decodeKeptEntry(doc)
	return e, ok, nil
}

func (l KeepList) readEntries(ctx context.Context) ([]keptEntry, error) {
	docs, err := l.Store.Docs(ctx, keptKind)
	if err != nil {
		return nil, err
	}
	all := make([]keptEntry, 0, len(docs))
	for _, doc := range docs {
		if e, ok := decodeKeptEntry(doc); ok {
			all = append(all, e)
		}
	}
	return all, nil
}

func (l KeepList) writeEntry(ctx context.Context, e keptEntry) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	e.doc.Body = body
	_, err = l.Store.SwapDoc(ctx, e.doc)
	return err
}
