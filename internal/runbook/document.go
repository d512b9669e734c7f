// Package runbook holds runbooks as data: the documents of the folder runbooks, what their steps
// may name, and what is wrong with them.
//
// A document is strict YAML. It names alerts, checks, causes, thresholds and verbs by their ids
// and never repeats what those say. The package prints nothing; its pages are in views.
package runbook

import (
	"time"
)

// Version and kind of the documents.
const (
	APIVersion = "sbx/v1"
	Kind       = "Runbook"
)

// Runbook is one procedure: what is wrong, what to look at, what to do, whether it helped, whom to
// call.
type Runbook struct {
	// The version of this form.
	APIVersion Word `key:"apiVersion,required" words:"sbx/v1"`
	// What the document is.
	Kind Word `key:"kind,required" words:"Runbook"`
	// What the runbook is called, who keeps it, and for which alerts it is.
	Metadata Metadata `key:"metadata,required"`
	// The procedure.
	Spec Spec `key:"spec,required"`

	// Origin is where the document was read.
	Origin Origin `key:"-"`

	source source
}

// Origin is where a document was read: its file, and whether sbx ships it.
type Origin struct {
	File    string
	Shipped bool
}

// Word is a text without blanks: an id or one of a list.
type Word string

// Condition is a text of the condition language.
type Condition string

// Date is a day, like 2026-11-23.
type Date time.Time

// Metadata is what a runbook is called and who keeps it.
type Metadata struct {
	// Its id, which is the name of its file too: small letters, digits and hyphens.
	ID Word `key:"id,required"`
	// Its title.
	Title string `key:"title,required"`
	// The team that keeps it.
	Owner string `key:"owner,required"`
	// Who has to agree to a change.
	Reviewers []string `key:"reviewers"`
	// The day of its last review.
	Updated Date `key:"updated,required"`
	// How long a review is good for.
	ReviewEvery time.Duration `key:"review_every,required"`
	// The alerts that lead here. No other runbook may name the same.
	Alerts []Word `key:"alerts"`
	// Alerts of another system that lead here.
	OtherAlerts []string `key:"other_alerts"`
	// How long the diagnosis takes a person: the sum of its steps.
	ETA time.Duration `key:"eta,required"`
}

// Spec is the procedure.
type Spec struct {
	// What it means that the alert fires.
	Meaning string `key:"meaning,required"`
	// Who notices, and what.
	Impact string `key:"impact,required"`
	// Values that conditions and texts may name as vars.NAME.
	Vars []Var `key:"vars"`
	// The diagnosis: what to look at, in this order. It changes nothing.
	Steps []Step `key:"steps,required"`
	// What to do for each cause that a diagnosis may name.
	Causes []Cause `key:"causes"`
	// What to do where no cause is proved, or whatever the cause.
	Procedures []Procedure `key:"procedures"`
	// What shows that it helped.
	Verification []Step `key:"verification,required"`
	// When to call somebody else.
	Escalation []Escalation `key:"escalation"`
	// Who can be called.
	Contacts []Contact `key:"contacts"`
	// What the report after the incident answers.
	Questions []Question `key:"questions"`
	// What to do after the incident.
	Actions []Task `key:"actions"`
	// Background that nobody needs in a hurry.
	Notes []Note `key:"notes"`
}

// Var is a value with a name.
type Var struct {
	// Its name, as in vars.NAME.
	ID Word `key:"id,required"`
	// Its value: a duration like 10m, a share like 5%, or a number.
	Default Word `key:"default,required"`
	// What it is.
	About string `key:"about,required"`
}

// Step is one step. Exactly one of collect, check, manual, confirm, act and wait_until says what
// kind it is.
type Step struct {
	// Its id, which no other step of the runbook has.
	ID Word `key:"id,required"`
	// What it is. A step of the investigation, and a check of one figure of verify, have a title already.
	Title string `key:"title"`
	// The step is left out unless this condition holds.
	When Condition `key:"when"`
	// Collectors that run at once.
	Collect []Word `key:"collect"`
	// A condition over what was collected before.
	Check Condition `key:"check"`
	// What a person does.
	Manual string `key:"manual"`
	// A question that a person answers with yes before the next step.
	Confirm string `key:"confirm"`
	// What sbx does.
	Act *Act `key:"act"`
	// A condition that is looked at again and again until it holds.
	WaitUntil Condition `key:"wait_until"`
	// What to know about the step, for people.
	Text string `key:"text"`
	// Of a check: how bad it is that the condition holds.
	Severity Word `key:"severity" words:"warning,critical"`
	// Of a manual step: a question whose answer is kept.
	Ask string `key:"ask"`
	// Command lines for a person to type.
	Commands []string `key:"commands"`
	// Of an act: the least that a person does before it: say yes, type the count, or type the name. The
	// number of sandboxes may demand more.
	Gate Word `key:"gate" words:"yes,count,name"`
	// Of an act: the condition that proves its effect, beside the verified end of each sandbox.
	Expect Condition `key:"expect"`
	// Of an act or wait_until: how long expect or the condition may take.
	Within time.Duration `key:"within"`
	// Of wait_until: the time between two looks.
	Every time.Duration `key:"every"`
	// How long it takes a person. A step of the investigation has it already; a check needs none.
	ETA time.Duration `key:"eta"`
	// The limit of what sbx does in it.
	Timeout time.Duration `key:"timeout"`
}

