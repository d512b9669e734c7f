package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	opscron "sbx/internal/ops/cron"
	"sbx/internal/ops/end"
	"sbx/internal/output"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

func newCleanup(d *Deps) *cobra.Command {
	var o cleanupOptions
	cmd := &cobra.Command{
		Use:     "cleanup",
		GroupID: groupAct,
		Short:   "Terminate many sandboxes by rule, and verify the ends",
		Long: "Terminate many sandboxes by rule, and verify the ends.\n\n" +
			"Without --yes it prints the plan (which sandboxes it would terminate, and why) and\n" +
			"changes nothing; on a terminal you may confirm by typing the count. Without a terminal\n" +
			"`cleanup: {unattended: true}` in the configuration, or " + config.EnvUnattended + "=1 in a crontab, acts as\n" +
			"--yes does. A sandbox must match all selectors. Without any the rule is --stuck; to\n" +
			"act, write --stuck.\n\n" +
			"A running sandbox is terminated only if it is old enough and inactive: sbx looks at\n" +
			"its output, events and processor. If sbx cannot tell (no age, no source, incomplete\n" +
			"listing), it keeps the sandbox and counts it. Protected ones (sbx/keep, the\n" +
			"configuration) and those that are not yours stay (`sbx help labels`,\n" +
			"`sbx config own`). Over --max-delete or --max-fraction the whole run\n" +
			"is refused (exit 11); it is never cut to the first N.\n\n" +
			"Each sandbox is read again just before the request, written to the run's journal,\n" +
			"asked to end once, and watched until the end is verified.",
		Example: "sbx cleanup --older-than 10m\n" +
			"sbx cleanup --older-than 10m --yes\n" +
			"sbx cleanup --stuck --out plan.json\n" +
			"sbx cleanup --older-than 10m --explain local/k3v9x2mq7a",
		Args: d.noWords("selectors choose; `" + d.Process.Name() + " terminate REF` ends one by name"),
	}
	o.addFlags(cmd)
	completeFlagFunc(cmd, "explain", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return d.refWords(cmd, nil, word, offerLiving)
	})
	completeFlagFunc(cmd, "resume", d.completeRuns)
	cmd.AddCommand(newCleanupStatus(d), newCleanupRuns(d), newCleanupShow(d))
	doc := document{schema: cleanupSchema, shape: output.ShapeList, columns: output.Names(views.EndingColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		req, ruleGiven, err := o.readRequest(cmd, d)
		if err != nil {
			return err
		}
		if req.Line = d.typedLine(p); !ruleGiven && len(req.Line) > 0 {
			req.Line = append(req.Line, "--stuck") // the rule where none is typed
		}
		c := &cleanupCommand{d: d, p: p, o: &o}
		if o.every != "" {
			return c.repeatCleanups(ctx, req, ruleGiven)
		}
		_, err = c.runOnce(ctx, req, ruleGiven)
		return err
	})
}

func newCleanupStatus(d *Deps) *cobra.Command {
	var every string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Check that cleanup runs as often as it should",
		Long: "Check by the journals of this machine that cleanup runs as often as it should.\n\n" +
			"It is fine while every profile had a run of --stuck or --older-than 10m (or\n" +
			"less) within two periods that left nothing undone. A run that selects less, a dry run\n" +
			"and a refused run do not count. Otherwise it exits 10, and 7 where no run is recorded:\n" +
			"it may run elsewhere. With -o nagios it is a monitoring plugin.",
		Example: "sbx cleanup status\nsbx cleanup status --expected-every 15m",
		Args:    d.noWords("`sbx cleanup runs` lists the runs"),
	}
	cmd.Flags().StringVar(&every, "expected-every", "", "how often it should run: a `DURATION` (default: thresholds.cleanup_every, "+
		sandbox.FormatDuration(triage.DefaultThresholds().CleanupEvery)+")")
	doc := document{schema: cleanupStatusSchema, shape: output.ShapeItem, columns: output.Names(views.CleanupStatusColumns()), nagios: true}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		period := d.Thresholds(sandbox.Sandbox{}).CleanupEvery
		if every != "" {
			var err error
			if period, err = sandbox.ParseDuration(every); err != nil {
				return fault.Usage("--expected-every: %w", err)
			}
		}
		return showCleanupStatus(ctx, d, p, period)
	})
}

const cleanupStatusSchema = "sbx.cleanup.status/v1"

