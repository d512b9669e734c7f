package incidents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// ReportQuestion is a question of a runbook for the time after an incident.
type ReportQuestion struct {
	ID, Ask    string
	AnsweredBy []string // collectors; none = a person answers
}

// ReportTask is something to do after an incident.
type ReportTask struct {
	Title string
	Group string // detection, code, docs; "" = none
	Where string // the command that does it; "" = a person does it
	Cause string // the id of the cause that it is for; "" = any
}

// ReportPlan is what a runbook asks for after an incident.
type ReportPlan struct {
	Runbook   string
	Title     string
	Questions []ReportQuestion
	Tasks     []ReportTask
}

// PlanFinder reads the runbook of an incident; "" = the one for its alert or cause.
type PlanFinder func(runbook, alert, cause string) (ReportPlan, error)

// RunFinder reads what runs of runbooks have done in a time, at some profiles (none = at any): their steps
// that are over, and as events the causes that they have named and whom to call. Errors are of records that
// cannot be read.
type RunFinder func(since, until time.Time, profiles []string) ([]incident.Step, []history.Event, []error)

// ReportRequest says what is reported.
type ReportRequest struct {
	Word   string     // the incident; "" = the open one
	Newest bool       // where none is open, the newest one
	Runs   RunFinder  // nil = there are none
	Plan   PlanFinder // nil = neither questions nor tasks are reported
}

// Moment is when an incident reached a milestone, and how that is known.
type Moment struct {
	Milestone incident.Milestone
	At        time.Time // zero = not known
	Source    string    // where it is zero: why
	Who       string
}

// The kinds of events of a timeline that are no lines of the incident's own record.
const (
	EventSeen      = "seen"      // what a verb has concluded or made
	EventVerified  = "verified"  // all targets are met
	EventActed     = "acted"     // a run has terminated or changed something
	EventStep      = "step"      // a step of a runbook has ended
	EventEscalated = "escalated" // people were notified, or are to be called
)

// IncidentEvent is one thing that happened: one of its sources is set.
type IncidentEvent struct {
	At              time.Time
	Kind            string // of incident.Event, or of the list above
	Who, Host, Verb string

	Said *incident.Event // a line of the incident's own record
	Seen *history.Event
	Acts []cleanup.Act // of one run
	Step *incident.Step
}

// SeenCause is a cause as it was ranked, with the time of that.
type SeenCause struct {
	history.Cause

	At   time.Time
	Verb string
}

// SeenCheck is a flag or a target, with the time at which it was seen last.
type SeenCheck struct {
	history.Check

	At   time.Time
	Verb string
}

// SeenFigure is a figure of all sandboxes before the first act, and as it was last seen.
type SeenFigure struct {
	Name          string
	Before, After *int64 // nil = not known
	BeforeAt      time.Time
	AfterAt       time.Time
}

// ReportAnswer answers a question, as far as the record does.
type ReportAnswer struct {
	ReportQuestion

	Answer string // "" = none is on record
	Source string
	// NeedsPerson says that the record does not answer it, or only a person can.
	NeedsPerson bool
}

// IncidentReport is all that is known of an incident.
type IncidentReport struct {
	Incident    *incident.Incident
	Plan        ReportPlan
	At          time.Time
	Severity    string          // "" = not known
	Alert       string          // "" = not known
	Timeline    []IncidentEvent // oldest first
	Moments     []Moment
	Causes      []SeenCause
	Flags       []SeenCheck
	Figures     []SeenFigure
	Acts        []cleanup.Act // oldest first
	Checks      []SeenCheck
	Escalations []history.Event
	Steps       []incident.Step
	Answers     []ReportAnswer
	Tasks       []ReportTask
	Problems    []string // what is missing, and why

	events []history.Event // oldest first
}

// ReportIncident asks all records for what is known of the time of an incident, from its detection to its
// end: its own, the journals of acts, the runs of runbooks, tasks, events and evidence of looks, and the
// states of alerts.
func ReportIncident(ctx context.Context, env *ops.Env, req ReportRequest) (*IncidentReport, error) {
	i, err := FindIncident(env, req.Word, req.Newest)
	if err != nil {
		return nil, err
	}
	r := &IncidentReport{Incident: i, At: env.Now(), Severity: i.Start.Severity, Alert: i.Start.Alert}
	if i.Problem != "" {
		r.Problems = append(r.Problems, "the record ends here, since "+i.Problem)
	}
	if err := r.readRecords(ctx, env, req.Runs); err != nil {
		return nil, err
	}
	r.addFigures()
	r.addMoments()
	r.addTimeline()
	if req.Plan == nil {
		return r, nil
	}
	if r.Plan, err = r.findPlan(req.Plan); err != nil {
		r.Problems = append(r.Problems, "the runbook cannot be read: "+err.Error())
	}
	r.answerQuestions()
	r.chooseTasks()
	return r, nil
}

func (r *IncidentReport) findPlan(find PlanFinder) (ReportPlan, error) {
	cause := ""
	if len(r.Causes) > 0 {
		cause = r.Causes[0].ID
	}
	return find(r.Incident.Start.Runbook, r.Alert, cause)
}

