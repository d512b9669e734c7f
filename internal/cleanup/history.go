package cleanup

import (
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/sandbox"
)

// History is one run as its journal tells it.
type History struct {
	RunID     string
	StartedAt time.Time
	EndedAt   time.Time // zero = it was cut off
	Begin     Begin
	Intents   map[sandbox.Ref]Intent
	Results   map[sandbox.Ref]Result // the last one of each
	// Requests are the last requests to end each that the run has sent, or may have
	// sent: what has an intent and no result since.
	Requests map[sandbox.Ref]*sandbox.EndRequest
	End      *End // nil = it was cut off
	Resumed  []Actor
	Sums     *fleet.Counts // of a run of another host, of which nothing more is known here; nil = by Results
	asked    map[sandbox.Ref]time.Time
	newest   sandbox.Ref // of the last intent
	Broken   string      // why the journal cannot be trusted; "" = it can
}

// ReadRun reads the journal of a run.
func ReadRun(d journal.Disk, run string) (History, error) {
	log, err := journal.Read(d, run)
	if err != nil {
		return History{}, err
	}
	return HistoryOf(log)
}

// HistoryOf tells what a journal holds.
func HistoryOf(log journal.Log) (History, error) {
	h := newHistory(log.Run)
	h.Broken = log.Broken
	for _, e := range log.Entries {
		if err := h.take(e); err != nil {
			return h, fromAnother(log.Run, err)
		}
	}
	h.close()
	return h, nil
}

// ScanRun reads the journal of a run without the output that it keeps of each sandbox,
// so that a list of runs costs little memory however much they have ended.
func ScanRun(d journal.Disk, run string) (History, journal.Log, error) {
	h, odd := newHistory(run), error(nil)
	log, err := journal.Scan(d, run, func(e journal.Entry) {
		if odd == nil {
			odd = h.take(e)
			if i, ok := h.Intents[h.newest]; ok && e.Kind == EntryIntent {
				i.Logs = nil
				h.Intents[h.newest] = i
			}
		}
	})
	if err != nil {
		return h, log, err
	}
	if h.Broken = log.Broken; odd != nil {
		return h, log, fromAnother(run, odd)
	}
	h.close()
	return h, log, nil
}

func fromAnother(run string, err error) error {
	return fault.New(fault.KindUnknown, "the journal of %s: %w", run, err).WithHint("was it written by another version of sbx?")
}

func newHistory(run string) History {
	return History{RunID: run, Intents: map[sandbox.Ref]Intent{}, Results: map[sandbox.Ref]Result{}, Requests: map[sandbox.Ref]*sandbox.EndRequest{}, asked: map[sandbox.Ref]time.Time{}}
}

// close brings a run to its end that its guards have refused before it was cut off.
func (h *History) close() {
	if refused := Refusal(h.Begin.Guards); refused != nil && h.End == nil {
		h.End = &End{ExitCode: fault.ExitCode(refused), Error: "a guard refused it", Refused: true, Succeeded: []string{}}
	}
}

func (h *History) take(e journal.Entry) error {
	switch e.Kind {
	case EntryBegin:
		h.StartedAt = e.At
		return e.Into(&h.Begin)
	case EntryIntent:
		var i Intent
		err := e.Into(&i)
		h.Intents[i.Ref], h.newest, h.asked[i.Ref] = i, i.Ref, e.At
		h.Requests[i.Ref] = &sandbox.EndRequest{At: e.At, Detail: "no answer is recorded", Delete: i.Delete, CreatedAt: i.CreatedAt, StartedAt: i.StartedAt}
		return err
	case EntryAnswer:
		var a Answer
		err := e.Into(&a)
		h.Requests[a.Ref] = &a.Request
		return err
	case EntryResult:
		var r Result
		err := e.Into(&r)
		h.Results[r.Ref], h.Requests[r.Ref] = r, r.Request
		return err
	case EntryResume:
		var a Actor
		err := e.Into(&a)
		h.Resumed = append(h.Resumed, a)
		h.End, h.EndedAt = nil, time.Time{}
		return err
	case EntryEnd:
		h.End, h.EndedAt = &End{}, e.At
		return e.Into(h.End)
	}
	return nil // written by a newer sbx
}

