package commands

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const runbookRunSchema = "sbx.runbook.run/v1"

// runbookRunOptions are the flags of `sbx runbook run`, as typed.
type runbookRunOptions struct {
	file, ref, procedure, resume string
	production                   []string
	yes, dryRun, unowned         bool
	maxDelete                    int
	untilOK, every               string
}

func newRunbookRun(d *Deps) *cobra.Command {
	o := runbookRunOptions{every: "30s"}
	cmd := &cobra.Command{
		Use:        "run ID",
		SuggestFor: []string{"start", "exec", "do"},
		Short:      "Run a runbook: diagnose, do what belongs to the cause, verify",
		Long: "Run a runbook: its diagnosis, the steps of each cause that the diagnosis is sure of, and\n" +
			"its verification. --procedure runs one of its procedures instead of the causes.\n\n" +
			"A step that acts shows its plan first and asks, cause by cause: yes for up to five sandboxes,\n" +
			"their count above that, the name of the profile for production and for an emergency\n" +
			"cleanup. What is not yours is asked for last, by itself. Guards, leases, journals and\n" +
			"verification are those of the command that the step names; a count of what is stuck that is\n" +
			"typed is its limit. Without a terminal --yes and --max-delete are needed (else exit 11), and\n" +
			"--unowned for what is not yours.\n\n" +
			"With --ref the run is about one sandbox: a step that ends or stops those with a cause, or\n" +
			"what is stuck, acts on that one alone, if it is among them; a cleanup, an emergency\n" +
			"cleanup and a reconciliation are left out, since they are about all sandboxes.\n\n" +
			"Every run is on record (`sbx runbook runs`). One that was interrupted, or waits for an\n" +
			"answer, goes on with --resume: what is over is not repeated, what was read is read\n" +
			"again, and an act without a recorded outcome reads its targets first.\n\n" +
			"Exit 0: all is verified. 10: the verification misses something. 7: it cannot tell.\n" +
			"3, 8, 11: as the acts say.",
		Example: "sbx runbook run sandbox-stuck --dry-run\n" +
			"sbx runbook run sandbox-stuck --yes --max-delete 5\n" +
			"sbx runbook run sigkill-137 --ref local/k3v9x2mq7a",
		Args:              o.checkArgs,
		ValidArgsFunction: d.completeRunbooks,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.file, "file", "", "run the document in `FILE`")
	f.StringVar(&o.ref, "ref", "", "the sandbox or task `REF` that it is about; no step acts on another")
	f.StringVar(&o.procedure, "procedure", "", "do the procedure `ID` instead of the steps of causes")
	f.BoolVar(&o.dryRun, "dry-run", false, "diagnose, show the plan of the first step that acts, ask nothing and change nothing")
	f.BoolVar(&o.yes, "yes", false, "answer yes, within --max-delete")
	f.IntVar(&o.maxDelete, "max-delete", 0, "let no step act on more than `N`")
	f.BoolVar(&o.unowned, "unowned", false, "with --yes, also end what is not yours")
	f.StringSliceVar(&o.production, "production", nil, "allow production profile `NAME` (repeatable)")
	f.StringVar(&o.untilOK, "until-ok", "", "repeat the verification until all holds, for at most `DURATION`")
	f.StringVar(&o.every, "every", o.every, "`DURATION` between two rounds of --until-ok")
	f.StringVar(&o.resume, "resume", "", "go on with `RUN`")
	completeFlagFunc(cmd, "resume", d.completeRunbookRuns)
	completeFlagFunc(cmd, "ref", func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return d.refWords(cmd, nil, word, offerLiving)
	})
	completeFlagFunc(cmd, "procedure", d.completeProcedures)
	completeFlag(cmd, "production", func() []string { return d.ProductionNames() })
	doc := document{schema: runbookRunSchema, shape: output.ShapeList, columns: output.Names(views.RunbookStepColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		req, err := o.readRequest(ctx, d, p, cmd.Flags().Changed("max-delete"), args)
		if err != nil {
			return err
		}
		return runRunbook(ctx, d, p, req)
	})
}

// cmdNamed is a command for the words of an error alone.
func cmdNamed(name string) *cobra.Command { return &cobra.Command{Use: name} }

// checkArgs refuses more than one way to name what is run.
func (o *runbookRunOptions) checkArgs(_ *cobra.Command, args []string) error {
	switch {
	case o.resume != "" && (len(args) > 0 || o.file != ""):
		return fault.Usage("--resume goes on with the runbook of the run, so an id and --file have no meaning with it")
	case o.resume != "":
		return nil
	case len(args) == 2 && o.file == "" && o.ref == "":
		return fault.Usage("run takes the id of one runbook").WithHint("a sandbox or task stands behind --ref: `sbx runbook run %s --ref %s`", args[0], args[1])
	}
	return oneRunbook(&o.file)(cmdNamed("run"), args)
}

