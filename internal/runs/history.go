package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/sandbox"
)

// History is one run by its journal.
type History struct {
	RunID     string
	StartedAt time.Time
	EndedAt   time.Time // zero = it was interrupted
	Begin     Begin
	Intents   map[sandbox.Ref]Intent
	Results   map[sandbox.Ref]Result // the last result of each
	// Requests are the last requests to end each sandbox that the run has sent, or may have
	// sent: those with an intent and no later result.
	Requests   map[sandbox.Ref]*sandbox.EndRequest
	Conclusion *Conclusion // nil = it was interrupted
	Resumed    []Actor
	Sums       *fleet.Counts // of a run of another host, of which only these are known; nil = by Results
	asked      map[sandbox.Ref]time.Time
	newest     sandbox.Ref // of the last intent
	Broken     string      // why the journal cannot be trusted; "" = it can
	// Unreadable are the entries that cannot be read, though the chain holds. What they say is
	// not known: such a run is shown as far as it can be read, and is not resumed.
	Unreadable Unreadable
}

// Unreadable are entries of a journal that cannot be read, each with its reason.
type Unreadable []string

// Note adds an entry that cannot be read; nil is none.
func (u *Unreadable) Note(err error) {
	if err != nil {
		*u = append(*u, err.Error())
	}
}

// Error names the entries of a run that cannot be read; nil = all can.
func (u Unreadable) Error(run string) error {
	if len(u) == 0 {
		return nil
	}
	what := "1 entry"
	if len(u) > 1 {
		what = fmt.Sprintf("%d entries", len(u))
	}
	return fault.New(
		fault.KindUnknown, "%s of run %s cannot be read: %s", what, run, strings.Join(u, "; "),
	).WithHint("it may have been written by another version of sbx")
}

// ReadRun reads the journal of a run.
func ReadRun(d journal.Disk, run string) (History, error) {
	log, err := journal.Read(d, run)
	if err != nil {
		return History{}, err
	}
	return HistoryOf(log), nil
}

// HistoryOf interprets a journal, as far as its entries can be read.
func HistoryOf(log journal.Log) History {
	h := newHistory(log.Run)
	h.Broken = log.Broken
	for _, e := range log.Entries {
		h.Unreadable.Note(h.addEntry(e))
	}
	h.closeRefused()
	return h
}

// ScanRun reads the journal of a run without the output of each sandbox, so that a list of
// runs needs little memory.
func ScanRun(d journal.Disk, run string) (History, journal.Log, error) {
	h := newHistory(run)
	log, err := journal.Scan(d, run, func(e journal.Entry) {
		h.Unreadable.Note(h.addEntry(e))
		if i, ok := h.Intents[h.newest]; ok && e.Kind == EntryIntent {
			i.Logs = nil
			h.Intents[h.newest] = i
		}
	})
	if err != nil {
		return h, log, err
	}
	h.Broken = log.Broken
	h.closeRefused()
	return h, log, nil
}

// BrokenError says that the journal of a run cannot be trusted, and why.
func BrokenError(run, why string) error {
	return fault.New(fault.KindFound, "the journal of %s was changed or damaged: %s", run, why)
}

func newHistory(run string) History {
	return History{
		RunID: run, Intents: map[sandbox.Ref]Intent{}, Results: map[sandbox.Ref]Result{}, Requests: map[sandbox.Ref]*sandbox.EndRequest{},
		asked: map[sandbox.Ref]time.Time{},
	}
}

// closeRefused ends a run that its guards refused before it was interrupted.
func (h *History) closeRefused() {
	if h.Conclusion == nil && slices.ContainsFunc(h.Begin.Guards, func(g Guard) bool { return !g.OK }) {
		refused := fault.New(fault.KindRefused, "a safety limit refused it")
		h.Conclusion = &Conclusion{ExitCode: fault.ExitCode(refused), Error: refused.Error(), Refused: true, Succeeded: []string{}}
	}
}

