package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/tui"
)

func newDashboard(d *Deps) *cobra.Command {
	var once, plain, readOnly bool
	cmd := &cobra.Command{
		Use:     "dashboard",
		Aliases: []string{"tui"},
		GroupID: groupLook,
		Short:   "Watch all sandboxes on one live screen",
		Long: "Watch all sandboxes on one live screen, in groups by their verdict: stuck, at risk,\n" +
			"not judged, working. Above them are the seven steps of the runbook of stuck sandboxes, each\n" +
			"with its figure; 1 to 7 open one, and 6 ends what is stuck. Looking records nothing. The last\n" +
			"tab has the tasks. `" + d.Process.Name() + "` alone opens it, too.\n\n" +
			"A provider that does not answer keeps its last rows, marked as stale, with the error.\n" +
			"Rows on the screen whose records do not decide are queried, as `" + d.Process.Name() + " ls --look` does.\n" +
			"/ filters by a text, or by `where CONDITION` as `" + d.Process.Name() + " ls --where` does (`" + d.Process.Name() + " help conditions`).\n" +
			"x terminates, X cleans up what is stuck, s stops a task, R reconciles: each shows its plan\n" +
			"first, and wants the number of its targets typed. --read-only refuses them. ? shows all keys.\n" +
			"Clicks choose rows, tabs and steps; with Shift held, text is selected (`mouse: off` in the configuration\n" +
			"leaves the mouse to the terminal). `keys:` gives actions other keys (`pause: f2`); ctrl+c always quits. The actions are:\n" +
			strings.Join(output.WrapText(strings.Join(tui.Actions(), ", "), 86, ""), "\n") + ".\n\n" +
			"--plain prints a line for each change instead, also in a pipe: no screen, no cursor, no\n" +
			"keys but Ctrl-C. SBX_ACCESSIBLE=1 implies it. What the keys do, the verbs do, too.\n\n" +
			"--once prints one frame as text, without a terminal, and exits 3 where a provider did\n" +
			"not answer. With -o json it is a document: the figures of `stats`, and all sandboxes by\n" +
			"their group, with the keys of `ls`; then all that run are queried.",
		Example: "sbx dashboard\nsbx dashboard --provider local\nsbx dashboard --plain\nsbx dashboard --once",
		Args:    d.noWords("--provider names the profiles to watch"),
	}
	cmd.Flags().BoolVar(&once, "once", false, "print one frame and exit")
	cmd.Flags().BoolVar(&plain, "plain", false, "print a line for each change")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "end and change nothing")
	refused := slices.DeleteFunc(allBut(output.Table), func(f output.FormatName) bool { return f == output.JSON })
	return d.completeVerb(cmd, document{
		schema: dashboardSchema, shape: output.ShapeFree, refuses: refused,
	}, func(ctx context.Context, p *output.Printer, _ []string) error {
		d.ReadOnly = readOnly
		switch {
		case once && plain:
			return fault.Usage("--once and --plain exclude each other").WithHint("--once prints one frame; --plain prints a line for each change")
		case once:
			return d.runDashboardOnce(ctx, p)
		case p.Format.Name() != output.Table:
			return fault.Usage("the dashboard is a document only with --once").WithHint("`%s dashboard --once -o json`", d.Process.Name())
		case plain || output.Accessible(d.Process):
			return d.runDashboardPlain(ctx, p)
		}
		return d.runDashboard(ctx, p)
	})
}

const dashboardSchema = "sbx.dashboard/v1"

// opensDashboard reports whether `sbx` without a verb opens the dashboard: it needs a screen that can be drawn on.
func (d *Deps) opensDashboard() bool {
	return d.Process.Stdin.TTY && d.Process.Stdout.TTY && d.Process.Getenv("TERM") != "dumb" && !output.Accessible(d.Process)
}

