package views

import (
	"fmt"

	"sbx/internal/agentlog"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// addDetails is what -v adds to the page: the record, every figure with its source, every check with its
// evidence, and every question with its answer.
func (i Inspection) addDetails(s *output.Sheet) {
	item := i.Item()
	item.Basis, item.Limits.Enforcement = Basis{}, EnforcementText(i.Limits.Enforcement)
	addKeys(s.Section("Record"), item.SandboxItem)
	addKeys(s.Section("Limits"), item.Limits)
	if i.Used != nil || i.Missing == nil {
		i.pageUsage(s)
	}
	if i.Missing == nil {
		i.pageHealth(s)
		i.pageTimeline(s)
	}
	if item.Exit != nil {
		item.Exit.Evidence = nil
		addKeys(s.Section("Exit"), *item.Exit)
		for _, e := range i.Exit.Evidence {
			s.Field("evidence", evidenceText(e))
		}
	}
	addSteps(s, i.Steps)
}

// addKeys has the keys of a document that are known, by the names that documents give them.
func addKeys(s *output.Sheet, document any) {
	for _, f := range output.FieldsOf(document) {
		if text := fmt.Sprint(f.Value); f.Value != nil && f.Value != false && text != "" && text != "[]" {
			s.Field(f.Key, f.Value)
		}
	}
}

// EnforcementText says what holds the limits of a sandbox.
func EnforcementText(e sandbox.Enforcement) string {
	switch {
	case e == "":
		return "not reported by the provider"
	case e == sandbox.EnforcementNone:
		return ops.WithDetail(string(e), "the memory limit is not enforced")
	case e.Hard():
		return ops.WithDetail(string(e), "hard: the kernel enforces the memory limit")
	}
	return ops.WithDetail(string(e), "soft: memory may pass the limit for a moment")
}

func (i Inspection) pageUsage(s *output.Sheet) {
	s.Section("Usage")
	if i.Used == nil {
		s.Text(UnknownReason(i.Seen.Usage.Err))
		return
	}
	u, last := i.Used.Item(), i.Used.Last
	u.Ref, u.Stuck, u.Cause, u.LikelyCause, u.Basis, u.Name, u.TaskID = "", "", nil, "", Basis{}, "", "" // those of the record
	addKeys(s, u)
	addKeys(s, struct {
		CPUSeconds          *float64
		MemoryPeakMB        *output.Mebibytes
		Tasks, TasksRefused *int64 // processes and threads
		Waiting             string
	}{last.CPUSeconds, output.MiB(last.MemoryPeakBytes), last.Tasks, last.TasksRefused, last.Waiting})
	if i.Seen.Usage.Err != nil {
		s.Field("incomplete", UnknownReason(i.Seen.Usage.Err))
	}
}

func (i Inspection) pageHealth(s *output.Sheet) {
	s.Section("Health")
	if i.Seen.Health.Err != nil {
		s.Text(UnknownReason(i.Seen.Health.Err))
		return
	}
	s.FieldTone("answers", i.Seen.Health.Got.Verdict, i.HealthTone()).Field("condition", i.conditionOf())
	for _, e := range i.Seen.Health.Got.Evidence {
		s.Field(e.What, ops.WithDetail(e.Value, e.Source))
	}
}

// timelineRows is how many events a page shows, the newest ones.
const timelineRows = 100

// pageTimeline has the events as EventsPage has them.
func (i Inspection) pageTimeline(s *output.Sheet) {
	s.Section("Timeline")
	switch {
	case i.Seen.Events.Err != nil:
		s.Text(UnknownReason(i.Seen.Events.Err))
	case len(i.Seen.Events.Got) == 0:
		s.Text("no events")
	}
	events := make([]agentlog.Event, len(i.Seen.Events.Got))
	for n, e := range i.Seen.Events.Got {
		events[n] = agentlog.Event{At: e.At, Type: e.Event, What: e.Detail}
	}
	var rows [][]any
	_ = (&agentlog.Session{Events: events}).Each(nil, true, func(e *agentlog.Event, beats *agentlog.Beats) error {
		r := EventRow{Event: e, beats: beats}
		rows = append(rows, []any{r.clock(), r.typeText(), r.item().What})
		return nil
	})
	if left := len(rows) - timelineRows; left > 0 {
		rows = rows[left:]
		s.Text(fmt.Sprintf("%s earlier lines are left out; `%s events %s` has all", thousands(left), i.Program, ShellWord(i.Ref().String())))
	}
	s.Table([]string{"at", "event", "detail"}, rows)
}
