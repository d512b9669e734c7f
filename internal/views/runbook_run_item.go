package views

import (
	"time"

	"sbx/internal/output"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
)

// RunbookRunKeys are the keys of a run of a runbook beside its steps.
type RunbookRunKeys struct {
	RunID      *string          `json:"run_id"`     // The id of the run; null for a dry run, which is not on record.
	Runbook    string           `json:"runbook"`    // The runbook.
	Title      string           `json:"title"`      // Its title.
	Procedure  *string          `json:"procedure"`  // The procedure that was chosen; null for none.
	Ref        *string          `json:"ref"`        // The sandbox or task that was named; null for none.
	Providers  []string         `json:"providers"`  // The profiles that it is about.
	DryRun     bool             `json:"dry_run"`    // True: nothing was asked and nothing was changed.
	Who        string           `json:"who"`        // Who began it.
	Host       string           `json:"host"`       // The host on which it runs.
	StartedAt  *time.Time       `json:"started_at"` // When it began.
	EndedAt    *time.Time       `json:"ended_at"`   // When it ended, or when it was left waiting or interrupted; null while it runs.
	Resumed    []ResumptionItem `json:"resumed"`    // When somebody went on with it.
	State      string           `json:"state"`      // running, waiting (for an answer), interrupted, done or failed.
	Verdict    sandbox.Verdict  `json:"verdict"`    // Whether every act has had its effect and every check of the verification holds.
	Causes     []NamedCauseItem `json:"causes"`     // The causes that the diagnosis names, the likeliest first.
	Escalation []CallItem       `json:"escalation"` // Whom to call, and whether now.
}

// RunStepItem is one step of a run.
type RunStepItem struct {
	ID      string `json:"id" table:""`      // Its id.
	Section string `json:"section" table:""` // diagnosis, `cause THEORY`, `procedure ID` or verification.
	State   string `json:"state" table:""`   // pending, running, done, failed, skipped or not_selected.
	// Of its condition, or whether it could read or do everything; null where it has none, or was not done.
	Verdict     *sandbox.Verdict `json:"verdict" table:""`
	TookSeconds *float64         `json:"took_seconds" table:""`     // How long it took, with the time that people took for answers; null where it was not done.
	Reason      *string          `json:"reason" table:""`           // Why it failed, was skipped, waits or is not selected; null where the state says all.
	Number      *string          `json:"number" table:",wide"`      // Its number, as `runbook show` has it; null where an earlier version has recorded it.
	Word        *string          `json:"word" table:",wide"`        // What its whole step is called; null likewise.
	Title       string           `json:"title" table:",wide"`       // Its title.
	Kind        string           `json:"kind" table:",wide"`        // What it does: collect, check, manual, confirm, act or wait_until.
	ETASeconds  float64          `json:"eta_seconds" table:",wide"` // How long it takes a person.
	Condition   *string          `json:"condition" table:",wide"`   // The condition that it checks or waits for; null for none.
	BeganAt     *time.Time       `json:"began_at" table:",wide"`    // When it began; null where it did not.
	EndedAt     *time.Time       `json:"ended_at" table:",wide"`    // When it ended; null where it did not.
	DependsOn   *string          `json:"depends_on" table:",wide"`  // Of a dry run: the step whose result decides about this one; null for none.
	Answers     []StepAnswerItem `json:"answers"`                   // What collectors and people answered.
	Evidence    []string         `json:"evidence"`                  // What was compared; of a manual step what is to be done.
	Act         *StepActItem     `json:"act"`                       // What it did; null for a step that does not act, or did not come to its plan.
}

// ResumptionItem is when somebody went on with a run.
type ResumptionItem struct {
	At   *time.Time `json:"at"`   // When.
	Who  string     `json:"who"`  // Who.
	Host string     `json:"host"` // On which host.
}

// StepAnswerItem is one answer.
type StepAnswerItem struct {
	Question string `json:"question"` // The question.
	Answer   string `json:"answer"`   // The answer, or why there is none.
	Known    bool   `json:"known"`    // False: it is not known.
	By       string `json:"by"`       // The collector, or who answered.
}

