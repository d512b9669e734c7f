package views

import (
	"fmt"
	"strings"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/ops"
	"sbx/internal/output"
)

// ActColumns are those of `sbx audit`.
func ActColumns() []output.Column[cleanup.Act] {
	type row = cleanup.Act
	return []output.Column[row]{
		{Name: "at", Value: func(a row) any { return output.Time(a.At) }},
		{Name: "actor", Value: func(a row) any { return a.Actor.Who }},
		{Name: "host", Level: output.Wide, Value: func(a row) any { return a.Actor.Host }},
		{Name: "verb", Value: func(a row) any { return a.Verb }, Text: verbText},
		{Name: "action", Level: output.Wide, Value: func(a row) any { return a.Action }},
		{Name: "ref", Value: func(a row) any { return a.Ref.String() }},
		{Name: "name", Level: output.Wide, Value: func(a row) any { return a.Name }},
		{Name: "task_id", Head: "TASK", Level: output.Wide, Value: func(a row) any { return a.TaskID }},
		{Name: "cause", Level: output.Wide, Value: func(a row) any { return TextOrNil(string(a.Cause)) }},
		{Name: "outcome", Value: outcomeValue, Text: outcomeText, Tone: outcomeTone},
		{Name: "reason", Value: func(a row) any { return a.Reason }, Text: func(a row) string { return joinKnown("; ", a.Reason, a.Detail) }},
		{Name: "run_id", Head: "RUN", Level: output.Wide, Whole: true, Value: func(a row) any { return a.Run }},
		{Name: "detail", Level: output.Extra, Value: func(a row) any { return a.Detail }},
		{Name: "layer", Level: output.Extra, Value: func(a row) any { return a.Layer }},
		{Name: "settled_at", Level: output.Extra, Value: func(a row) any { return output.Time(a.SettledAt) }},
		{Name: "pid", Level: output.Extra, Value: func(a row) any { return a.Actor.PID }},
		{Name: "version", Level: output.Extra, Value: func(a row) any { return a.Actor.Version }},
	}
}

// verbText names the action too, where it is not the usual one.
func verbText(a cleanup.Act) string {
	if a.Action == cleanup.ActTerminate {
		return a.Verb
	}
	return a.Verb + " (" + strings.ReplaceAll(a.Action, "_", " ") + ")"
}

func outcomeValue(a cleanup.Act) any {
	if a.Outcome == "" {
		return nil
	}
	return a.Outcome
}

func outcomeText(a cleanup.Act) string {
	if a.Outcome == "" {
		return "unknown"
	}
	return string(a.Outcome)
}

func outcomeTone(a cleanup.Act) output.Tone {
	if a.Outcome == "" || left(a.Outcome) {
		return output.Bad
	}
	return output.Plain
}

// ShowAudit lists acts, and says of which runs they are not known.
func ShowAudit(p *output.Printer, schema string, r *ops.AuditResult, req ops.AuditRequest) error {
	empty := "nothing was terminated, deleted or repaired"
	if req.Chooses() {
		empty = "no act matches"
	}
	if !req.Since.IsZero() {
		empty += " since " + req.Since.UTC().Format(time.RFC3339)
	}
	list, err := output.NewList(p, output.ListSpec[cleanup.Act]{
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
		p.Warn(fmt.Sprintf("%s of %s on %s (%s) has not reported what it did: that is in the journal of its host", run.ID, run.Who, run.Host, joinKnown(", ", run.Verb, fmt.Sprintf("%d selected", run.Selected))))
	}
	for _, err := range r.Errors {
		list.Fail(err)
	}
	return list.Close()
}