// Outcome is what became of an item; not_attempted where the journal says nothing.
func (h History) Outcome(ref sandbox.Ref) sandbox.Outcome {
	if r, ok := h.Results[ref]; ok {
		return r.Outcome
	}
	return sandbox.OutcomeNotAttempted
}

// IntentAt is when a sandbox was asked to end; zero = it was not.
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

// Open lists the items that a resume has to see to: those that are not seen to have
// ended, and were not left alone on purpose. What lies in a profile that the run
// could not list whole, or what its guards did not count, is not among them: no resume
// may end it.
func (h History) Open() []Item {
	var open []Item
	for _, i := range h.Begin.Plan.Items {
		if i.Excluded != "" || h.leftOut(i.Ref.Provider) != nil {
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

// leftOut is why the run left a profile out; nil = it did not.
func (h History) leftOut(profile string) error {
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

// Survey stands for the look that the run was based on, when it is gone on with:
// what was left out then still is.
func (h History) Survey(at time.Time) Survey {
	s := Survey{At: at, Rule: h.Begin.Plan.Rule}
	for _, p := range h.Begin.Profiles {
		s.Shares = append(s.Shares, Share{Profile: p.Profile, Err: h.leftOut(p.Profile), Fleet: p.Fleet, Selected: p.Selected, Unowned: p.Unowned})
	}
	return s
}

// Resumable says that something is left to do and may be done: a refused run was
// never allowed.
func (h History) Resumable() bool {
	return h.Broken == "" && (h.End == nil || !h.End.Refused) && len(h.Open()) > 0
}

// Profiles names the profiles that the run was about.
func (h History) Profiles() []string {
	var names []string
	for _, p := range h.Begin.Profiles {
		names = append(names, p.Profile)
	}
	return names
}

// ExitCode is that of the run, or -1 where it was cut off.
func (h History) ExitCode() int {
	if h.End == nil {
		return -1
	}
	return h.End.ExitCode
}

// Succeeded names the profiles in which nothing was left undone.
func (h History) Succeeded() []string {
	if h.End == nil || h.End.Refused {
		return nil
	}
	return h.End.Succeeded
}

// Unowned counts by profile what stayed because nobody owns it.
func (h History) Unowned() map[string]int {
	n := make(map[string]int, len(h.Begin.Profiles))
	for _, p := range h.Begin.Profiles {
		if p.Complete {
			n[p.Profile] = p.Unowned
		}
	}
	return n
}

// Resume makes the targets of what is open. An intent without a result may have been
// sent: it is asked again only if a fresh read shows that it still runs.
func (h History) Resume() []Target {
	done := map[sandbox.Ref]bool{}
	for _, i := range h.Open() {
		done[i.Ref] = true
	}
	var targets []Target
	for _, i := range h.Begin.Plan.Items {
		t := Target{Item: i, Sandbox: sandbox.Sandbox{Provider: i.Ref.Provider, ID: i.Ref.ID, Name: i.Name, State: i.State, CreatedAt: i.CreatedAt}}
		if !done[i.Ref] {
			r := h.Results[i.Ref]
			t.Settled = &sandbox.Ending{Ref: i.Ref, Outcome: h.Outcome(i.Ref), Reason: r.Reason, Duration: time.Duration(r.Seconds * float64(time.Second)), Evidence: r.Evidence}
			if t.Settled.Outcome == sandbox.OutcomeNotAttempted && i.Excluded != "" && h.leftOut(i.Ref.Provider) == nil {
				t.Settled.Outcome, t.Settled.Reason = sandbox.OutcomeChanged, i.Excluded
			}
			if t.Settled.Outcome == sandbox.OutcomeNotAttempted {
				t.Settled.Err = h.leftOut(i.Ref.Provider)
			}
		}
		_, t.Asked = h.Intents[i.Ref]
		t.Request = h.Requests[i.Ref]
		targets = append(targets, t)
	}
	return targets
}
