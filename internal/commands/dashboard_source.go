package commands

import (
	"bytes"
	"context"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	opscron "sbx/internal/ops/cron"
	"sbx/internal/ops/end"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/process"
	"sbx/internal/runbook/engine"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/tui"
	"sbx/internal/views"
)

// dashboardSource gives the dashboard the pages of the verbs.
type dashboardSource struct {
	*look.Live

	deps       *Deps
	unfinished *engine.Run // the newest run of a runbook, where it is not over; Runbook writes it, and returns before tui.Run does

	saveMemory func() // applies screenGarbage, once
}

func (d *Deps) newDashboardSource(ctx context.Context) (dashboardSource, error) {
	live, err := look.NewLive(ctx, d.Env)
	saveMemory := sync.OnceFunc(func() { debug.SetGCPercent(screenGarbage) })
	return dashboardSource{live, d, &engine.Run{}, saveMemory}, err
}

// printer prints to a text that the dashboard shows.
func (s dashboardSource) printer(text *bytes.Buffer, width int) *output.Printer {
	proc := s.deps.Process
	proc.Stdout, proc.Stderr = process.Stream{Writer: text, TTY: true, Width: width}, process.Stream{Writer: text, TTY: true, Width: width}
	return output.New(proc, output.Options{NoColor: true, Quiet: true})
}

// A dashboard is open for hours beside other programs. From manyRows of a profile on, its memory may grow by screenGarbage
// percent only between two garbage collections, which is less than Go's default: the rows are most of it, and stay. With
// fewer rows that would save little.
const (
	manyRows      = 2000
	screenGarbage = 25
)

// Round reads one profile.
func (s dashboardSource) Round(ctx context.Context, profile string) look.LiveRound {
	r := s.Live.Round(ctx, profile)
	if len(r.Rows) >= manyRows {
		s.saveMemory()
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

// Cleanup says how cleanup runs.
func (s dashboardSource) Cleanup(ctx context.Context) tui.CleanupWord {
	status, err := opscron.CleanupStatus(ctx, s.deps.Env, opscron.CleanupStatusRequest{Every: s.deps.Thresholds(sandbox.Sandbox{}).CleanupEvery})
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
		if verb == runs.VerbStop {
			line = append(line, views.ShellWord(box.TaskID))
		} else {
			line = append(line, views.ShellWord(box.Ref().String()))
		}
	}
	switch verb {
	case runs.VerbCleanup:
		line = append(line, "--stuck")
	case runs.VerbReconcile:
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
	return plan.Act.Do(
		ctx, s.deps.newObserver(p, func(item any) { report(views.ActItemLine(item)) }),
		ops.Allowed{Targets: plan.Act.Refs(), Production: production, Asked: true},
	)
}

// Keep keeps sandboxes from being ended for a time.
func (s dashboardSource) Keep(ctx context.Context, refs []sandbox.Ref, d time.Duration) []string {
	req := end.KeepRequest{For: d}
	for _, ref := range refs {
		req.Words = append(req.Words, ref.String())
	}
	var lines []string
	var lost []error
	watch := s.deps.newObserver(output.New(s.reporting(func(string) {}), output.Options{NoColor: true, Quiet: true}), func(item any) {
		switch i := item.(type) {
		case error:
			lost = append(lost, i)
		case end.KeepResult:
			if i.Err != nil {
				lost = append(lost, i.Err)
			} else {
				lines = append(lines, views.KeepLine(i))
			}
		}
	})
	act, err := end.PlanKeep(ctx, s.deps.Env, req)
	if err == nil {
		err = s.deps.doAct(ctx, act, watch).Err
	}
	if err != nil {
		lost = append(lost, err)
	}
	for _, err := range lost {
		lines = append(lines, strings.TrimSuffix("not kept: "+err.Error()+"; "+fault.HintOf(err), "; "))
	}
	return lines
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
