package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/output"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// showPlan prints what would be done; nothing is.
func (r *cleanupRun) showPlan(p *output.Printer) error {
	selected, kept := []views.PlannedItem{}, []views.KeptItem{}
	for _, j := range r.survey.Selected {
		selected = append(selected, views.PlannedOf(j))
	}
	for _, j := range r.survey.Kept {
		kept = append(kept, views.KeptOf(j))
	}
	guards := r.survey.Guards(r.world)
	errs := r.survey.Errs()
	verdict := r.survey.Verdict(nil)
	if verdict == nil && r.o.detailed && len(selected) > 0 {
		verdict = fault.New(fault.KindFound, "%d sandboxes would end", len(selected)).WithHint("repeat with --yes to end them")
	}
	return p.ShowAs(output.Document{
		Schema: cleanupSchema,
		Fields: output.Fields{{Key: "plan", Value: output.Fields{
			{Key: "run_id", Value: r.id},
			{Key: "cutoff", Value: output.Time(r.survey.Cutoff())},
			{Key: "selected", Value: selected},
			{Key: "kept", Value: kept},
			{Key: "unjudged", Value: r.survey.Unjudged()},
			{Key: "guards", Value: guards},
			{Key: "unowned", Value: r.survey.Unowned()},
		}}, {Key: "complete", Value: len(errs) == 0}},
		Human: func(s *output.Sheet) { r.page(s, selected, kept, guards) },
	}, verdict, errs...)
}

func (r *cleanupRun) page(s *output.Sheet, selected []views.PlannedItem, kept []views.KeptItem, guards []safety.Guard) {
	s.Text("Nothing was done; this is the plan.\n")
	if at := r.survey.Cutoff(); !at.IsZero() {
		s.Text("Old enough is what came to be before " + views.TimeInBothZones(at, r.d.Now().Location()) + ".\n")
	}
	s.Section(fmt.Sprintf("Would end: %d", len(selected)))
	rows := make([][]any, len(selected))
	for i, e := range selected {
		rows[i] = []any{e.Ref, e.Reason}
	}
	s.Table([]string{"ref", "why"}, rows)
	s.Section(fmt.Sprintf("Would stay: %d%s", len(kept), views.KeptSums(kept)))
	rows = make([][]any, len(kept))
	for i, e := range kept {
		rows[i] = []any{e.Ref, e.Ground, e.Reason}
	}
	s.Table([]string{"ref", "ground", "why"}, rows)
	s.Section("Guards")
	rows = make([][]any, len(guards))
	for i, g := range guards {
		verdict := "ok"
		if !g.OK {
			verdict = "would refuse"
		}
		value, limit := g.Figures()
		rows[i] = []any{g.Name, limit, value, verdict}
	}
	s.Table([]string{"guard", "limit", "value", "verdict"}, rows)
	for _, text := range []string{r.unjudged(), r.unowned()} {
		if text != "" {
			s.Text("\n" + text + ".\n")
		}
	}
}

// unjudged says how many stay because nothing tells whether they work, and what would
// judge them; "" = none.
func (r *cleanupRun) unjudged() string {
	n := r.survey.Unjudged()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("not judged, and so kept: %d (no source shows whether they work); --ignore-activity, or `activity: age-only` in the profile, judges by age alone", n)
}

// unowned says how many stay because nobody owns them, and what to type; "" = none.
func (r *cleanupRun) unowned() string {
	what := "sandboxes that the rule would end"
	if r.rule.Selector.Stuck {
		what = "stuck sandboxes"
	}
	return r.d.UnownedText(r.survey.Unowned(), what)
}

// explain shows what each check makes of one sandbox.
func (r *cleanupRun) explain(p *output.Printer) error {
	j, err := r.find(r.o.explain)
	if err != nil {
		return err
	}
	ref := j.Sandbox.Ref()
	says := "would stay: " + string(j.Ground)
	if j.Selected() {
		says = "would end"
	}
	return p.Show(output.Document{
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
	}, r.survey.Errs()...)
}

// find looks a word up among everything that was judged.
func (r *cleanupRun) find(word string) (cleanup.Judgement, error) {
	ref, err := sandbox.ParseRef(word)
	if err != nil {
		return cleanup.Judgement{}, fault.Usage("--explain: %w", err)
	}
	var found []cleanup.Judgement
	for _, j := range slices.Concat(r.survey.Selected, r.survey.Kept) {
		s := j.Sandbox
		if s.Ref() == ref || ref.Bare() && (s.ID == ref.ID || s.Name == ref.ID || len(ref.ID) >= sandbox.MinPrefix && strings.HasPrefix(s.ID, ref.ID)) {
			found = append(found, j)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return cleanup.Judgement{}, fault.Usage("--explain: %q means %d sandboxes", word, len(found)).WithHint("write it as profile/id")
	case len(r.survey.Errs()) > 0:
		return cleanup.Judgement{}, r.survey.Verdict(nil)
	}
	return cleanup.Judgement{}, fault.New(fault.KindNotFound, "no sandbox is called %q", word).WithHint("`%s ls --all` shows what there is", r.d.Process.Name())
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

// applyPlan ends at most what a plan names, judged anew.
func (r *cleanupRun) applyPlan(ctx context.Context, p *output.Printer) error {
	plan, err := readPlan(ctx, r.d.Path(r.o.apply))
	if err != nil {
		return err
	}
	if err := plan.Check(r.d.Now(), r.planAge); err != nil {
		return err
	}
	if err := r.mayAct(ctx, p, fmt.Sprintf("the plan of %s names %d sandboxes", plan.MadeAt.Format("15:04:05 UTC"), len(plan.Items)), len(plan.Items)); err != nil {
		return err
	}
	r.rule = plan.Rule
	return r.within(ctx, p, plan)
}

// mayAct wants --yes, or the count typed on a terminal.
func (r *cleanupRun) mayAct(ctx context.Context, p *output.Printer, what string, n int) error {
	if r.o.yes {
		return nil
	}
	refusal := fault.New(fault.KindRefused, "%s, and nobody allowed it", what).WithHint("repeat with --yes")
	if !r.d.attended() {
		return refusal
	}
	p.Note(what)
	answer, err := r.d.ask(ctx, newAnswers(r.d), fmt.Sprintf("type %d to end them: ", n))
	if err != nil {
		return err
	}
	if answer != strconv.Itoa(n) {
		return refusal
	}
	return nil
}
