// Package recall answers from what is on record about sandboxes that no provider finds: who ended them, when they were
// seen last, which ends are not confirmed, what a new listing leaves out, and all that was ended. It asks no provider
// but about what a listing has lost.
package recall

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// EndRecord is what is on record of the end of a sandbox.
type EndRecord struct {
	Sandbox sandbox.Sandbox // as it was last seen
	At      time.Time
	Who     string
	Host    string
	Verb    string          // "" = not known
	Run     string          // "" = not known
	Outcome sandbox.Outcome // not_attempted = it was asked to end, and what became of it is not known
	Reason  string
	Logs    []string // its last lines, where they were kept
}

// WhoEnded adds to a "not found" error who ended the sandbox, when and by which run, where that
// is on record; otherwise it returns nil and the error unchanged.
func WhoEnded(ctx context.Context, e *ops.Env, word string, missing error) (*EndRecord, error) {
	r, described := FindEnd(ctx, e, word, missing)
	if r == nil {
		return nil, described
	}
	hint := "`" + e.Process.Name() + " inspect " + r.Sandbox.Ref().String() + "` shows what is on record"
	if more := fault.HintOf(described); more != "" {
		hint += "; " + more
	}
	return r, fault.New(fault.KindOf(described), "%s: %s", r.Absence(), r.Sentence(e.Now())).At(r.Sandbox.Provider, r.Sandbox.ID).WithHint("%s", hint)
}

// FindEnd is WhoEnded for a verb that shows what is on record: its hint names the run alone.
func FindEnd(ctx context.Context, e *ops.Env, word string, missing error) (*EndRecord, error) {
	if kind := fault.KindOf(missing); kind != fault.KindNotFound && kind != fault.KindGone {
		return nil, missing
	}
	r, found := EndOf(ctx, e, word)
	if !found {
		return nil, missing
	}
	described := fault.New(fault.KindOf(missing), "%s: %s", r.Absence(), r.Sentence(e.Now())).At(r.Sandbox.Provider, r.Sandbox.ID)
	if r.Run != "" {
		return &r, described.WithHint("`%s cleanup show %s` shows that run", e.Process.Name(), r.Run)
	}
	return &r, described
}

// EndOf looks a sandbox up in the journals of this machine, the newest first, then in
// the store, which other hosts may share. What cannot be read is passed by: a look
// depends on neither.
func EndOf(ctx context.Context, e *ops.Env, word string) (EndRecord, bool) {
	ref, err := sandbox.ParseRef(word)
	if err != nil {
		return EndRecord{}, false
	}
	means := func(of sandbox.Ref, name string) bool {
		if !ref.Bare() {
			return of == ref || of.Provider == ref.Provider && name == ref.ID
		}
		return of.ID == ref.ID || name == ref.ID || len(ref.ID) >= sandbox.MinPrefix && strings.HasPrefix(of.ID, ref.ID)
	}
	if r, found := EndInJournals(ctx, e, ref.ID, means); found {
		return r, true
	}
	return endInStore(ctx, e, ref, means)
}

// EndInJournals finds the newest run of this machine that asked a sandbox to end, or saw its
// end. word is a name, an id or the beginning of one.
func EndInJournals(ctx context.Context, e *ops.Env, word string, means func(sandbox.Ref, string) bool) (EndRecord, bool) {
	met, known := EndRecord{}, false
	for h := range e.Runs().About(ctx, word) {
		r, found := endInRun(h, word, means)
		switch {
		case found && !r.foundEnded():
			return r, true
		case found && !known: // an older run may be the one that ended it
			met, known = r, true
		}
	}
	return met, known
}

// Acknowledged reports whether a request to end a sandbox was acknowledged, by the journals of this machine or by
// the record of a verified end in the store, which other hosts may share.
func Acknowledged(ctx context.Context, e *ops.Env, ref sandbox.Ref) bool {
	for h := range e.Runs().About(ctx, ref.ID) {
		if i, asked := h.Intents[ref]; asked && i.Ends() && h.Requests[ref] != nil && h.Requests[ref].Acknowledged {
			return true
		}
	}
	r, found := endInStore(ctx, e, ref, func(of sandbox.Ref, _ string) bool { return of == ref })
	return found && r.Outcome == sandbox.OutcomeVerified
}

// namedRef is one sandbox that a record may be about.
type namedRef struct {
	ref  sandbox.Ref
	name string
}

// chosenOf gives the one sandbox that a word means: by its whole id or name, else the only
// one whose id begins so.
func chosenOf(word string, all iter.Seq[namedRef], means func(sandbox.Ref, string) bool) (sandbox.Ref, bool) {
	meant := map[sandbox.Ref]bool{}
	var only sandbox.Ref
	for one := range all {
		if !means(one.ref, one.name) {
			continue
		}
		if one.ref.ID == word || one.name == word {
			return one.ref, true
		}
		only, meant[one.ref] = one.ref, true
	}
	return only, len(meant) == 1
}