// StepActItem is what an acting step was about to do, and what came of it.
type StepActItem struct {
	Action   string           `json:"action"`   // The verb: terminate, cleanup, reconcile or stop.
	Command  string           `json:"command"`  // The line that a person types for it.
	Gate     string           `json:"gate"`     // What had to be answered: yes, count or name.
	Allowed  *string          `json:"allowed"`  // What allowed it; null where nothing has.
	RunID    *string          `json:"run_id"`   // The operation's own record, for `sbx cleanup show`; null for none.
	Targets  []TargetOfAct    `json:"targets"`  // What it is about.
	Kept     []TargetOfAct    `json:"kept"`     // What stays, and why.
	BeganAt  *time.Time       `json:"began_at"` // When it was begun; null where it was not.
	EndedAt  *time.Time       `json:"ended_at"` // When its outcome was known; null where it is not.
	Outcomes []OutcomeOfAct   `json:"outcomes"` // What became of each target.
	Error    *string          `json:"error"`    // What went wrong; null for nothing.
	Kind     *string          `json:"kind"`     // The kind of that error; null for none.
	Expect   *string          `json:"expect"`   // The condition that proves its effect; null for none.
	Effect   *sandbox.Verdict `json:"effect"`   // Whether that was seen to hold in time; null where nobody looked.
}

// TargetOfAct is one target of an act.
type TargetOfAct struct {
	Ref    string `json:"ref"`    // A sandbox; of stop a task, of an emergency cleanup a profile.
	Reason string `json:"reason"` // Why it is chosen, or why it stays.
}

// OutcomeOfAct is what became of one target.
type OutcomeOfAct struct {
	Ref     string          `json:"ref"`     // The target.
	Outcome sandbox.Outcome `json:"outcome"` // What became of it.
	Reason  *string         `json:"reason"`  // Why; null where the outcome says everything.
}

// NamedCauseItem is a cause that the diagnosis of a run names.
type NamedCauseItem struct {
	ID         string             `json:"id"`         // Its id.
	Title      string             `json:"title"`      // Its title.
	Confidence sandbox.Confidence `json:"confidence"` // How sure it is; only certain and probable select the steps of a cause.
	Score      float64            `json:"score"`      // From 0 to 1: how much of what is known of it was seen.
	Selected   bool               `json:"selected"`   // True: its steps are done in this run.
	Refs       []string           `json:"refs"`       // The sandboxes with this cause.
	Evidence   []EvidenceItem     `json:"evidence"`   // What it was seen by.
	WhyNot     *string            `json:"why_not"`    // What speaks against it; null for nothing.
	See        *string            `json:"see"`        // The runbook about it; null for none but this.
}

// CallItem is somebody to call.
type CallItem struct {
	To        string          `json:"to"`        // The contact, by its id.
	Name      string          `json:"name"`      // The contact's name.
	Channel   *string         `json:"channel"`   // Where to reach them; null where the runbook does not say.
	Alert     *string         `json:"alert"`     // The alert that decides; null for a condition of the runbook.
	Condition string          `json:"condition"` // The condition.
	Now       sandbox.Verdict `json:"now"`       // Whether to call now.
	Text      *string         `json:"text"`      // What to say; null where the runbook says nothing.
	Evidence  []string        `json:"evidence"`  // What was compared.
}

// RunbookRunItem is one run in the list.
type RunbookRunItem struct {
	RunID     string          `json:"run_id" table:""`         // Its id.
	Runbook   string          `json:"runbook" table:""`        // The runbook.
	State     string          `json:"state" table:""`          // running, waiting, interrupted, done or failed.
	Verdict   sandbox.Verdict `json:"verdict" table:""`        // Whether every act has had its effect and every check of the verification holds.
	StartedAt *time.Time      `json:"started_at" table:""`     // When it began.
	Done      int             `json:"done" table:""`           // How many of its steps are over.
	Steps     int             `json:"steps" table:""`          // How many steps it has, without those that are not selected.
	EndedAt   *time.Time      `json:"ended_at" table:",wide"`  // When it ended, or was left; null while it runs.
	Who       string          `json:"who" table:",wide"`       // Who began it.
	Host      string          `json:"host" table:",wide"`      // On which host.
	Procedure *string         `json:"procedure" table:",wide"` // The procedure that was chosen; null for none.
	About     *string         `json:"about" table:",wide"`     // The sandbox or task that was named; null for none.
	Error     *string         `json:"error" table:",wide"`     // What went wrong; null for nothing.
}