func (o *runbookRunOptions) readRequest(ctx context.Context, d *Deps, p *output.Printer, limited bool, args []string) (engine.Request, error) {
	req := engine.Request{
		Resume: o.resume, Procedure: o.procedure, Word: o.ref, Profiles: d.Globals.Providers, Production: o.production, Yes: o.yes, MaxDelete: o.maxDelete, Unowned: o.unowned,
		DryRun: o.dryRun, Line: d.typedLine(p),
	}
	switch {
	case limited && o.maxDelete < 1:
		return req, fault.Usage("--max-delete: %d is not a limit", o.maxDelete).WithHint("write a number from 1")
	case o.dryRun && o.yes:
		return req, fault.Usage("--dry-run does nothing, so --yes has no meaning with it")
	}
	var err error
	if req.UntilOK, err = optionalDuration("--until-ok", o.untilOK); err != nil {
		return req, err
	}
	if req.Every, err = sandbox.ParseDuration(o.every); err != nil {
		return req, fault.Usage("--every: %w", err)
	}
	if limited {
		d.Globals.Settings = map[string]string{"max-delete": strconv.Itoa(o.maxDelete)}
	}
	c, err := d.Config()
	if err == nil {
		_, err = d.Limits(c, o.production)
	}
	if err != nil {
		return req, err
	}
	if o.resume == "" {
		req.Book, err = d.findRunbook(ctx, args, o.file)
	}
	return req, err
}

// runRunbook runs one, shows people each step as it ends, and the whole at the end.
func runRunbook(ctx context.Context, d *Deps, p *output.Printer, req engine.Request) error {
	live := d.Process.Stdout.TTY && p.Format.Human() && len(p.Columns) == 0
	_, finish, err := views.RunbookRunList(p, runbookRunSchema, d.Process.Name())
	if err != nil {
		return err
	}
	progress := &views.RunbookProgress{Width: d.Process.Stdout.Width, Verbose: p.Verbose > 0}
	watch := d.newObserver(p, func(item any) {
		step, isStep := item.(engine.Step)
		if !isStep || !live {
			return
		}
		for _, line := range progress.Lines(step) {
			_ = p.Line(line) // the end of the document reports a closed stdout
		}
	})
	run, err := engine.Start(ctx, d.Env, req, watch)
	if err != nil {
		return err
	}
	return finish(run)
}

func newRunbookRuns(d *Deps) *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:        "runs",
		SuggestFor: []string{"history"},
		Short:      "List the runs of runbooks on this machine, newest first",
		Long: "List the runs of runbooks on this machine, newest first: how far each is, and whether\n" +
			"it can go on (`waiting`, `interrupted`).\n\n" +
			"A run whose record was changed afterwards is an error beside the list (exit 10).",
		Example: "sbx runbook runs\nsbx runbook runs -o json",
		Args:    d.noWords("`sbx runbook status RUN` shows one"),
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N`; 0 = all")
	doc := document{schema: "sbx.runbook.runs/v1", shape: output.ShapeList, columns: output.Names(views.RunbookRunColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		runs, errs := d.runbookRuns(ctx, limit)
		return views.ShowRunbookRuns(p, doc.schema, runs, errs)
	})
}

func (d *Deps) runbookRuns(ctx context.Context, limit int) ([]engine.Run, []error) {
	disk, err := d.RunbookRuns()
	if err != nil {
		return nil, []error{err}
	}
	runs, errs := engine.Runs(disk, limit)
	for i := range runs {
		engine.Refresh(ctx, d.Env, &runs[i])
	}
	return runs, errs
}

func newRunbookStatus(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show one run: its steps, causes, acts and their outcomes",
		Long: "Show one run of a runbook as it is on record: its steps with answers and times, the\n" +
			"causes, what was done to which sandbox, and whom to call.\n\n" +
			"RUN is a run id or a unique beginning of one; without it the newest run is shown.",
		Example:           "sbx runbook status\nsbx runbook status b-20261123120000000-k3v9x2",
		Args:              usageArgs(atMostOneArg("RUN"), "`sbx runbook runs` lists them"),
		ValidArgsFunction: d.completeRunbookRuns,
	}
	doc := document{schema: "sbx.runbook.status/v1", shape: output.ShapeList, columns: output.Names(views.RunbookStepColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		word := "last"
		if len(args) > 0 {
			word = args[0]
		}
		disk, err := d.RunbookRuns()
		if err != nil {
			return err
		}
		run, err := engine.FindRun(disk, word)
		if len(args) == 0 && fault.KindOf(err) == fault.KindNotFound {
			err = fault.New(fault.KindNotFound, "no runbook has been run here").WithHint("`%s runbook run ID` runs one", d.Process.Name())
		}
		if err != nil {
			return err
		}
		engine.Refresh(ctx, d.Env, &run)
		return views.ShowRunbookRun(p, doc.schema, &run)
	})
}

func (d *Deps) completeRunbookRuns(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	runs, _ := d.runbookRuns(cmd.Context(), 50)
	var words []string
	for _, r := range runs {
		words = append(words, r.ID+"\t"+r.Runbook+", "+string(r.State))
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeProcedures offers the procedures of the runbook that was typed.
func (d *Deps) completeProcedures(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var words []string
	if book, err := d.findRunbook(cmd.Context(), args, cmd.Flag("file").Value.String()); err == nil && len(args) > 0 {
		words = procedureWords(book)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func procedureWords(book *runbook.Runbook) []string {
	var words []string
	for _, p := range book.Spec.Procedures {
		words = append(words, string(p.ID)+"\t"+p.Title)
	}
	return words
}