func recordedIn(h runs.History) iter.Seq[namedRef] {
	return func(yield func(namedRef) bool) {
		for ref, i := range h.Intents {
			if !yield(namedRef{ref, i.Name}) {
				return
			}
		}
		for _, item := range h.Begin.Plan.Items {
			if !yield(namedRef{item.Ref, item.Name}) {
				return
			}
		}
	}
}

func endInRun(h runs.History, word string, means func(sandbox.Ref, string) bool) (EndRecord, bool) {
	r := EndRecord{Who: h.Begin.Who, Host: h.Begin.Host, Verb: h.Begin.Verb, Run: h.RunID}
	ref, one := chosenOf(word, recordedIn(h), means)
	if !one {
		return EndRecord{}, false
	}
	result, settled := h.Results[ref]
	i, asked := h.Intents[ref]
	if asked && !i.Ends() { // a change of its record is no end
		return EndRecord{}, false
	}
	if asked {
		r.Sandbox = sandbox.Sandbox{
			Provider: ref.Provider, ID: ref.ID, Name: i.Name, State: i.State, CreatedAt: i.CreatedAt, StartedAt: i.StartedAt,
			LastActivityAt: i.LastActivityAt, Template: i.Template, AgentType: i.AgentType, TaskID: i.TaskID, Labels: i.Labels,
		}
		r.At, r.Logs = h.IntentAt(ref), i.Logs
		r.Outcome, r.Reason = h.Outcome(ref), result.Reason
		return r, true
	}
	at := slices.IndexFunc(h.Begin.Plan.Items, func(item runs.Item) bool { return item.Ref == ref })
	if at < 0 || !settled || !EndedOutcome(result.Outcome) {
		return EndRecord{}, false
	}
	item := h.Begin.Plan.Items[at]
	r.Sandbox = sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID, Name: item.Name, State: item.State, CreatedAt: item.CreatedAt}
	r.At, r.Outcome, r.Reason = h.StartedAt, result.Outcome, result.Reason
	return r, true
}

// endInStore finds the end of a sandbox that sbx created, from whatever host.
func endInStore(ctx context.Context, e *ops.Env, word sandbox.Ref, means func(sandbox.Ref, string) bool) (EndRecord, bool) {
	st, err := e.Store(false)
	if err != nil {
		return EndRecord{}, false
	}
	ctx, stop := context.WithTimeout(ctx, e.Process.TimeScale.Limit(ops.StoreTimeout))
	defer stop()
	records, err := st.Records(ctx, word.Provider)
	err = errors.Join(err, st.Close())
	records = slices.DeleteFunc(records, func(k store.Record) bool { return k.EndedAt.IsZero() })
	chosen, one := chosenOf(word.ID, func(yield func(namedRef) bool) {
		for _, k := range records {
			if !yield(namedRef{k.Ref(), ""}) {
				return
			}
		}
	}, means)
	if err != nil || !one {
		return EndRecord{}, false
	}
	k := records[slices.IndexFunc(records, func(k store.Record) bool { return k.Ref() == chosen })]
	outcome := sandbox.OutcomeAlreadyGone
	if strings.HasPrefix(k.Reason, ops.RecordEnded) {
		outcome = sandbox.OutcomeVerified
	}
	return EndRecord{
		Sandbox: sandbox.Sandbox{Provider: k.Provider, ID: k.ID, TaskID: k.TaskID, AgentType: k.AgentType, State: k.State, CreatedAt: k.CreatedAt},
		At:      k.EndedAt, Outcome: outcome, Reason: k.Reason,
	}, true
}

// Absence says what it means that no provider finds the sandbox: after a request whose end was not
// seen, an absence proves none.
func (r EndRecord) Absence() string {
	if EndedOutcome(r.Outcome) {
		return "it no longer exists"
	}
	return "its provider does not find it, which proves no end"
}

// Sentence says in one line who ended it, when, and whether the end was seen.
func (r EndRecord) Sentence(now time.Time) string {
	text := cmp.Or(r.Who, "somebody")
	if r.Host != "" {
		text += " on " + r.Host
	}
	did := " ended it "
	switch {
	case r.foundEnded():
		did = " found it ended "
	case !EndedOutcome(r.Outcome):
		did = " asked it to end "
	}
	text += did + sandbox.FormatDuration(max(0, now.Sub(r.At)).Truncate(time.Second)) + " ago"
	if r.Verb != "" {
		text += " (" + strings.TrimSpace(r.Verb+" "+r.Run) + ")"
	}
	switch {
	case r.Outcome == sandbox.OutcomeNotAttempted:
		return text + ", and the run was interrupted before it verified the end"
	case r.Outcome != "":
		return text + ": " + ops.WithDetail(string(r.Outcome), r.Reason)
	}
	return text
}

// foundEnded says that the run only found the sandbox ended; this record does not name who
// ended it.
func (r EndRecord) foundEnded() bool { return r.Outcome == sandbox.OutcomeAlreadyGone }

// EndedOutcome says that an outcome means a sandbox has ended.
func EndedOutcome(o sandbox.Outcome) bool {
	return o == "" || o == sandbox.OutcomeVerified || o == sandbox.OutcomeAlreadyGone
}
