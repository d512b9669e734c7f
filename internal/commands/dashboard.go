package commands

import (
	"bytes"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/tui"
	"sbx/internal/views"
)

func newDashboard(d *Deps) *cobra.Command {
	var once, readOnly bool
	cmd := &cobra.Command{
		Use:     "dashboard",
		Aliases: []string{"tui"},
		GroupID: groupLook,
		Short:   "Watch all sandboxes on one live screen",
		Long: "Watch all sandboxes on one live screen, in groups by their verdict: stuck, at risk,\n" +
			"not judged, working. Above them is a line for each provider, as `" + d.Process.Name() + " stats` has it,\n" +
			"with the age of its figures. The last tab has the tasks. `" + d.Process.Name() + "` alone\n" +
			"opens it, too.\n\n" +
			"A provider that does not answer keeps its last rows, marked as stale, with the error.\n" +
			"Rows on the screen whose records do not decide are queried, as `" + d.Process.Name() + " ls --look` does.\n" +
			"x terminates, X cleans up what is stuck, s stops a task, R reconciles: each shows its plan\n" +
			"first, and wants the number of its targets typed. --read-only refuses them. ? shows all keys.\n\n" +
			"--once prints one frame as text, without a terminal, and exits 3 where a provider did\n" +
			"not answer.",
		Example: "sbx dashboard\nsbx dashboard --provider local\nsbx dashboard --once",
		Args:    usageArgs(noArgs, "--provider names the profiles to watch"),
	}
	cmd.Flags().BoolVar(&once, "once", false, "print one frame and exit")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "end and change nothing")
	return d.completeVerb(cmd, document{schema: "sbx.dashboard/v1", shape: output.ShapeFree, refuses: allBut(output.Table)}, func(ctx context.Context, p *output.Printer, _ []string) error {
		d.ReadOnly = readOnly
		return d.runDashboard(ctx, p, once)
	})
}

// opensDashboard reports whether `sbx` without a verb opens the dashboard: it needs a screen that can be drawn on.
func (d *Deps) opensDashboard() bool {
	return d.Process.Stdin.TTY && d.Process.Stdout.TTY && d.Process.Getenv("TERM") != "dumb" && !output.Accessible(d.Process)
}

func (d *Deps) runDashboard(ctx context.Context, p *output.Printer, once bool) error {
	live, err := ops.NewLive(ctx, d.Env)
	if err != nil {
		return err
	}
	source := dashboardSource{live, d}
	terminal := tui.Terminal{
		In: d.Process.Stdin.File, Out: d.Process.Stdout.File, Environ: d.Process.Environ, ASCII: output.ASCIIOnly(d.Process), Plain: !p.Coloured(), Program: d.Process.Name(),
	}
	if once {
		size, _, stop := d.Size()
		stop()
		if size.Columns == 0 {
			size = onceSize()
		}
		lines, errs := tui.Once(ctx, source, d.Now, int(size.Columns), int(size.Rows), terminal)
		for _, line := range lines {
			if err := p.Line(strings.TrimRight(line, " ")); err != nil {
				return err
			}
		}
		for _, err := range errs {
			p.Report(err)
		}
		return output.ConcludeAll(errs, len(errs) < len(live.Profiles()))
	}
	if !d.opensDashboard() {
		return fault.Usage("the dashboard needs a terminal").WithHint("`%s dashboard --once` prints one frame, `%s ls --stuck` and `%s stats` their figures", d.Process.Name(), d.Process.Name(), d.Process.Name())
	}
	terminal.Divert = p.Divert
	return tui.Run(ctx, source, d.Now, terminal)
}

// onceSize is the size of a frame that no terminal gives one.
func onceSize() providers.Size { return providers.Size{Columns: 120, Rows: 40} }

// dashboardSource gives the dashboard the pages of the verbs.
type dashboardSource struct {
	*ops.Live

	deps *Deps
}

// printer prints to a text that the dashboard shows.
func (s dashboardSource) printer(text *bytes.Buffer, width int) *output.Printer {
	proc := s.deps.Process
	proc.Stdout, proc.Stderr = process.Stream{Writer: text, TTY: true, Width: width}, process.Stream{Writer: text, TTY: true, Width: width}
	return output.New(proc, output.Options{NoColor: true, Quiet: true})
}

// Page is what a verb prints about a sandbox or task, the errors of its parts at the end.
func (s dashboardSource) Page(ctx context.Context, _ string, ref sandbox.Ref, width int) (string, error) {
	var text bytes.Buffer
	p := s.printer(&text, width)
	var err error
	if ref.Bare() {
		err = showTask(ctx, s.deps, p, ref.ID)
	} else {
		err = inspectOne(ctx, s.deps, p, ref.String())
	}
	if alreadyShown(err) {
		err = nil
	}
	return text.String(), err
}

// Plan reads what a verb would do.
func (s dashboardSource) Plan(ctx context.Context, verb string, boxes []sandbox.Sandbox, width int) (tui.Plan, error) {
	var text bytes.Buffer
	p := s.printer(&text, width)
	line := []string{s.deps.Process.Name(), verb}
	for _, box := range boxes {
		if verb == ops.VerbStop {
			line = append(line, views.ShellWord(box.TaskID))
		} else {
			line = append(line, views.ShellWord(box.Ref().String()))
		}
	}
	switch verb {
	case ops.VerbCleanup:
		line = append(line, "--stuck")
	case ops.VerbReconcile:
		line = append(line, "--fix")
	}
	act, err := s.Live.Plan(ctx, ops.PlanRequest{Verb: verb, Boxes: boxes, Line: line}, s.deps.newObserver(p, nil))
	if err != nil {
		return tui.Plan{}, err
	}
	p.Aside(func(sheet *output.Sheet) { views.ActPage(sheet, act, s.deps.Now()) })
	plan := tui.Plan{Act: act, Page: text.String()}
	if act.Refused == nil && len(act.Targets) > 0 {
		plan.Questions = act.CountQuestions(s.deps.Env)
	}
	return plan, nil
}

// Do carries a plan out.
func (s dashboardSource) Do(ctx context.Context, plan tui.Plan, production []string, report func(string)) ops.ActResult {
	p := output.New(s.reporting(report), output.Options{NoColor: true})
	return plan.Act.Do(ctx, s.deps.newObserver(p, func(item any) { report(views.ActItemLine(item)) }), ops.Allowed{Production: production})
}

// reporting is this process with notes and warnings going to the dashboard.
func (s dashboardSource) reporting(report func(string)) process.Process {
	proc := s.deps.Process
	proc.Stdout, proc.Stderr = process.Stream{Writer: reportWriter(report)}, process.Stream{Writer: reportWriter(report)}
	return proc
}

// reportWriter reports what is written, line by line.
type reportWriter func(line string)

func (w reportWriter) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		w(strings.TrimRight(line, "\n"))
	}
	return len(text), nil
}
