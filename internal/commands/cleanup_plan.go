package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

// showPlan prints what would be done; nothing is.
func (c *cleanupCommand) showPlan(r *ops.CleanupResult) error {
	selected, kept := []views.PlannedItem{}, []views.KeptItem{}
	for _, j := range r.Survey.Selected {
		selected = append(selected, views.PlannedOf(j))
	}
	for _, j := range r.Survey.Kept {
		kept = append(kept, views.KeptOf(j))
	}
	errs := r.Survey.Errs()
	verdict := r.Verdict
	if verdict == nil && c.o.detailed && len(selected) > 0 {
		verdict = fault.New(fault.KindFound, "%d sandboxes would end", len(selected)).WithHint("repeat with --yes to end them")
	}
	return c.p.ShowAs(output.Document{
		Schema: cleanupSchema,
		Fields: output.Fields{{Key: "plan", Value: output.Fields{
			{Key: "run_id", Value: r.RunID},
			{Key: "cutoff", Value: output.Time(r.Survey.Cutoff())},
			{Key: "selected", Value: selected},
			{Key: "kept", Value: kept},
			{Key: "unjudged", Value: r.Survey.Unjudged()},
			{Key: "guards", Value: r.Guards},
			{Key: "unowned", Value: r.Survey.Unowned()},
		}}, {Key: "complete", Value: len(errs) == 0}},
		Human: func(s *output.Sheet) { views.CleanupPlanPage(s, r, selected, kept, c.d.Now().Location()) },
	}, verdict, errs...)
}

// explain shows what each check makes of one sandbox.
func (c *cleanupCommand) explain(r *ops.CleanupResult) error {
	j, err := r.Find(c.o.explain)
	if err != nil {
		return err
	}
	ref := j.Sandbox.Ref()
	says := "would stay: " + string(j.Ground)
	if j.Selected() {
		says = "would end"
	}
	return c.p.Show(output.Document{
		Schema: cleanupSchema,
		Fields: output.Fields{{Key: "explain", Value: output.Fields{
			{Key: "ref", Value: ref},
			{Key: "selected", Value: j.Selected()},
			{Key: "ground", Value: j.Ground},
			{Key: "reason", Value: j.Reason},
			{Key: "diagnosis", Value: views.Diagnosis(j.Verdict)},
			{Key: "checks", Value: j.Trail},
			{Key: "evidence", Value: views.EvidenceList(j.Evidence)},
		}}},
		Human: func(s *output.Sheet) {
			s.Text(fmt.Sprintf("%s %s: %s\n", ref, says, j.Reason))
			rows := make([][]any, len(j.Trail))
			for i, t := range j.Trail {
				rows[i] = []any{t.Check, t.Says, t.Reason}
			}
			s.Table([]string{"check", "says", "why"}, rows)
		},
	}, r.Survey.Errs()...)
}

// writePlan writes the file whole or not at all.
func writePlan(path string, plan cleanup.Plan) error {
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".sbx-plan-*")
	if err != nil {
		return fault.New(fault.KindUnknown, "the plan cannot be written: %w", err).WithHint("is the folder there, and may this user write in it?")
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // it is gone where the rename worked
	_, err = tmp.Write(append(text, '\n'))
	for _, step := range []func() error{tmp.Sync, tmp.Close, func() error { return os.Rename(tmp.Name(), path) }} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return fault.New(fault.KindUnknown, "the plan cannot be written: %w", err).WithHint("is the disk full?")
	}
	return nil
}

// maxPlan bounds a plan, in bytes: some hundred thousand sandboxes.
const maxPlan = 128 << 20

// readPlan refuses what is no plan, key by key.
func readPlan(ctx context.Context, path string) (cleanup.Plan, error) {
	var plan cleanup.Plan
	text, err := hostfile.File{Flag: "--apply", Path: path, Limit: maxPlan, Hint: "`sbx cleanup ... --out PLAN` writes one"}.Read(ctx)
	if err != nil {
		return plan, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&plan); err != nil {
		return plan, fault.Usage("--apply: %s is no plan: %w", path, err).WithHint("`sbx cleanup ... --out PLAN` writes one")
	}
	return plan, nil
}
