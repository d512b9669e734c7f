package views

import (
	"errors"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// RunColumns are those of recorded runs.
func RunColumns() []output.Column[cleanup.History] {
	type row = cleanup.History
	return []output.Column[row]{
		{Name: "run_id", Head: "RUN", Value: func(h row) any { return h.RunID }},
		{Name: "started_at", Value: func(h row) any { return output.Time(h.StartedAt) }},
		{Name: "ended_at", Level: output.Wide, Value: func(h row) any { return output.Time(h.EndedAt) }},
		{Name: "host", Level: output.Wide, Value: func(h row) any { return h.Begin.Host }},
		{Name: "selected", Value: func(h row) any { return h.Counts().Selected }},
		{Name: "counts", Value: func(h row) any { return h.Counts() }, Text: func(h row) string { return ops.CountsText(h.Counts()) }},
		{Name: "exit_code", Head: "EXIT", Value: func(h row) any {
			if h.End == nil {
				return nil
			}
			return h.End.ExitCode
		}},
		{Name: "resumable", Value: func(h row) any { return h.Resumable() }},
	}
}

// RunOutcome is one item of a run.
type RunOutcome struct {
	item   cleanup.Item
	result cleanup.Result
	before *cleanup.Intent
}

// RunOutcomeColumns are those of what one run did.
func RunOutcomeColumns() []output.Column[RunOutcome] {
	type row = RunOutcome
	return []output.Column[row]{
		{Name: "ref", Value: func(r row) any { return r.item.Ref.String() }},
		{Name: "outcome", Value: func(r row) any { return r.result.Outcome }},
		{Name: "reason", Value: func(r row) any { return r.result.Reason }},
		{Name: "duration_seconds", Head: "TOOK", Value: func(r row) any { return output.Seconds(time.Duration(r.result.Seconds * float64(time.Second))) }},
		{Name: "selected_because", Head: "WHY", Value: func(r row) any { return r.item.Reason }},
		{Name: "evidence", Level: output.Extra, Value: func(r row) any { return EvidenceList(r.result.Evidence) }},
		{Name: "before", Level: output.Extra, Value: func(r row) any { return r.before }},
	}
}

// ShowRun shows one recorded run.
func ShowRun(p *output.Printer, schema string, h cleanup.History) error {
	list, err := output.NewList(p, output.ListSpec[RunOutcome]{Schema: schema, Columns: RunOutcomeColumns(), Empty: "this run selected nothing"})
	if err != nil {
		return err
	}
	list.Set("run_id", h.RunID)
	list.Set("started_at", output.Time(h.StartedAt))
	list.Set("ended_at", output.Time(h.EndedAt))
	list.Set("actor", h.Begin.Actor)
	list.Set("rule", h.Begin.Plan.Rule)
	list.Set("guards", h.Begin.Guards)
	list.Set("profiles", h.Begin.Profiles)
	list.Set("kept", h.Begin.Kept)
	list.Set("counts", h.Counts())
	list.Set("verb", h.Begin.Verb)
	list.Set("resumable", h.Begin.Verb == ops.VerbCleanup && h.Resumable())
	for _, i := range h.Begin.Plan.Items {
		row := RunOutcome{item: i, result: h.Results[i.Ref]}
		row.result.Outcome = h.Outcome(i.Ref)
		if before, ok := h.Intents[i.Ref]; ok {
			row.before = &before
		}
		if err := list.Add(row); err != nil {
			return err
		}
	}
	if h.Broken != "" {
		list.Fail(fault.New(fault.KindFound, "the journal of %s cannot be trusted: %s", h.RunID, h.Broken))
	}
	if h.Sums != nil {
		list.Incomplete()
		list.WhenEmpty("")
		p.Note("what became of each sandbox is in the journal of " + h.Begin.Host + ", where it ran; together: " + ops.CountsText(h.Counts()))
	}
	list.Succeeded()
	return list.Close()
}

// CleanupStatusColumns are those of `sbx cleanup status`.
func CleanupStatusColumns() []output.Column[cron.Status] {
	type row = cron.Status
	return []output.Column[row]{
		{Name: "last_run", Value: func(s row) any { return output.Time(s.LastRun) }},
		{Name: "last_success", Value: func(s row) any { return output.Time(s.LastSuccess) }},
		{Name: "expected_every", Value: func(s row) any { return sandbox.FormatDuration(s.Every) }},
		{Name: "expected_every_seconds", Level: output.Extra, Value: func(s row) any { return output.Seconds(s.Every) }},
		{Name: "verdict", Value: func(s row) any { return s.Verdict }},
		{Name: "message", Value: func(s row) any { return s.Message }},
	}
}

// ShowRows prints a list whose items are all there.
func ShowRows[T any](p *output.Printer, spec output.ListSpec[T], rows []T, errs ...error) error {
	list, err := output.NewList(p, spec)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := list.Add(row); err != nil {
			break // Close gives the error of stdout
		}
	}
	for _, err := range errs {
		list.Fail(err)
	}
	return list.Close()
}