// Act is a verb of sbx that changes something.
type Act struct {
	// The verb.
	Action Word `key:"action,required" words:"terminate,cleanup,reconcile,stop"`
	// Of terminate and stop: those with this cause, those that are stuck, or those that a person names.
	Targets Word `key:"targets" words:"cause,stuck,named"`
	// Of cleanup: only stuck ones.
	Stuck bool `key:"stuck"`
	// Of cleanup: only older ones. A placeholder names a threshold.
	OlderThan string `key:"older_than"`
	// Of cleanup: failed ones too.
	IncludeFailed bool `key:"include_failed"`
	// Of cleanup: ones that must have been inactive for so long.
	IdleFor string `key:"idle_for"`
	// Of cleanup: only those for which this condition over one sandbox holds.
	Where Condition `key:"where"`
	// Of cleanup: act only if more than this share of the quota is used.
	IfUsageAbove string `key:"if_usage_above"`
	// Of cleanup: the provider's own cleanup of everything that is not critical.
	Emergency bool `key:"emergency"`
	// Of reconcile: where the records come from.
	Records Word `key:"records" words:"provider,store"`
}

// Cause is a branch: what to do where the diagnosis names this cause.
type Cause struct {
	// The id of the cause in a diagnosis.
	PossibleCause Word `key:"theory,required"`
	// What it means.
	Text string `key:"text"`
	// The runbook that is about this cause.
	See Word `key:"see"`
	// What to do now.
	Steps []Step `key:"steps,required"`
	// What to do so that it does not come again.
	FollowUp []Task `key:"follow_up"`
}

// Procedure is a list of steps with a title.
type Procedure struct {
	// Its id.
	ID Word `key:"id,required"`
	// Its title.
	Title string `key:"title,required"`
	// When to do it.
	Text string `key:"text"`
	// It is done in each run, after the causes, unless another procedure is chosen. Without it only where
	// it is chosen.
	Always bool `key:"always"`
	// The steps.
	Steps []Step `key:"steps,required"`
}

// Escalation says when to call whom: at an alert, or at a condition.
type Escalation struct {
	// The alert, which says for how long it has to hold.
	Alert Word `key:"alert"`
	// A condition instead of an alert.
	When Condition `key:"when"`
	// How long the condition has to hold.
	For time.Duration `key:"for"`
	// The contact.
	To Word `key:"to,required"`
	// What to say.
	Text string `key:"text"`
}

// Contact is somebody who can be called.
type Contact struct {
	// Its id.
	ID Word `key:"id,required"`
	// The level of the alerts that go there.
	Level Word `key:"level,required" words:"agents,infrastructure,vendor"`
	// The name.
	Name string `key:"name,required"`
	// Where to reach them.
	Channel string `key:"channel"`
	// What they are called for.
	About string `key:"about,required"`
}

// Question is what the report after the incident answers.
type Question struct {
	// Its id.
	ID Word `key:"id,required"`
	// The question.
	Ask string `key:"ask,required"`
	// The collectors whose results answer it; without any a person does.
	AnsweredBy []Word `key:"answered_by"`
}

// Task is something to do after the incident.
type Task struct {
	// What to do.
	Title string `key:"title,required"`
	// What it improves.
	Group Word `key:"group" words:"detection,code,docs"`
	// The command or page of sbx that does it already; without one a person does it.
	Where string `key:"where"`
}

// Note is background.
type Note struct {
	// Its title.
	Title string `key:"title,required"`
	// The text.
	Text string `key:"text,required"`
}

// StepKind is what a step does.
type StepKind string

// The closed list; kindNone is a step without or with several.
const (
	kindNone      StepKind = ""
	KindCollect   StepKind = "collect"
	KindCheck     StepKind = "check"
	KindManual    StepKind = "manual"
	KindConfirm   StepKind = "confirm"
	KindAct       StepKind = "act"
	KindWaitUntil StepKind = "wait_until"
)

// DefaultEvery is the time between two looks of a wait_until without every.
const DefaultEvery = 30 * time.Second

// StepKinds are all kinds, in the order of the fields of Step.
func StepKinds() []StepKind {
	return []StepKind{KindCollect, KindCheck, KindManual, KindConfirm, KindAct, KindWaitUntil}
}

// Kind is what the step does.
func (s Step) Kind() StepKind {
	if kinds := s.kinds(); len(kinds) == 1 {
		return kinds[0]
	}
	return kindNone
}

// kinds are those that the document gives the step.
func (s Step) kinds() []StepKind {
	given := []bool{s.Collect != nil, s.Check != "", s.Manual != "", s.Confirm != "", s.Act != nil, s.WaitUntil != ""}
	var kinds []StepKind
	for i, k := range StepKinds() {
		if given[i] {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// Time is the day at midnight, UTC.
func (d Date) Time() time.Time { return time.Time(d) }

// String is the day as a document writes it.
func (d Date) String() string { return d.Time().Format(time.DateOnly) }

// ReviewDue is the day from which the document is stale.
func (r *Runbook) ReviewDue() time.Time { return r.Metadata.Updated.Time().Add(r.Metadata.ReviewEvery) }

// Text is the document as it was read.
func (r *Runbook) Text() string { return r.source.text }

// PageName is the name of the page that is made from the document.
func (r *Runbook) PageName() string { return string(r.Metadata.ID) + ".md" }

// AlertNames are all alerts that lead to the runbook.
func (r *Runbook) AlertNames() []string {
	var names []string
	for _, a := range r.Metadata.Alerts {
		names = append(names, string(a))
	}
	return append(names, r.Metadata.OtherAlerts...)
}

// ETA is how long a list of steps takes a person.
func ETA(steps []Step) time.Duration {
	var sum time.Duration
	for _, s := range steps {
		sum += s.Duration()
	}
	return sum
}