func runStepItem(s engine.Step) RunStepItem {
	item := RunStepItem{
		ID: s.ID, Number: orNil(s.Number), Word: orNil(s.Word), Section: s.Section, Title: s.Title, Kind: string(s.Kind), State: string(s.State), Verdict: orNil(s.Verdict), Reason: orNil(s.Reason),
		Condition: orNil(s.Condition), ETASeconds: output.Seconds(s.ETA), TookSeconds: secondsOrNil(s.Took, !s.EndedAt.IsZero()),
		BeganAt: output.Time(s.BeganAt), EndedAt: output.Time(s.EndedAt), DependsOn: orNil(s.DependsOn), Answers: []StepAnswerItem{}, Evidence: s.Evidence, Act: stepActItem(s.Act),
	}
	for _, a := range s.Answers {
		item.Answers = append(item.Answers, StepAnswerItem{a.Question, a.Answer, a.Known, a.By})
	}
	return item
}

func stepActItem(a *engine.Act) *StepActItem {
	if a == nil {
		return nil
	}
	item := &StepActItem{
		Action: a.Action, Command: a.Line, Gate: a.Gate, Allowed: orNil(a.Allowed), RunID: orNil(a.RunID), Targets: targetsOfAct(a.Targets), Kept: targetsOfAct(a.Kept),
		BeganAt: output.Time(a.IntentAt), EndedAt: output.Time(a.EndedAt), Error: orNil(a.Error), Kind: orNil(string(a.Kind)), Expect: orNil(a.Expect), Effect: orNil(a.Effect),
	}
	for _, o := range a.Outcomes {
		item.Outcomes = append(item.Outcomes, OutcomeOfAct{o.Ref, o.Outcome, orNil(o.Reason)})
	}
	return item
}

func targetsOfAct(targets []engine.Target) (all []TargetOfAct) {
	for _, t := range targets {
		all = append(all, TargetOfAct{t.Ref, t.Reason})
	}
	return all
}

func runbookRunKeys(r *engine.Run) RunbookRunKeys {
	keys := RunbookRunKeys{
		Runbook: r.Runbook, Title: r.Title, Procedure: orNil(r.Procedure), Ref: orNil(r.Word), Providers: r.Providers, DryRun: r.DryRun,
		Who: r.Actor.Who, Host: r.Actor.Host, StartedAt: output.Time(r.StartedAt), EndedAt: output.Time(r.EndedAt), State: string(r.State), Verdict: r.Verdict,
	}
	if !r.DryRun {
		keys.RunID = orNil(r.ID)
	}
	for _, one := range r.Resumed {
		keys.Resumed = append(keys.Resumed, ResumptionItem{output.Time(one.At), one.Actor.Who, one.Actor.Host})
	}
	for _, c := range r.Causes {
		keys.Causes = append(keys.Causes, NamedCauseItem{
			ID: c.ID, Title: c.Title, Confidence: c.Confidence, Score: c.Score, Selected: c.Selected, Refs: c.Refs, Evidence: EvidenceList(c.Evidence),
			WhyNot: orNil(c.WhyNot), See: orNil(c.See),
		})
	}
	for _, c := range r.Calls {
		keys.Escalation = append(keys.Escalation, CallItem{
			To: c.To, Name: c.Name, Channel: orNil(c.Channel), Alert: orNil(c.Alert), Condition: c.When, Now: c.Verdict, Text: orNil(c.Text), Evidence: c.Evidence,
		})
	}
	return keys
}

func runbookRunItem(r engine.Run) RunbookRunItem {
	chosen := len(r.Steps) - r.Count(engine.NotSelected)
	return RunbookRunItem{
		RunID: r.ID, Runbook: r.Runbook, State: string(r.State), Verdict: r.Verdict, StartedAt: output.Time(r.StartedAt),
		Done: chosen - r.Count(engine.Pending) - r.Count(engine.Running), Steps: chosen, EndedAt: output.Time(r.EndedAt), Who: r.Actor.Who, Host: r.Actor.Host,
		Procedure: orNil(r.Procedure), About: orNil(r.Word), Error: orNil(r.Error),
	}
}
