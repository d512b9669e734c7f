package commands

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/triage"
	"sbx/internal/tui"
	"sbx/internal/views"
)

// Investigation answers the steps of the runbook by what was read already; a step of the user's own has what is written.
func (s dashboardSource) Investigation(ctx context.Context, judged []fleet.Judged) ([]tui.StepPage, error) {
	book, err := s.deps.findRunbook(ctx, []string{triage.StuckRunbook}, "")
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

// Runbook works at the runbook of stuck sandboxes.
func (s dashboardSource) Runbook(ctx context.Context, width int, watch tui.RunbookWatch) error {
	d := s.deps
	book, err := d.findRunbook(ctx, []string{triage.StuckRunbook}, "")
	if err != nil {
		return err
	}
	p := output.New(s.reporting(watch.Note), output.Options{NoColor: true, Quiet: true})
	o := &runbookObserver{source: s, width: width, watch: watch}
	o.observer = d.newObserver(p, o.show)
	req := engine.Request{
		Book: book, Profiles: d.Globals.Providers, DryRun: d.ReadOnly, UntilOK: verifiesFor, Every: verifiesEvery,
		Line: []string{d.Process.Name(), "runbook", "run", triage.StuckRunbook},
	}
	if d.stage != nil {
		req.Staged, req.Omit, req.Profiles = true, d.stage.Omit, nil
	}
	run, err := engine.Start(ctx, d.Env, req, o)
	if err != nil {
		return err
	}
	*s.unfinished = engine.Run{}
	if run.State == engine.RunWaiting || run.State == engine.RunInterrupted {
		*s.unfinished = *run
	}
	return run.Err()
}

// The verification of a run is repeated for a while: what was ended needs some time to leave the figures of a provider.
const (
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
		o.source.printer(&page, o.width).Aside(func(s *output.Sheet) { views.PlannedEndsTable(s, q.Targets, o.d.Now()) })
	}
	text, answered = o.watch.Ask(ctx, q, page.String())
	return text, answered, nil
}
