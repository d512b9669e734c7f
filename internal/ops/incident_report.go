package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/incident"
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

// ReportRequest says what is reported.
type ReportRequest struct {
	Word string // the incident; "" = the open one, else the newest one
	Plan PlanFinder
}

// Moment is when an incident reached a milestone, and how that is known.
type Moment struct {
	Milestone incident.Milestone
	At        time.Time // zero = not known
	Source    string    // where it is zero: why
	Who       string
}

// SeenCause is a cause as a diagnosis ranked it, with the time of that.
type SeenCause struct {
	incident.Cause

	At   time.Time
	Verb string
}

// SeenCheck is a flag or a target, with the time at which it was seen last.
type SeenCheck struct {
	incident.Check

	At   time.Time
	Verb string
}

// SeenFigure is a figure of all sandboxes before the first act, and as it was last seen.
type SeenFigure struct {
	Name          string
	Before, After *float64 // nil = not known
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
	Severity    string // "" = not known
	Alert       string // "" = not known
	Moments     []Moment
	Causes      []SeenCause
	Flags       []SeenCheck
	Figures     []SeenFigure
	Acts        []cleanup.Act // oldest first
	Checks      []SeenCheck
	Escalations []incident.Event
	Steps       []incident.Step
	Answers     []ReportAnswer
	Tasks       []ReportTask
	Problems    []string // what is missing, and why
}

// ReportIncident puts together what the record of an incident and the journals tell.
func ReportIncident(ctx context.Context, env *Env, req ReportRequest) (*IncidentReport, error) {
	i, err := FindIncident(env, req.Word, true)
	if err != nil {
		return nil, err
	}
	r := &IncidentReport{Incident: i, At: env.Now(), Severity: i.Severity, Alert: i.Alert}
	if i.Problem != "" {
		r.Problems = append(r.Problems, "the record ends here, since "+i.Problem)
	}
	r.addEvents()
	r.checkSnapshots(ctx, env)
	if err := r.addActs(ctx, env); err != nil {
		return nil, err
	}
	r.addFigures()
	r.addMoments()
	if r.Plan, err = r.findPlan(req.Plan); err != nil {
		r.Problems = append(r.Problems, "the runbook cannot be read: "+err.Error())
	}
	r.answerQuestions()
	r.chooseTasks()
	return r, nil
}

func (r *IncidentReport) addEvents() {
	for _, e := range r.Incident.Events {
		r.addEvent(e)
	}
	r.rankCauses()
}

// PlanFinder reads the runbook of an incident; "" = the one for its alert or cause.
type PlanFinder func(runbook, alert, cause string) (ReportPlan, error)

func (r *IncidentReport) findPlan(find PlanFinder) (ReportPlan, error) {
	cause := ""
	if len(r.Causes) > 0 {
		cause = r.Causes[0].ID
	}
	return find(r.Incident.Start.Runbook, r.Alert, cause)
}

// checkQuestion refuses a question that the report of an incident does not have.
func checkQuestion(i *incident.Incident, question string, find PlanFinder) error {
	r := &IncidentReport{Incident: i, Alert: i.Alert}
	r.addEvents()
	plan, err := r.findPlan(find)
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

// checkSnapshots names those that were changed or removed.
func (r *IncidentReport) checkSnapshots(ctx context.Context, env *Env) {
	folder, err := env.incidentFolder()
	if err != nil {
		return
	}
	for _, s := range r.Incident.Snapshots() {
		if _, err := folder.ReadSnapshot(ctx, r.Incident.ID, s); err != nil {
			r.Problems = append(r.Problems, err.Error())
		}
	}
}

// addEvent takes what an event adds to the report; the timeline is the events themselves.
func (r *IncidentReport) addEvent(e incident.Event) {
	for _, f := range e.Flags {
		addCheck(&r.Flags, f, e)
	}
	for _, c := range e.Causes {
		r.addCause(c, e)
	}
	for _, c := range e.Checks {
		addCheck(&r.Checks, c, e)
	}
	if e.Kind == incident.Escalated {
		r.Escalations = append(r.Escalations, e)
	}
	if e.Step != nil {
		r.addStep(*e.Step)
	}
}

// addStep keeps the last state of each step of each run.
func (r *IncidentReport) addStep(s incident.Step) {
	i := slices.IndexFunc(r.Steps, func(have incident.Step) bool { return have.Run == s.Run && have.ID == s.ID })
	if i < 0 {
		r.Steps = append(r.Steps, s)
		return
	}
	r.Steps[i] = s
}

// addCheck keeps the newest verdict of each check.
func addCheck(all *[]SeenCheck, c incident.Check, e incident.Event) {
	seen := SeenCheck{c, e.At, e.Verb}
	i := slices.IndexFunc(*all, func(have SeenCheck) bool { return have.ID == c.ID && have.Title == c.Title })
	if i < 0 {
		*all = append(*all, seen)
		return
	}
	(*all)[i] = seen
}

// addCause keeps of each cause what was surest: after the incident it is not seen any more.
func (r *IncidentReport) addCause(c incident.Cause, e incident.Event) {
	seen := SeenCause{c, e.At, e.Verb}
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

func (r *IncidentReport) rankCauses() { slices.SortStableFunc(r.Causes, compareCauses) }

// addActs takes from the journals what was done from the beginning of the incident to its end.
func (r *IncidentReport) addActs(ctx context.Context, env *Env) error {
	since := r.Incident.StartedAt
	if since.IsZero() {
		r.Problems = append(r.Problems, "when it was started cannot be read, so what was done is not listed")
		return nil
	}
	if d := r.Incident.Start.DetectedAt; !d.IsZero() && d.Before(since) {
		since = d
	}
	found, err := Audit(ctx, env, AuditRequest{Since: since, Profiles: r.Incident.Start.Providers})
	if err != nil {
		return err
	}
	until := r.Incident.ClosedAt
	for _, a := range slices.Backward(found.Acts) {
		if until.IsZero() || !a.At.After(until) {
			r.Acts = append(r.Acts, a)
		}
	}
	for _, err := range found.Errors {
		r.Problems = append(r.Problems, "an act may be missing: "+err.Error())
	}
	for _, run := range found.Unreported {
		r.Problems = append(r.Problems, fmt.Sprintf("an act may be missing: %s of %s on %s has not reported what it did", run.ID, run.Who, run.Host))
	}
	return nil
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
		return r.firstEvent(incident.Acknowledged, time.Time{}, "it was acknowledged", "nobody has acknowledged it")
	case incident.MilestoneMitigated:
		return r.mitigated()
	case incident.MilestoneVerified:
		since := r.Moment(incident.MilestoneMitigated).At
		return r.firstEvent(incident.Verified, since, "sbx verify: all targets are met", "no sbx verify has met all targets since")
	case incident.MilestoneClosed:
		if i.State == incident.StateEnded {
			return r.firstEvent(incident.Closed, time.Time{}, "it was closed as "+string(i.As), "")
		}
	}
	return Moment{Source: "it is not closed"}
}

func (r *IncidentReport) firstEvent(kind incident.Kind, since time.Time, source, missing string) Moment {
	for _, e := range r.Incident.Events {
		if e.Kind == kind && !e.At.Before(since) {
			return Moment{At: e.At, Source: source, Who: e.Actor.Who}
		}
	}
	return Moment{Source: missing}
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
