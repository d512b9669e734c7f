package commands

import (
	"context"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"

	"github.com/spf13/cobra"
)

// cleanupCommand is one `sbx cleanup`.
type cleanupCommand struct {
	d   *Deps
	p   *output.Printer
	o   *cleanupOptions
	cmd *cobra.Command
}

// runOnce looks, and acts where it may. The result is nil where nothing was looked at.
func (c *cleanupCommand) runOnce(ctx context.Context) (*ops.CleanupResult, error) {
	req, spelled, err := c.o.readRequest(c.cmd, c.d)
	if err != nil {
		return nil, err
	}
	switch {
	case c.o.apply != "":
		plan, err := ops.ReadCleanupPlan(ctx, c.d.Path(c.o.apply))
		if err != nil {
			return nil, err
		}
		req.Plan, req.PlanFromFile = &plan, true
	case !c.o.yes && c.o.resume == "" && !c.o.emergency && !c.o.providerSide:
		return nil, c.showPlan(ctx, req, spelled)
	}
	return c.runCleanup(ctx, req)
}

// runCleanup ends what the request chooses, and shows what became of each.
func (c *cleanupCommand) runCleanup(ctx context.Context, req ops.CleanupRequest) (*ops.CleanupResult, error) {
	spec := output.ListSpec[sandbox.Ending]{Schema: cleanupSchema, Columns: views.EndingColumns()}
	if len(c.p.Columns) == 0 {
		spec.Line = views.BulkEndingLine
	}
	list, err := output.NewList(c.p, spec)
	if err != nil {
		return nil, err
	}
	result, err := ops.Cleanup(ctx, c.d.Env, req, c.d.newObserver(c.p, showEndings(list, false)))
	if err != nil {
		return result, err
	}
	return result, views.FinishCleanup(list, result)
}

// showPlan shows the plan. A terminal may allow it by an answer.
func (c *cleanupCommand) showPlan(ctx context.Context, req ops.CleanupRequest, spelled bool) error {
	if err := c.p.Format.Refuse("cleanup without --yes", output.RowFormats()...); err != nil {
		return err
	}
	watch := c.d.newObserver(c.p, nil)
	result, err := ops.PlanCleanup(ctx, c.d.Env, req, watch)
	if err != nil {
		return err
	}
	if c.o.explain != "" {
		return views.ShowCleanupExplanation(c.p, cleanupSchema, result, c.o.explain)
	}
	plan := result.Plan()
	if c.o.out != "" {
		if err := ops.WriteCleanupPlan(c.d.Path(c.o.out), plan); err != nil {
			return err
		}
	}
	question, askable := result.Question()
	asks := askable && c.d.isAttended() && c.p.Format.Human() && c.o.out == "" && spelled
	err = views.ShowCleanupPlan(c.p, cleanupSchema, result, c.o.detailed, c.d.Now().Location())
	if warn := result.WriteDryTextfile(ctx, fault.ExitCode(err)); warn != nil {
		c.p.Warn(warn.Error())
	}
	if c.o.out == "" && !c.d.isAttended() && ctx.Err() == nil {
		c.p.Warn("nothing was done; --yes acts") // also with -q: a crontab line without --yes does nothing
	}
	if !asks || ctx.Err() != nil {
		return err
	}
	allowed, askErr := watch.Confirm(ctx, question)
	if askErr != nil {
		return askErr
	}
	if !allowed {
		c.p.Note("nothing was done")
		return err
	}
	req.RunID, req.Plan, req.Yes = result.RunID, &plan, true
	_, err = c.runCleanup(ctx, req)
	return err
}