func (d *Deps) runDashboard(ctx context.Context, p *output.Printer) error {
	c, err := d.Config()
	if err != nil {
		return err
	}
	if err := tui.CheckKeys(c.Keys); err != nil {
		return err
	}
	if !d.opensDashboard() {
		return fault.Usage("the dashboard needs a terminal").WithHint(
			"`%[1]s dashboard --plain` prints a line for each change, --once one frame; `%[1]s ls --stuck` and `%[1]s stats` have their figures",
			d.Process.Name(),
		)
	}
	source, err := d.newDashboardSource(ctx)
	if err != nil {
		return err
	}
	terminal := d.dashboardTerminal(p)
	terminal.Shell, terminal.Keys, terminal.Divert, terminal.Mouse = d.dashboardShell, c.Keys, p.Divert, c.Mouse
	terminal.OnQuit = d.Process.OnQuit
	terminal.Operator = d.Process.User() + "@" + d.Process.Host
	err = tui.Run(ctx, source, d.Now, terminal)
	if source.unfinished.ID != "" {
		p.Note(fmt.Sprintf("the run %[2]s is not over: `%[1]s runbook run --resume %[2]s` goes on with it", d.Process.Name(), source.unfinished.ID))
	}
	return err
}

// runDashboardPlain says what changes until it is interrupted, which is how it is meant to end.
func (d *Deps) runDashboardPlain(ctx context.Context, p *output.Printer) error {
	source, err := d.newDashboardSource(ctx)
	if err != nil {
		return err
	}
	defer p.Divert(func(text string) { _ = p.Line(text) })() // a stdout that is closed ends the lines of changes
	err = tui.Plain(ctx, source, d.Now, p.Line)
	if ctx.Err() != nil && fault.KindOf(context.Cause(ctx)) == fault.KindCanceled {
		return nil
	}
	return err
}

func (d *Deps) runDashboardOnce(ctx context.Context, p *output.Printer) error {
	source, err := d.newDashboardSource(ctx)
	if err != nil {
		return err
	}
	source.Once = true
	if p.Format.Structured() {
		keys, errs := tui.OnceKeys(ctx, source, d.Now)
		return p.ShowAs(
			output.Document{Schema: dashboardSchema, Fields: output.FieldsOf(keys)}, output.ConcludeAll(errs, len(errs) < len(source.Profiles())), errs...,
		)
	}
	size, _, stop := d.Size()
	stop()
	if size.Columns == 0 {
		size = onceSize()
	}
	lines, errs := tui.Once(ctx, source, d.Now, int(size.Columns), int(size.Rows), d.dashboardTerminal(p))
	for _, line := range lines {
		if err := p.Line(strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	for _, err := range errs {
		p.Report(err)
	}
	return output.ConcludeAll(errs, len(errs) < len(source.Profiles()))
}

func (d *Deps) dashboardTerminal(p *output.Printer) tui.Terminal {
	return tui.Terminal{
		In: d.Process.Stdin.File, Out: d.Process.Stdout.File, Environ: d.Process.Environ, ASCII: output.ASCIIOnly(d.Process), Plain: !p.Coloured(), Program: d.Process.Name(),
	}
}

// dashboardShell is `sbx shell REF` in a process of its own: a read of the terminal that it leaves
// behind would take a key of the dashboard.
func (d *Deps) dashboardShell(ctx context.Context, ref sandbox.Ref) error {
	if d.ReadOnly {
		return fault.New(fault.KindRefused, "--read-only: a shell could change anything")
	}
	self, err := d.Program()
	if err != nil {
		return err
	}
	args := []string{"shell", "--quiet"}
	if d.Globals.Config != "" {
		args = append(args, "--config", d.Globals.Config)
	}
	_, _ = fmt.Fprintln(d.Process.Stdout, connecting(ref.String())) // the shell says it on the stream that is kept
	return d.Process.Foreground(ctx, self, append(args, ref.String())...)
}

// onceSize is the size of a frame that no terminal gives one.
func onceSize() providers.Size { return providers.Size{Columns: 120, Rows: 40} }
