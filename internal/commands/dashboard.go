package commands

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/tui"
	"sbx/internal/views"
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
	return d.completeVerb(cmd, document{schema: dashboardSchema, shape: output.ShapeFree, refuses: refused}, func(ctx context.Context, p *output.Printer, _ []string) error {
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
		return fault.Usage("the dashboard needs a terminal").WithHint("`%[1]s dashboard --plain` prints a line for each change, --once one frame; `%[1]s ls --stuck` and `%[1]s stats` have their figures", d.Process.Name())
	}
	source, err := d.newDashboardSource(ctx)
	if err != nil {
		return err
	}
	terminal := d.dashboardTerminal(p)
	terminal.Shell, terminal.Keys, terminal.Divert, terminal.Mouse = d.dashboardShell, c.Keys, p.Divert, c.Mouse
	terminal.Operator = d.Process.User() + "@" + d.Process.Host
	err = tui.Run(ctx, source, d.Now, terminal)
	if source.left.ID != "" {
		p.Note(fmt.Sprintf("the run %[2]s is not over: `%[1]s runbook run --resume %[2]s` goes on with it", d.Process.Name(), source.left.ID))
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
		return p.ShowAs(output.Document{Schema: dashboardSchema, Fields: output.FieldsOf(keys)}, output.ConcludeAll(errs, len(errs) < len(source.Profiles())), errs...)
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

// dashboardSource gives the dashboard the pages of the verbs.
type dashboardSource struct {
	*look.Live

	deps *Deps
	left *engine.Run // the newest run of the runbook, where it is not over; Runbook writes it, and is over before tui.Run is
}

func (d *Deps) newDashboardSource(ctx context.Context) (dashboardSource, error) {
	live, err := look.NewLive(ctx, d.Env)
	return dashboardSource{live, d, &engine.Run{}}, err
}

// printer prints to a text that the dashboard shows.
func (s dashboardSource) printer(text *bytes.Buffer, width int) *output.Printer {
	proc := s.deps.Process
	proc.Stdout, proc.Stderr = process.Stream{Writer: text, TTY: true, Width: width}, process.Stream{Writer: text, TTY: true, Width: width}
	return output.New(proc, output.Options{NoColor: true, Quiet: true})
}

// manyRows of a profile are most of the memory of a dashboard, and stay. From then on it may grow by screenGarbage percent
// between two collections: it is open for hours beside other programs. A small one would collect for nothing.
const (
	manyRows      = 2000
	screenGarbage = 25
)

// Round reads one profile.
func (s dashboardSource) Round(ctx context.Context, profile string) look.LiveRound {
	r := s.Live.Round(ctx, profile)
	if len(r.Rows) >= manyRows {
		debug.SetGCPercent(screenGarbage)
	}
	return r
}

// Page is what a verb prints, the errors of its parts at the end.
func (s dashboardSource) Page(ctx context.Context, verb string, ref sandbox.Ref, width int) (string, error) {
	var text bytes.Buffer
	p := s.printer(&text, width)
	var err error
	switch verb {
	case "tasks show":
		err = showTask(ctx, s.deps, p, ref.ID)
	case "cleanup status":
		err = showCleanupStatus(ctx, s.deps, p, s.deps.Thresholds(sandbox.Sandbox{}).CleanupEvery)
	default:
		err = inspectOne(ctx, s.deps, p, ref.String(), true)
	}
	if alreadyShown(err) {
		err = nil
	}
	return text.String(), err
}

// Investigation answers the steps of the runbook by what was read already; a step of the user's own has what is written.
func (s dashboardSource) Investigation(ctx context.Context, judged []fleet.Judged) ([]tui.StepPage, error) {
	book, err := s.deps.findRunbook(ctx, []string{stuckRunbook}, "")
	if err != nil {
		return nil, err
	}
	answered := s.Steps(ctx, judged)
	outline := book.Outline()
	var pages []tui.StepPage
	for _, written := range book.Spec.Steps {
		if at := outline.Of(written.ID); at.IsWhole() {
			pages = append(pages, s.stepPage(book, written, at, answered))
		}
	}
	for _, at := range outline.Steps[len(pages):] {
		pages = append(pages, tui.StepPage{Kind: tui.StepKind(at.Word), Word: at.Word, Title: at.Title})
	}
	return pages, nil
}

// stepPage is a step as it is written, with the answers of what it collects.
func (s dashboardSource) stepPage(book *runbook.Runbook, written runbook.Step, at runbook.Heading, answered []look.DiagnoseStep) tui.StepPage {
	fill := func(text string) string {
		return strings.Join(strings.Fields(engine.Fill(s.deps.Env, book, text)), " ")
	}
	page := tui.StepPage{Word: at.Word, Title: fill(at.Title), Line: fill(strings.Join(written.Commands, "; "))}
	for _, text := range []string{written.Text, written.Manual, written.Confirm} {
		if text != "" {
			page.Text = append(page.Text, fill(text))
		}
	}
	for _, step := range answered {
		if !slices.Contains(written.Collect, runbook.Word(step.ID)) {
			continue
		}
		page.Answers, page.ETA = append(page.Answers, step.Answers...), page.ETA+step.ETA
		if len(written.Collect) == 1 {
			page.Kind = tui.StepKind(step.ID)
		}
		for _, c := range runbook.Collectors() {
			if c.ID == step.ID {
				page.Line, page.Without = s.deps.Process.Name()+" "+c.Command, c.Without
			}
		}
	}
	return page
}

// Cleanup says how cleanup runs.
func (s dashboardSource) Cleanup(ctx context.Context) tui.CleanupWord {
	status, err := ops.CleanupStatus(ctx, s.deps.Env, ops.CleanupStatusRequest{Every: s.deps.Thresholds(sandbox.Sandbox{}).CleanupEvery})
	if err != nil {
		return tui.CleanupWord{Text: "not read", Tone: output.Muted}
	}
	text, tone := views.CleanupWord(status.Status, s.deps.Now())
	return tui.CleanupWord{Text: text, Tone: tone}
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
	act, err := planLive(ctx, s.Live, planRequest{Verb: verb, Boxes: boxes, Line: line}, s.deps.newObserver(p, nil))
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

// Keep keeps sandboxes from being ended for a time.
func (s dashboardSource) Keep(ctx context.Context, refs []sandbox.Ref, d time.Duration) []string {
	req := end.KeepRequest{For: d}
	for _, ref := range refs {
		req.Words = append(req.Words, ref.String())
	}
	var lines []string
	results, lost, err := end.Keep(ctx, s.deps.Env, req, s.deps.newObserver(output.New(s.reporting(func(string) {}), output.Options{NoColor: true, Quiet: true}), nil))
	if err != nil {
		lost = append(lost, err)
	}
	for _, r := range results {
		if r.Err != nil {
			lost = append(lost, r.Err)
			continue
		}
		lines = append(lines, views.KeepLine(r))
	}
	for _, err := range lost {
		lines = append(lines, strings.TrimSuffix("not kept: "+err.Error()+"; "+fault.HintOf(err), "; "))
	}
	return lines
}

// Runbook works at the runbook of stuck sandboxes.
func (s dashboardSource) Runbook(ctx context.Context, width int, watch tui.RunbookWatch) error {
	d := s.deps
	book, err := d.findRunbook(ctx, []string{stuckRunbook}, "")
	if err != nil {
		return err
	}
	p := output.New(s.reporting(watch.Note), output.Options{NoColor: true, Quiet: true})
	o := &runbookObserver{source: s, width: width, watch: watch}
	o.observer = d.newObserver(p, o.show)
	req := engine.Request{
		Book: book, Profiles: d.Globals.Providers, DryRun: d.ReadOnly, UntilOK: verifiesFor, Every: verifiesEvery,
		Line: []string{d.Process.Name(), "runbook", "run", stuckRunbook},
	}
	if d.stage != nil {
		req.Staged, req.Omit, req.Profiles = true, d.stage.Omit, nil
	}
	run, err := engine.Start(ctx, d.Env, req, o)
	if err != nil {
		return err
	}
	*s.left = engine.Run{}
	if run.State == engine.RunWaiting || run.State == engine.RunInterrupted {
		*s.left = *run
	}
	return run.Err()
}

// stuckRunbook is the runbook that the dashboard mirrors. Its verification is repeated for a while: what was
// ended needs some time to leave the figures of a provider.
const (
	stuckRunbook  = "sandbox-stuck"
	verifiesFor   = 2 * time.Minute
	verifiesEvery = 10 * time.Second
)

// runbookObserver shows a run of a runbook on the dashboard, which answers its questions.
type runbookObserver struct {
	*observer

	source dashboardSource
	width  int
	watch  tui.RunbookWatch
	run    engine.Run
}

// show takes an item of engine.Start.
func (o *runbookObserver) show(item any) {
	switch i := item.(type) {
	case engine.Run:
		o.run = i
	case engine.Step:
		if step := o.run.Step(i.ID); step != nil {
			*step = i
		}
	default:
		if line := views.ActItemLine(item); line != "" {
			o.watch.Note(line)
		}
		return
	}
	o.watch.Show(views.RailOf(&o.run))
}

// Attended is engine.Observer's.
func (*runbookObserver) Attended() bool { return true }

// Ask is engine.Observer's.
func (o *runbookObserver) Ask(ctx context.Context, q ops.Question) (text string, answered bool, err error) {
	var page bytes.Buffer
	if len(q.Targets) > 0 {
		o.source.printer(&page, o.width).Aside(func(s *output.Sheet) { views.QuestionPage(s, q.Targets, o.d.Now()) })
	}
	text, answered = o.watch.Ask(ctx, q, page.String())
	return text, answered, nil
}

// Confirm is ops.Observer's.
func (o *runbookObserver) Confirm(ctx context.Context, q ops.Question) (bool, error) {
	text, answered, err := o.Ask(ctx, q)
	return answered && text == q.Word, err
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