// checkQuestion refuses a question that the report of an incident does not have.
func checkQuestion(ctx context.Context, env *ops.Env, req IncidentNote) error {
	question, plan := req.Question, ReportPlan{}
	r, err := ReportIncident(ctx, env, ReportRequest{Word: req.Word, Runs: req.Runs})
	if err == nil {
		plan, err = r.findPlan(req.Plan)
	}
	if err != nil {
		return fault.New(fault.KindOf(err), "the questions of the runbook cannot be read: %w", err).WithHint("a note without --answer needs no runbook")
	}
	var ids []string
	for _, q := range plan.Questions {
		ids = append(ids, q.ID)
	}
	if slices.Contains(ids, question) {
		return nil
	}
	return fault.Usage("%s asks no question %q", cmp.Or(plan.Runbook, "the runbook"), question).WithHint("%s", fault.Meant(question, ids))
}

// addCheck keeps the newest verdict of each check.
func addCheck(all *[]SeenCheck, c history.Check, e history.Event) {
	seen := SeenCheck{c, e.At, e.Verb}
	i := slices.IndexFunc(*all, func(have SeenCheck) bool { return have.ID == c.ID && have.Title == c.Title })
	if i < 0 {
		*all = append(*all, seen)
		return
	}
	(*all)[i] = seen
}

// addCause keeps of each cause what was surest: after the incident it is not seen any more.
func (r *IncidentReport) addCause(c history.Cause, at time.Time, verb string) {
	seen := SeenCause{c, at, verb}
	i := slices.IndexFunc(r.Causes, func(have SeenCause) bool { return have.ID == c.ID })
	switch {
	case i < 0:
		r.Causes = append(r.Causes, seen)
	case compareCauses(seen, r.Causes[i]) < 0:
		r.Causes[i] = seen
	}
}

func compareCauses(a, b SeenCause) int {
	return cmp.Or(cmp.Compare(sureness(a.Confidence), sureness(b.Confidence)), cmp.Compare(b.Score, a.Score))
}

// sureness orders confidences, the surest first.
func sureness(c sandbox.Confidence) int {
	i := slices.Index([]sandbox.Confidence{sandbox.Certain, sandbox.Probable, sandbox.Hint}, c)
	if i < 0 {
		return len(c) + 3
	}
	return i
}

// addMoments finds when each milestone was reached. What a person has said wins.
func (r *IncidentReport) addMoments() {
	for _, m := range incident.Milestones() {
		moment := r.saidMoment(m)
		if moment.At.IsZero() {
			moment = r.foundMoment(m)
		}
		moment.Milestone = m
		r.Moments = append(r.Moments, moment)
	}
}

func (r *IncidentReport) saidMoment(m incident.Milestone) Moment {
	for _, e := range slices.Backward(r.Incident.Events) {
		if e.Milestone == m && e.Text != "" { // an acknowledgement without a text is no note
			return Moment{At: e.At, Source: "a note: " + e.Text, Who: e.Actor.Who}
		}
	}
	return Moment{}
}

// Moment is that of a milestone.
func (r *IncidentReport) Moment(m incident.Milestone) Moment {
	i := slices.IndexFunc(r.Moments, func(have Moment) bool { return have.Milestone == m })
	if i < 0 {
		return Moment{Milestone: m}
	}
	return r.Moments[i]
}

func (r *IncidentReport) foundMoment(m incident.Milestone) Moment {
	i := r.Incident
	switch m {
	case incident.MilestoneDetected:
		if d := i.Start.DetectedAt; !d.IsZero() {
			return Moment{At: d, Source: i.Start.DetectedBy}
		}
		if i.StartedAt.IsZero() {
			return Moment{Source: "the start of the record cannot be read"}
		}
		return Moment{At: i.StartedAt, Source: "the incident was started; nothing before it is on record", Who: i.StartedBy.Who}
	case incident.MilestoneAcknowledged:
		return r.firstSaid(incident.Acknowledged, "it was acknowledged", "nobody has acknowledged it")
	case incident.MilestoneMitigated:
		return r.mitigated()
	case incident.MilestoneVerified:
		return r.verified(r.Moment(incident.MilestoneMitigated).At)
	case incident.MilestoneClosed:
		if i.State == incident.StateEnded {
			return r.firstSaid(incident.Closed, "it was closed as "+string(i.As), "")
		}
	}
	return Moment{Source: "it is not closed"}
}

func (r *IncidentReport) firstSaid(kind incident.Kind, source, missing string) Moment {
	for _, e := range r.Incident.Events {
		if e.Kind == kind {
			return Moment{At: e.At, Source: source, Who: e.Actor.Who}
		}
	}
	return Moment{Source: missing}
}

func (r *IncidentReport) verified(since time.Time) Moment {
	for _, e := range r.events {
		if e.Met && !e.At.Before(since) {
			return Moment{At: e.At, Source: "sbx verify: all targets are met", Who: e.Who}
		}
	}
	return Moment{Source: "no sbx verify has met all targets since"}
}

// mitigated is when the last sandbox was seen to end. After an act that failed, or whose outcome is not
// known, that is not known either.
func (r *IncidentReport) mitigated() Moment {
	if r.Incident.StartedAt.IsZero() {
		return Moment{Source: "what was done is not listed"}
	}
	if len(r.Acts) == 0 {
		return Moment{Source: "nothing was terminated or repaired"}
	}
	var last cleanup.Act
	for _, a := range r.Acts {
		if a.Ends() && a.Outcome == sandbox.OutcomeVerified && a.SettledAt.After(last.SettledAt) {
			last = a
		}
	}
	if last.SettledAt.IsZero() {
		return Moment{Source: "no termination was verified"}
	}
	return Moment{At: last.SettledAt, Source: fmt.Sprintf("the last verified end, of %s (run %s)", last.Ref, last.Run), Who: last.Actor.Who}
}
