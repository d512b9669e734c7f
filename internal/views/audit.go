package views

import (
	"fmt"
	"strings"
	"time"

	"sbx/internal/ops/recall"
	"sbx/internal/output"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// ActItem is one request to terminate, delete or extend a sandbox, or one repair of a record.
type ActItem struct {
	At        time.Time        `json:"at" table:""`                   // When it was requested.
	Actor     string           `json:"actor" table:""`                // The user who requested it.
	Host      string           `json:"host" table:",wide"`            // The host on which they did.
	Verb      string           `json:"verb" table:""`                 // The verb: terminate, cleanup, reconcile, task, stop, drill, sweep (a supervisor that had died), or extend.
	Action    string           `json:"action" table:",wide"`          // terminate, delete, extend, or what reconcile did to a record: mark_terminated, adopt.
	Ref       string           `json:"ref" table:""`                  // PROFILE/ID.
	Name      string           `json:"name" table:",wide"`            // Its name, if it had one.
	TaskID    string           `json:"task_id" table:"TASK,wide"`     // Its task, if known.
	Cause     *sandbox.Cause   `json:"cause" table:",wide"`           // What was wrong with it by the judgement before; null where no cause is known.
	Outcome   *sandbox.Outcome `json:"outcome" table:",whole"`        // The outcome; null: no journal knows it, since the run was interrupted.
	Reason    string           `json:"reason" table:""`               // Why it was requested.
	RunID     string           `json:"run_id" table:"RUN,wide,whole"` // The run.
	Detail    string           `json:"detail"`                        // What is said of the outcome.
	Layer     string           `json:"layer"`                         // The layer of defence, for a run from cron.
	SettledAt *time.Time       `json:"settled_at"`                    // When the outcome was known.
	PID       int              `json:"pid"`                           // The process.
	Version   string           `json:"version"`                       // The version of sbx.
}

// ActColumns are the columns of an ActItem.
func ActColumns() []output.Column[runs.Act] {
	type column = output.Column[runs.Act]
	return output.Columns(actItem,
		column{Name: "verb", Text: verbText},
		column{Name: "outcome", Text: outcomeText, Tone: outcomeTone},
		column{Name: "reason", Text: func(a runs.Act) string { return joinKnown("; ", a.Reason, a.Detail) }},
	)
}

func actItem(a runs.Act) ActItem {
	return ActItem{
		At: a.At, Actor: a.Actor.Who, Host: a.Actor.Host, Verb: a.Verb, Action: a.Action, Ref: a.Ref.String(), Name: a.Name, TaskID: a.TaskID,
		Cause: orNil(a.Cause), Outcome: orNil(a.Outcome), Reason: a.Reason, RunID: a.Run, Detail: a.Detail, Layer: a.Layer, SettledAt: output.Time(a.SettledAt),
		PID: a.Actor.PID, Version: a.Actor.Version,
	}
}

// verbText names the action too, where it is not the usual one.
func verbText(a runs.Act) string {
	if a.Action == runs.ActTerminate || a.Action == a.Verb {
		return a.Verb
	}
	return a.Verb + " (" + strings.ReplaceAll(a.Action, "_", " ") + ")"
}

func outcomeText(a runs.Act) string {
	if a.Outcome == "" {
		return "unknown"
	}
	return string(a.Outcome)
}

func outcomeTone(a runs.Act) output.Tone {
	if a.Outcome == "" || isUnfinished(a.Outcome) {
		return output.Bad
	}
	return output.Plain
}

// ShowAudit lists acts, and says of which runs they are not known.
func ShowAudit(p *output.Printer, schema string, r *recall.AuditResult, req recall.AuditRequest) error {
	empty := "nothing was terminated, deleted, extended or repaired"
	if req.Chooses() {
		empty = "no act matches"
	}
	if !req.Since.IsZero() {
		empty += " since " + req.Since.UTC().Format(time.RFC3339)
	}
	list, err := output.NewList(p, output.ListSpec[runs.Act]{
		Schema: schema, Columns: ActColumns(),
		Empty: empty,
	})
	if err != nil {
		return err
	}
	for _, a := range r.Acts {
		if err := list.Add(a); err != nil {
			return list.CloseAs(err)
		}
	}
	if r.Truncated {
		list.Truncated()
	}
	for _, run := range r.Unreported {
		list.Incomplete()
		p.Warn(fmt.Sprintf(
			"%s of %s on %s (%s) has not reported what it did: that is in the journal of its host", run.ID, run.Who, run.Host,
			joinKnown(", ", run.Verb, fmt.Sprintf("%d selected", run.Selected)),
		))
	}
	for _, err := range r.Errors {
		list.Fail(err)
	}
	return list.Close()
}
