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
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/output"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// plannedItem is one sandbox of a plan: why it goes or stays, and how it fares.
type plannedItem struct {
	Ref        sandbox.Ref     `json:"ref"`
	Reason     string          `json:"reason"`
	Stuck      sandbox.Verdict `json:"stuck"`
	Cause      any             `json:"cause"`
	Confidence any             `json:"confidence"`
	Looked     bool            `json:"looked"`
}

// keptItem is one sandbox that stays, and on what ground.
type keptItem struct {
	Ref        sandbox.Ref     `json:"ref"`
	Reason     string          `json:"reason"`
	Ground     cleanup.Ground  `json:"ground"`
	Stuck      sandbox.Verdict `json:"stuck"`
	Cause      any             `json:"cause"`
	Confidence any             `json:"confidence"`
	Looked     bool            `json:"looked"`
}

func plannedOf(j cleanup.Judgement) plannedItem {
	v := j.Verdict
	return plannedItem{j.Sandbox.Ref(), j.Reason, v.Stuck, textOrNil(string(v.Cause)), confidenceOf(v), v.Looked}
}

func keptOf(j cleanup.Judgement) keptItem {
	i := plannedOf(j)
	return keptItem{i.Ref, i.Reason, j.Ground, i.Stuck, i.Cause, i.Confidence, i.Looked}
}

// showPlan prints what would be done; nothing is.
func (r *cleanupRun) showPlan(p *output.Printer) error {
	selected, kept := []plannedItem{}, []keptItem{}
	for _, j := range r.survey.Selected {
		selected = append(selected, plannedOf(j))
	}
	for _, j := range r.survey.Kept {
		kept = append(kept, keptOf(j))
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

func (r *cleanupRun) page(s *output.Sheet, selected []plannedItem, kept []keptItem, guards []safety.Guard) {
	s.Text("Nothing was done; this is the plan.\n")
	if at := r.survey.Cutoff(); !at.IsZero() {
		s.Text("Old enough is what came to be before " + inBothZones(at, r.d.now().Location()) + ".\n")
	}
	s.Section(fmt.Sprintf("Would end: %d", len(selected)))
	rows := make([][]any, len(selected))
	for i, e := range selected {
		rows[i] = []any{e.Ref, e.Reason}
	}
	s.Table([]string{"ref", "why"}, rows)
	s.Section(fmt.Sprintf("Would stay: %d%s", len(kept), grounds(kept)))
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
	return r.d.unownedText(r.survey.Unowned(), what)
}

// inBothZones writes a time in UTC, and in the zone of this machine where that is another.
func inBothZones(at time.Time, here *time.Location) string {
	text := at.UTC().Format("2006-01-02 15:04:05 UTC")
	if local := at.In(here); local.Format("15:04:05") != at.UTC().Format("15:04:05") {
		text += " (" + local.Format("15:04:05 MST") + " here)"
	}
	return text
}

// grounds sums why sandboxes stay: ": 3 protected, 5 not_selected".
func grounds(kept []keptItem) string {
	n := make(map[cleanup.Ground]int)
	var order []cleanup.Ground
	for _, k := range kept {
		if n[k.Ground] == 0 {
			order = append(order, k.Ground)
		}
		n[k.Ground]++
	}
	slices.Sort(order)
	parts := make([]string, len(order))
	for i, g := range order {
		parts[i] = fmt.Sprintf("%d %s", n[g], g)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
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
			{Key: "diagnosis", Value: diagnosisOf(j.Verdict)},
			{Key: "checks", Value: j.Trail},
			{Key: "evidence", Value: evidence(j.Evidence)},
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

// path is a file as the operator means it: from where the process stands.
func (d *Deps) path(name string) string {
	if filepath.IsAbs(name) || d.Process.Workdir == "" {
		return name
	}
	return filepath.Join(d.Process.Workdir, name)
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
	plan, err := readPlan(ctx, r.d.path(r.o.apply))
	if err != nil {
		return err
	}
	if err := plan.Check(r.d.now(), r.planAge); err != nil {
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
