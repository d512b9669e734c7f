package commands

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/metrics"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

func newCleanup(d *Deps) *cobra.Command {
	var o cleanupOptions
	cmd := &cobra.Command{
		Use:     "cleanup",
		GroupID: groupAct,
		Short:   "End many sandboxes by rule, and verify that they ended",
		Long: "End many sandboxes by rule, and verify that they ended.\n\n" +
			"Without --yes it says of every sandbox why it would go or stay, and does nothing;\n" +
			"a terminal may then allow it by typing the count. Selectors narrow: all must hold.\n" +
			"Without any, the rule is --stuck, and acting needs --stuck spelled out.\n\n" +
			"A running sandbox goes only if it is old enough and shows no life: its output,\n" +
			"events and processor are looked at. What is not known keeps it: no age, no sign\n" +
			"either way, a provider whose list has a hole. Protected ones (sbx/keep, the\n" +
			"configuration) and those that are not yours stay (`sbx help labels`,\n" +
			"`sbx config own`). Over --max-delete or --max-fraction the whole run\n" +
			"is refused (exit 11), never cut to the first N.\n\n" +
			"Each sandbox is read again just before, written to the run's journal, asked once\n" +
			"and looked at until its end is seen.",
		Example: "sbx cleanup --older-than 10m\n" +
			"sbx cleanup --older-than 10m --yes\n" +
			"sbx cleanup --stuck --out plan.json\n" +
			"sbx cleanup --older-than 10m --explain local/k3v9x2mq7a",
		Args: usageArgs(noArgs, "selectors choose; `"+d.Process.Name()+" terminate REF` ends one by name"),
	}
	o.addFlags(cmd)
	cmd.AddCommand(newCleanupStatus(d), newCleanupRuns(d), newCleanupShow(d))
	doc := document{schema: cleanupSchema, shape: output.ShapeList, columns: output.Names(views.EndingColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		c := &cleanupCommand{d: d, p: p, o: &o, cmd: cmd}
		if o.every != "" {
			return c.repeatCleanups(ctx)
		}
		_, err := c.runOnce(ctx)
		return err
	})
}

func newCleanupStatus(d *Deps) *cobra.Command {
	var every string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether cleanup runs as often as it should",
		Long: "Say whether cleanup runs as often as it should, by the journals of this machine.\n\n" +
			"It is in order while every profile had a run of --stuck or --older-than 10m (or\n" +
			"less) within two periods that left nothing undone. A run that selects less, a dry\n" +
			"and a refused one are no success. Otherwise it exits 10; with -o nagios it is a\n" +
			"check for a monitor.",
		Example: "sbx cleanup status\nsbx cleanup status --expected-every 15m",
		Args:    usageArgs(noArgs, "`sbx cleanup runs` lists the runs"),
	}
	cmd.Flags().StringVar(&every, "expected-every", sandbox.FormatDuration(triage.DefaultThresholds().CleanupEvery), "how often it should run: a `DURATION`")
	doc := document{schema: "sbx.cleanup.status/v1", shape: output.ShapeItem, columns: output.Names(views.CleanupStatusColumns()), nagios: true}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		period, err := sandbox.ParseDuration(every)
		if err != nil {
			return fault.Usage("--expected-every: %w", err)
		}
		r, err := ops.CleanupStatus(ctx, d.Env, ops.CleanupStatusRequest{Every: period})
		if err != nil {
			return err
		}
		return views.ShowCleanupStatus(p, doc.schema, r)
	})
}

func newCleanupRuns(d *Deps) *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the bulk endings of this machine, the newest first",
		Long: "List the bulk endings of this machine, the newest first.\n\n" +
			"Every run that was allowed to act has a journal, also one that a guard refused.\n" +
			"A journal that was changed afterwards is said to be (exit 10).",
		Example: "sbx cleanup runs\nsbx cleanup runs -o json",
		Args:    usageArgs(noArgs, "`sbx cleanup show RUN` shows one"),
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N`; 0 = all")
	doc := document{schema: "sbx.cleanup.runs/v1", shape: output.ShapeList, columns: output.Names(views.RunColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		list, errs := d.Histories(ctx, ops.VerbCleanup, limit)
		return views.ShowRows(p, output.ListSpec[cleanup.History]{
			Schema: doc.schema, Columns: views.RunColumns(), Empty: "no run is recorded yet; `" + d.Process.Name() + " cleanup --yes` writes one",
		}, list, errs...)
	})
}

func newCleanupShow(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show one run that ended sandboxes: its rule, and what became of each",
		Long: "Show one run that ended sandboxes: its rule, who ran it, and what became of each\n" +
			"sandbox, with what was known of it before (-o json).\n\n" +
			"RUN is the run_id that cleanup, reconcile and terminate print, or a beginning of\n" +
			"it that only one run has; `last` is the newest bulk run. The endings of tasks and\n" +
			"drills have runs too, which `sbx inspect` names. Of a run of another host the\n" +
			"sums are known (store.url).",
		Example:           "sbx cleanup show last\nsbx cleanup show r-20261120120000000-k3v9x2",
		Args:              usageArgs(cobra.ExactArgs(1), "`sbx cleanup runs` lists them"),
		ValidArgsFunction: d.completeRuns,
	}
	doc := document{schema: "sbx.cleanup.show/v1", shape: output.ShapeList, columns: output.Names(views.RunOutcomeColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		h, err := d.FindRun(ctx, args[0])
		if err != nil {
			return err
		}
		return views.ShowRun(p, doc.schema, h)
	})
}

func (d *Deps) completeRuns(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return d.RunIDs(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

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

// repeatCleanups runs one cleanup after the other until it is interrupted, which is its normal
// end. A failed run is reported and does not end the loop.
func (c *cleanupCommand) repeatCleanups(ctx context.Context) error {
	req, _, err := c.o.readRequest(c.cmd, c.d)
	if err != nil {
		return err
	}
	if err := c.p.Format.Refuse("cleanup --every", output.Documents()...); err != nil {
		return err
	}
	shown, err := c.serveMetrics(ctx)
	if err != nil {
		return err
	}
	pace := time.NewTicker(req.Every)
	defer pace.Stop()
	for {
		began := time.Now()
		result, err := c.runOnce(ctx)
		if cause := unshownCause(ctx, err); cause != nil {
			return cause
		}
		if result == nil { // flags or configuration are wrong, so each run would fail
			return err
		}
		code := fault.ExitCode(err)
		shown.set(result.Figures(ctx, code, time.Since(began)).Set())
		c.p.Note(fmt.Sprintf("%s ended with exit code %d; the next one comes within %s", result.RunID, code, req.Every))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pace.C:
		}
	}
}

// board holds the figures of the last run for /metrics.
type board struct {
	mu  sync.Mutex
	now metrics.Set
}

func (b *board) set(s metrics.Set) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = s
}

func (b *board) get() metrics.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (c *cleanupCommand) serveMetrics(ctx context.Context) (*board, error) {
	shown := &board{}
	if c.o.listen == "" {
		return shown, nil
	}
	l, err := metrics.Listen(ctx, c.o.listen)
	if err != nil {
		return nil, err
	}
	c.p.Note("answering at http://" + l.Addr().String() + "/metrics")
	go func() {
		if err := metrics.Serve(ctx, l, shown.get); err != nil {
			c.p.Warn(err.Error())
		}
	}()
	return shown, nil
}