func showCleanupStatus(ctx context.Context, d *Deps, p *output.Printer, every time.Duration) error {
	r, err := opscron.CleanupStatus(ctx, d.Env, opscron.CleanupStatusRequest{Every: every})
	if err != nil {
		return err
	}
	return views.ShowCleanupStatus(p, cleanupStatusSchema, r)
}

func newCleanupRuns(d *Deps) *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:        "runs",
		SuggestFor: []string{"list", "ls", "history"},
		Short:      "List the cleanup runs of this machine, newest first",
		Long: "List the cleanup runs of this machine, newest first.\n\n" +
			"Every run with --yes has a journal, also one that a guard refused. If a journal was\n" +
			"changed afterwards, the list says so (exit 10).",
		Example: "sbx cleanup runs\nsbx cleanup runs -o json",
		Args:    d.noWords("`sbx cleanup show RUN` shows one"),
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N`; 0 = all")
	doc := document{schema: "sbx.cleanup.runs/v1", shape: output.ShapeList, columns: output.Names(views.RunColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		list, errs := d.Runs().All(ctx, runs.VerbCleanup, limit)
		return views.ShowRows(p, output.ListSpec[runs.History]{
			Schema: doc.schema, Columns: views.RunColumns(), Empty: "no run is recorded yet; `" + d.Process.Name() + " cleanup --yes` writes one",
		}, list, errs...)
	})
}

func newCleanupShow(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [RUN]",
		Short: "Show one run: its rule, and the outcome of each sandbox",
		Long: "Show one run: its rule, who ran it, when, its guards, and the outcome of each\n" +
			"sandbox, with what was known before (-o json).\n\n" +
			"RUN is the run id that cleanup, reconcile and terminate print, or a unique prefix of\n" +
			"it; without one the newest bulk run is shown (`last`). Tasks and drills have runs too, which\n" +
			"`sbx inspect` names. For a run of another host only the totals are known\n" +
			"(store.url).",
		Example:           "sbx cleanup show\nsbx cleanup show r-20261120120000000-k3v9x2",
		Args:              usageArgs(atMostOneArg("RUN"), "`sbx cleanup runs` lists them"),
		ValidArgsFunction: d.completeRuns,
	}
	doc := document{schema: "sbx.cleanup.show/v1", shape: output.ShapeList, columns: output.Names(views.RunOutcomeColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		word := "last"
		if len(args) > 0 {
			word = args[0]
		}
		h, err := d.Runs().Find(ctx, word)
		if len(args) == 0 && fault.KindOf(err) == fault.KindNotFound {
			err = fault.New(fault.KindNotFound, "no run is recorded yet").WithHint("`%s cleanup --yes` writes one", d.Process.Name())
		}
		if err != nil {
			return err
		}
		return views.ShowRun(p, doc.schema, h, d.Process.Name())
	})
}

func (d *Deps) completeRuns(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return d.Runs().IDs(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// cleanupCommand is one `sbx cleanup`.
type cleanupCommand struct {
	d *Deps
	p *output.Printer
	o *cleanupOptions
}

// runOnce looks, and acts where it may. The result is nil where nothing was looked at. RuleGiven = the
// flags select (readRequest).
func (c *cleanupCommand) runOnce(ctx context.Context, req end.CleanupRequest, ruleGiven bool) (*end.CleanupResult, error) {
	req.Unattended = !c.d.isAttended()
	if c.o.apply != "" {
		plan, err := end.ReadCleanupPlan(ctx, c.d.Path(c.o.apply))
		if err != nil {
			return nil, err
		}
		req.Plan, req.PlanFromFile = &plan, true
	}
	switch {
	case c.o.yes || c.o.emergency || c.o.providerSide:
		return c.show(func(watch *observer) ops.ActResult {
			result, err := end.Cleanup(ctx, c.d.Env, req, watch)
			return ops.ActResult{Refused: err, Detail: result}
		})
	case c.o.apply != "", c.o.resume != "":
		act, err := end.PlanListed(ctx, c.d.Env, req, c.d.newObserver(c.p, nil))
		if err != nil {
			return nil, err
		}
		return c.show(func(watch *observer) ops.ActResult { return c.d.doAct(ctx, act, watch) })
	}
	return nil, c.showPlan(ctx, req, ruleGiven)
}

// show ends what do ends, and shows what became of each.
func (c *cleanupCommand) show(do func(watch *observer) ops.ActResult) (*end.CleanupResult, error) {
	spec := output.ListSpec[sandbox.Ending]{Schema: cleanupSchema, Columns: views.EndingColumns()}
	if len(c.p.Columns) == 0 {
		spec.Line = views.BulkEndingLine
	}
	list, err := output.NewList(c.p, spec)
	if err != nil {
		return nil, err
	}
	done := do(c.d.newObserver(c.p, showEndings(list, false)))
	result, _ := done.Detail.(*end.CleanupResult)
	if done.Refused != nil && (result == nil || result.Refused == nil) {
		return result, done.Refused
	}
	return result, views.FinishCleanup(list, result, c.d.Process.Name(), c.retryLine(result))
}

// retryLine is the command line that goes on with what a run has left: the run is resumed,
// except for one in which providers chose by their own rules, which is repeated as it was typed.
func (c *cleanupCommand) retryLine(r *end.CleanupResult) string {
	args := []string{"cleanup", "--resume", r.RunID}
	switch {
	case c.o.providerSide || c.o.emergency:
		args = c.d.Process.Args[1:]
	case c.o.yes:
		args = append(args, "--yes")
	}
	return c.p.Redact(c.d.Process.Name() + " " + views.ShellLine(args))
}

// showPlan shows the plan. A terminal may allow it by an answer.
func (c *cleanupCommand) showPlan(ctx context.Context, req end.CleanupRequest, ruleGiven bool) error {
	if err := c.p.Format.Refuse("cleanup without --yes", output.RowFormats()...); err != nil {
		return err
	}
	watch := c.d.newObserver(c.p, nil)
	result, err := end.PlanCleanup(ctx, c.d.Env, req, watch)
	if err != nil {
		return err
	}
	if c.o.explain != "" {
		return views.ShowCleanupExplanation(c.p, cleanupSchema, result, c.o.explain)
	}
	if c.o.out != "" {
		if err := end.WriteCleanupPlan(c.d.Path(c.o.out), result.Plan()); err != nil {
			return err
		}
	}
	act := result.Act()
	asks := act.Refused == nil && len(act.Targets) > 0 && c.d.isAttended() && c.p.Format.Human() && c.o.out == "" && !c.o.dry && ruleGiven
	err = views.ShowCleanupPlan(c.p, cleanupSchema, result, c.o.detailed, c.d.Now().Location())
	if warn := result.WriteDryTextfile(ctx, fault.ExitCode(err)); warn != nil {
		c.p.Warn(warn.Error())
	}
	if !c.o.dry && c.o.out == "" && !c.d.isAttended() && ctx.Err() == nil {
		c.p.Warn("nothing was done; to terminate, " + unattendedWays) // also with -q: such a crontab line does nothing, each time
	}
	if ctx.Err() == nil && c.p.Format.Human() {
		c.sayNext(req, result, ruleGiven)
	}
	if !asks || ctx.Err() != nil {
		return err
	}
	act.Seen = true // on the page
	allowed, refused := act.Permit(ctx, watch.confirm)
	switch {
	case errors.Is(refused, ops.ErrDeclined):
		return err
	case refused != nil:
		return refused
	}
	_, err = c.show(func(watch *observer) ops.ActResult { return act.Do(ctx, watch, allowed) })
	return err
}

// sayNext names the command line that may terminate what a plan names, where the plan cannot be
// answered.
func (c *cleanupCommand) sayNext(req end.CleanupRequest, r *end.CleanupResult, ruleGiven bool) {
	switch line := r.AllowLine(); {
	case len(r.Survey.Selected) == 0:
	case line != "":
		c.p.Note("the plan is refused, for the reason above; to terminate them all: " + line)
	case !ruleGiven && c.d.isAttended() && c.o.out == "":
		c.p.Note("to terminate them: `" + strings.Join(req.Line, " ") + "`")
	}
}

// repeatCleanups runs one cleanup after the other until it is interrupted, which is its normal
// end. A failed run is reported and does not end the loop. All runs have the request of the first:
// what `--before 05:30` means does not change at midnight.
func (c *cleanupCommand) repeatCleanups(ctx context.Context, req end.CleanupRequest, ruleGiven bool) error {
	if err := c.p.Format.Refuse("cleanup --every", output.Documents()...); err != nil {
		return err
	}
	pace := time.NewTicker(req.Every)
	defer pace.Stop()
	for {
		result, err := c.runOnce(ctx, req, ruleGiven)
		if cause := unshownCause(ctx, err); cause != nil {
			return cause
		}
		if result == nil { // flags or configuration are wrong, so each run would fail
			return err
		}
		c.p.Note(fmt.Sprintf("%s ended with exit code %d; the next one comes within %s", result.RunID, fault.ExitCode(err), req.Every))
		if err := c.d.PauseRound(ctx, pace.C); err != nil {
			return err
		}
	}
}
