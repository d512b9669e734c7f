package views

import (
	"fmt"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/snapshot"
)

// RunbookTestColumns are those of `sbx runbook test`.
func RunbookTestColumns() []output.Column[Record] {
	return recordColumns("incident verdict message | file at changes settings")
}

// messagesOf are the sentences of changes.
func messagesOf(changes any) []string {
	var all []string
	list, _ := changes.([]any)
	for _, one := range list {
		fields, _ := one.(output.Fields)
		for _, f := range fields {
			if text, is := f.Value.(string); is && f.Key == "message" {
				all = append(all, text)
			}
		}
	}
	return all
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
	list, err := output.NewList(p, output.ListSpec[Record]{
		Schema: schema, Columns: RunbookTestColumns(), Human: testPage,
	})
	if err != nil {
		return err
	}
	var changed []string
	for _, t := range tests {
		row := testRecord(t, accepted[t.File])
		switch {
		case t.Err != nil:
			_ = list.AddFailed(row, t.Err) // Close gives the error of stdout
			continue
		case row["verdict"] == testChanged:
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

func testRecord(t runbook.Test, accepted bool) Record {
	row := Record{
		"incident": t.Name, "file": t.File, "verdict": testSame, "at": nil, "message": nil, "changes": changeFields(t.Changes), "settings": changeFields(t.Settings),
	}
	switch {
	case t.Err != nil:
		row["verdict"] = testUnreadable
		row["message"] = t.Err.Error()
		return row
	case accepted:
		row["verdict"] = testAccepted
	case len(t.Changes) > 0:
		row["verdict"] = testChanged
	}
	row["at"] = output.Time(t.Snapshot.At)
	if row["verdict"] != testSame {
		row["message"] = strings.Join(append(messagesOf(row["changes"]), messagesOf(row["settings"])...), "; ")
	}
	return row
}

func changeFields(changes []snapshot.Change) []any {
	all := []any{}
	for _, c := range changes {
		all = append(all, output.Fields{
			{Key: "kind", Value: string(c.Kind)},
			{Key: "id", Value: TextOrNil(c.ID)},
			{Key: "then", Value: TextOrNil(c.Then)},
			{Key: "now", Value: TextOrNil(c.Now)},
			{Key: "gone", Value: textList(c.Gone)},
			{Key: "new", Value: textList(c.New)},
			{Key: "message", Value: c.String()},
		})
	}
	return all
}

// testPage names each incident, and below it what is different, with the thresholds that are.
func testPage(s *output.Sheet, rows []Record) {
	for _, r := range rows {
		s.Section(fmt.Sprintf("%s: %s", r["incident"], r["verdict"]))
		if r["verdict"] == testSame {
			continue
		}
		for _, text := range append(messagesOf(r["changes"]), messagesOf(r["settings"])...) {
			s.Text(text)
		}
	}
}
