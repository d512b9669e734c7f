package views

import (
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/snapshot"
)

// RunbookTestItem is a recorded incident, judged again.
type RunbookTestItem struct {
	Incident string       `json:"incident" table:""`      // Its name: that of its file.
	Verdict  string       `json:"verdict" table:""`       // same, changed, accepted (its expectation was rewritten), or unreadable.
	Message  *string      `json:"message" table:""`       // The differences in words, or why it cannot be read; null for none.
	File     string       `json:"file" table:",wide"`     // Its file.
	At       *time.Time   `json:"at" table:",wide"`       // When it was recorded; null where it cannot be read.
	Changes  []ChangeItem `json:"changes" table:",wide"`  // What is concluded differently.
	Settings []ChangeItem `json:"settings" table:",wide"` // The thresholds that are not those in force then.
}

// ChangeItem is one difference between then and now.
type ChangeItem struct {
	Kind string `json:"kind"` // What differs: verdict, listed, stuck, suspected, unjudged, plan, cause, flag, alert, check, runbook or setting.
	// The id of the flag, cause, alert, check, setting, or part of a runbook, or the sandbox whose cause differs; null where there is one of its kind.
	ID      *string  `json:"id"`
	Then    *string  `json:"then"`    // The count, verdict, confidence or value then; null for none.
	Now     *string  `json:"now"`     // The same now; null for none.
	Gone    []string `json:"gone"`    // The sandboxes that were in it then and are not now.
	New     []string `json:"new"`     // The sandboxes that are in it now and were not then; of a setting, the providers that it is about.
	Message string   `json:"message"` // The difference in words.
}

// RunbookTestColumns are those of a RunbookTestItem.
func RunbookTestColumns() []output.Column[RunbookTestItem] {
	type row = RunbookTestItem
	return output.Columns(func(r row) row { return r }, output.Column[row]{Name: "verdict", Tone: func(r row) output.Tone { return wordTone(r.Verdict) }})
}

// The verdicts of a recorded incident.
const (
	testSame       = "same"
	testChanged    = "changed"
	testAccepted   = "accepted"
	testUnreadable = "unreadable"
)

// ShowRunbookTests lists recorded incidents with what would be different today. Accepted are those
// whose expectation was rewritten, by their file.
func ShowRunbookTests(p *output.Printer, schema string, tests []runbook.Test, accepted map[string]bool) error {
	list, err := output.NewList(p, output.ListSpec[RunbookTestItem]{
		Schema: schema, Columns: RunbookTestColumns(), Human: testPage,
	})
	if err != nil {
		return err
	}
	var changed []string
	for _, t := range tests {
		row := testItem(t, accepted[t.File])
		switch {
		case t.Err != nil:
			_ = list.AddFailed(row, t.Err) // Close gives the error of stdout
			continue
		case row.Verdict == testChanged:
			changed = append(changed, t.Name)
		}
		_ = list.Add(row)
	}
	if len(changed) == 0 {
		return list.Close()
	}
	verdict := fault.New(fault.KindFound, "%d of %d recorded incidents would be judged differently: %s", len(changed), len(tests), strings.Join(changed, ", ")).
		WithHint("--update accepts the differences in the files of --dir")
	list.Fail(verdict)
	return list.CloseAs(verdict)
}

func testItem(t runbook.Test, accepted bool) RunbookTestItem {
	row := RunbookTestItem{Incident: t.Name, File: t.File, Verdict: testSame, Changes: changeItems(t.Changes), Settings: changeItems(t.Settings)}
	switch {
	case t.Err != nil:
		row.Verdict, row.Message = testUnreadable, new(t.Err.Error())
		return row
	case accepted:
		row.Verdict = testAccepted
	case len(t.Changes) > 0:
		row.Verdict = testChanged
	}
	row.At = output.Time(t.Snapshot.At)
	if row.Verdict != testSame {
		row.Message = new(strings.Join(row.messages(), "; "))
	}
	return row
}

// messages are the sentences of its changes.
func (r RunbookTestItem) messages() []string {
	var all []string
	for _, c := range slices.Concat(r.Changes, r.Settings) {
		all = append(all, c.Message)
	}
	return all
}

func changeItems(changes []snapshot.Change) []ChangeItem {
	items := make([]ChangeItem, len(changes))
	for i, c := range changes {
		items[i] = ChangeItem{string(c.Kind), orNil(c.ID), orNil(c.Then), orNil(c.Now), c.Gone, c.New, c.String()}
	}
	return items
}

// testPage names each incident, and below it what is different, with the thresholds that are.
func testPage(s *output.Sheet, rows []RunbookTestItem) {
	for _, r := range rows {
		s.Section(r.Incident + ": " + r.Verdict)
		if r.Verdict == testSame {
			continue
		}
		for _, text := range r.messages() {
			s.Text(text)
		}
	}
}
