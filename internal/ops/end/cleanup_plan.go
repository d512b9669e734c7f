package end

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/jsontext"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/safety"
)

// Plan is what the run would end at most.
func (r *CleanupResult) Plan() cleanup.Plan { return r.Survey.Plan(r.RunID) }

// AllowLine is the command line that was typed with the flags that its guards ask for; "" = no guard
// refuses the plan, or no flag allows it.
func (r *CleanupResult) AllowLine() string {
	flags, all := safety.OverrideFlags(r.Guards)
	if !all || len(flags) == 0 || len(r.run.req.Line) == 0 {
		return ""
	}
	return safety.RetryLine(r.run.req.Line, flags)
}

// countsByProvider says how many of the plan are at which provider, where there are several.
func (r *CleanupResult) countsByProvider() string {
	counts := map[string]int{}
	for _, j := range r.Survey.Selected {
		counts[j.Sandbox.Provider]++
	}
	return FormatShares(counts)
}

// FormatShares writes how a total is shared: " (e2b 17, novita 6)", "" for one share.
func FormatShares(counts map[string]int) string {
	if len(counts) < 2 {
		return ""
	}
	return " (" + ops.JoinCounts(counts) + ")"
}

// WriteCleanupPlan writes the file of a plan whole or not at all.
func WriteCleanupPlan(path string, plan cleanup.Plan) error {
	if err := hostfile.CheckOutput(path); err != nil {
		return err
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetIndent("", "  ")
	to.SetEscapeHTML(false) // a person reads the condition of the plan
	if err := to.Encode(plan); err != nil {
		return err
	}
	if err := hostfile.Replace(path, text.Bytes(), 0o600); err != nil {
		return fault.New(fault.KindUnknown, "the plan cannot be written: %w", err).WithHint("check that the folder exists, that you may write to it, and that the disk is not full")
	}
	return nil
}

// maxPlanFile bounds a plan, in bytes: some hundred thousand sandboxes.
const maxPlanFile = 128 << 20

// ReadCleanupPlan reads the file of a plan, and refuses what is no plan, key by key.
func ReadCleanupPlan(ctx context.Context, path string) (cleanup.Plan, error) {
	var plan cleanup.Plan
	text, err := hostfile.File{Flag: "--apply", Path: path, Limit: maxPlanFile, Hint: "`sbx cleanup ... --out PLAN` writes one"}.Read(ctx)
	if err != nil {
		return plan, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&plan); err != nil {
		return plan, fault.Usage("--apply: %s is not a plan: %s", path, jsontext.Describe(err)).WithHint("`sbx cleanup ... --out PLAN` writes one")
	}
	return plan, nil
}

// PlanListed plans the end of what the plan of a request names, or of what an interrupted run has left. Nothing is
// looked at before the act, which judges each of them again.
func PlanListed(ctx context.Context, env *ops.Env, req CleanupRequest, watch ops.Observer) (*ops.Act, error) {
	if err := env.MayChange(); err != nil {
		return nil, err
	}
	r, err := newCleanupRun(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	what, items, err := r.listedItems()
	if err != nil {
		return nil, err
	}
	a := &ops.Act{Verb: "terminate", At: env.Now(), Targets: plannedItems(items), Line: req.Line, Named: req.Production, Execute: r.execute(req)}
	if len(items) == 0 && req.Plan == nil {
		return a, nil
	}
	for _, word := range safety.Answers(safety.AskCount, len(items), nil) {
		q := ops.AskEnd(word, "")
		q.Refusal = fault.New(fault.KindRefused, "%s: needs confirmation", what).WithHint("repeat with --yes")
		a.Asks = append(a.Asks, q)
	}
	watch.Note(what)
	return a, nil
}

// listedItems are what is left to end of a plan or a run, and a text about it.
func (r *cleanupRun) listedItems() (what string, items []runs.Item, err error) {
	if plan := r.req.Plan; plan != nil {
		return fmt.Sprintf("the plan of %s names %d sandboxes", plan.MadeAt.Format("15:04:05 UTC"), len(plan.Items)), plan.Items, r.checkPlan()
	}
	disk, err := r.env.Journals()
	if err != nil {
		return "", nil, err
	}
	h, _, err := runs.ScanRun(disk, r.req.Resume)
	if err == nil {
		err = mayResume(h)
	}
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%s has %d of %d sandboxes left", h.RunID, len(h.Open()), len(h.Begin.Plan.Items)), h.Open(), nil
}

// checkPlan refuses the plan of a file that is too old.
func (r *cleanupRun) checkPlan() error {
	if !r.req.PlanFromFile {
		return nil
	}
	return r.req.Plan.Check(r.env.Now(), r.req.MaxPlanAge)
}
