package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// Plan is what the run would end at most.
func (r *CleanupResult) Plan() cleanup.Plan { return r.Survey.Plan(r.RunID) }

// Question asks a person to allow the plan: by the count when it is more than a few or
// something runs, else by y. There is none where nothing would end or a guard refuses it.
func (r *CleanupResult) Question() (q Question, askable bool) {
	n, running := len(r.Survey.Selected), false
	if n == 0 || cleanup.Refusal(r.Guards) != nil {
		return Question{}, false
	}
	for _, j := range r.Survey.Selected {
		running = running || j.Sandbox.State == sandbox.StateRunning
	}
	if n > safety.MaxUnasked || running {
		word := strconv.Itoa(n)
		return Question{Word: word, Prompt: fmt.Sprintf("type %s to end them, anything else to do nothing: ", word)}, true
	}
	return Question{Word: "y", Prompt: fmt.Sprintf("end these %d? type y: ", n)}, true
}

// WriteCleanupPlan writes the file of a plan whole or not at all.
func WriteCleanupPlan(path string, plan cleanup.Plan) error {
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return err
	}
	if err := hostfile.Replace(path, append(text, '\n'), 0o600); err != nil {
		return fault.New(fault.KindUnknown, "the plan cannot be written: %w", err).WithHint("is the folder there, may this user write in it, and is the disk full?")
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
		return plan, fault.Usage("--apply: %s is no plan: %w", path, err).WithHint("`sbx cleanup ... --out PLAN` writes one")
	}
	return plan, nil
}