func layerCheck(s cron.Status) ops.Check { return ops.ToolCheck("", s.Verdict, "", "") }

// CronStatusColumns are those of `sbx cron check`.
func CronStatusColumns() []output.Column[cron.Status] {
	return []output.Column[cron.Status]{
		{Name: "layer", Value: func(s cron.Status) any { return string(s.Layer) }},
		{Name: "verdict", Value: func(s cron.Status) any { return s.Verdict }, Text: func(s cron.Status) string { return string(layerCheck(s).Status()) }, Tone: func(s cron.Status) output.Tone { return checkTone(layerCheck(s)) }},
		{Name: "expected_every", Value: func(s cron.Status) any { return sandbox.FormatDuration(s.Every) }},
		{Name: "last_run", Value: func(s cron.Status) any { return output.Time(s.LastRun) }},
		{Name: "last_success", Value: func(s cron.Status) any { return output.Time(s.LastSuccess) }},
		{Name: "message", Value: func(s cron.Status) any { return s.Message }},
		{Name: "unowned", Level: output.Extra, Value: func(s cron.Status) any { return s.Unowned }},
		{Name: "exit_code", Level: output.Wide, Value: func(s cron.Status) any {
			if s.LastExit == nil {
				return nil
			}
			return *s.LastExit
		}},
		{Name: "expected_every_seconds", Level: output.Extra, Value: func(s cron.Status) any { return output.Seconds(s.Every) }},
	}
}

// ShowCronCheck shows how each layer stands, in every format that a check has.
func ShowCronCheck(p *output.Printer, schema string, r *ops.CronCheckResult) error {
	if p.Format.Name() == output.Nagios {
		return ShowPlugin(p, r.Checks, nil)
	}
	list, err := output.NewList(p, output.ListSpec[cron.Status]{Schema: schema, Columns: CronStatusColumns()})
	if err != nil {
		return err
	}
	for i, s := range r.Statuses {
		if trouble := r.Checks[i].Err(); trouble != nil {
			_ = list.AddFailed(s, trouble) // Close gives the error of stdout
			continue
		}
		_ = list.Add(s) // Close gives the error of stdout
	}
	return list.CloseAs(ops.CheckVerdict(r.Checks))
}

// ShowCleanupStatus shows how cleanup stands.
func ShowCleanupStatus(p *output.Printer, schema string, r *ops.CleanupStatusResult) error {
	errs := r.Errors
	if p.Format.Name() == output.Nagios {
		return ShowPlugin(p, []ops.Check{r.Check}, errors.Join(errs...))
	}
	if r.Status.Verdict != sandbox.True {
		errs = append(errs, fault.New(fault.KindFound, "%s", r.Status.Message).WithHint("%s", r.Check.Hint))
	}
	return output.ShowItemAs(p, output.ItemSpec[cron.Status]{Schema: schema, Columns: CleanupStatusColumns()}, r.Status, errors.Join(errs...), errs...)
}