// addEntry adds what an entry says; of one that cannot be read, nothing.
func (h *History) addEntry(e journal.Entry) error {
	switch e.Kind {
	case EntryBegin:
		h.StartedAt = e.At
		return journal.Decode(e, func(b Begin) { h.Begin = b })
	case EntryIntent:
		return journal.Decode(e, func(i Intent) {
			h.Intents[i.Ref], h.newest, h.asked[i.Ref] = i, i.Ref, e.At
			h.Requests[i.Ref] = &sandbox.EndRequest{
				At: e.At, Detail: "no answer is recorded", Delete: i.Delete, CreatedAt: i.CreatedAt, StartedAt: i.StartedAt, State: i.State,
				Again: h.Requests[i.Ref].Unconfirmed(),
			}
		})
	case EntryAnswer:
		return journal.Decode(e, func(a Answer) { h.Requests[a.Ref] = &a.Request })
	case EntryResult:
		return journal.Decode(e, func(r Result) { h.Results[r.Ref], h.Requests[r.Ref] = r, r.Request })
	case EntryResume:
		h.Conclusion, h.EndedAt = nil, time.Time{}
		return journal.Decode(e, func(a Actor) { h.Resumed = append(h.Resumed, a) })
	case EntryConclusion:
		return journal.Decode(e, func(c Conclusion) { h.Conclusion, h.EndedAt = &c, e.At })
	}
	return nil // written by a newer sbx
}

// Outcome is the outcome of an item; not_attempted where the journal has none.
func (h History) Outcome(ref sandbox.Ref) sandbox.Outcome {
	if r, ok := h.Results[ref]; ok {
		return r.Outcome
	}
	return sandbox.OutcomeNotAttempted
}

// IntentAt is when the end of a sandbox was requested; zero = it was not.
func (h History) IntentAt(ref sandbox.Ref) time.Time { return h.asked[ref] }

// Counts sums the outcomes of all items.
func (h History) Counts() fleet.Counts {
	if h.Sums != nil {
		return *h.Sums
	}
	endings := make([]sandbox.Ending, 0, len(h.Begin.Plan.Items))
	for _, i := range h.Begin.Plan.Items {
		endings = append(endings, sandbox.Ending{Ref: i.Ref, Outcome: h.Outcome(i.Ref)})
	}
	return fleet.Count(endings)
}

// Open lists the items for a resume: those that were not seen to end, and were not kept on
// purpose. Items of a profile that the run could not list completely, and those that its
// guards did not count, are not among them: no resume may end them.
func (h History) Open() []Item {
	var open []Item
	for _, i := range h.Begin.Plan.Items {
		if i.Excluded != "" || h.LeftOut(i.Ref.Provider) != nil {
			continue
		}
		switch h.Outcome(i.Ref) {
		case sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone, sandbox.OutcomeChanged, sandbox.OutcomeSkipped:
		case sandbox.OutcomeAccepted, sandbox.OutcomeStuck, sandbox.OutcomeFailed, sandbox.OutcomeNotAttempted:
			open = append(open, i)
		}
	}
	return open
}

// LeftOut is why the run left a profile out; nil = it did not.
func (h History) LeftOut(profile string) error {
	for _, p := range h.Begin.Profiles {
		if p.Profile == profile && p.Complete {
			return nil
		}
		if p.Profile == profile {
			return fault.New(fault.KindUnavailable, "%s", p.Error).At(profile, "").WithHint("start a new run")
		}
	}
	return fault.New(fault.KindUnavailable, "the run did not list it").At(profile, "").WithHint("start a new run")
}

// Resumable reports whether something is left to do and allowed: a refused run never is.
func (h History) Resumable() bool {
	return h.Broken == "" && len(h.Unreadable) == 0 && (h.Conclusion == nil || !h.Conclusion.Refused) && len(h.Open()) > 0
}

// Profiles names the profiles of the run.
func (h History) Profiles() []string {
	var names []string
	for _, p := range h.Begin.Profiles {
		names = append(names, p.Profile)
	}
	return names
}

// ExitCode is the code of the run, or -1 where it was interrupted.
func (h History) ExitCode() int {
	if h.Conclusion == nil {
		return -1
	}
	return h.Conclusion.ExitCode
}

// Succeeded names the profiles in which everything was done.
func (h History) Succeeded() []string {
	if h.Conclusion == nil || h.Conclusion.Refused {
		return nil
	}
	return h.Conclusion.Succeeded
}

// Unowned counts by profile the sandboxes that stayed for want of an owner.
func (h History) Unowned() map[string]int {
	n := make(map[string]int, len(h.Begin.Profiles))
	for _, p := range h.Begin.Profiles {
		if p.Complete {
			n[p.Profile] = p.Unowned
		}
	}
	return n
}

// Share is what a run saw of a profile. Of a run of another host only its successes are
// known.
func (h History) Share(profile string) (Profile, bool) {
	for _, p := range h.Begin.Profiles {
		if p.Profile == profile {
			return p, true
		}
	}
	return Profile{}, h.Conclusion != nil && slices.Contains(h.Conclusion.Succeeded, profile)
}
