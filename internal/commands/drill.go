package commands

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/drill"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

type drillOptions struct {
	keep      bool
	clean     bool
	scenarios []string
}

const drillSchema = "sbx.drill/v1"

func newDrill(d *Deps) *cobra.Command {
	var o drillOptions
	cmd := &cobra.Command{
		Use:     "drill",
		GroupID: groupAct,
		Short:   "Stage a real incident on this machine and walk the runbook over it",
		Long: "Stage a real incident on the local provider: a busy loop, a process hung on a\n" +
			"connection, a memory leak, a silent one, one that belongs to nobody, and a healthy\n" +
			"one that must survive. Then walk the five investigation steps of the \"sandbox stuck\"\n" +
			"runbook over them, end what is stuck, verify, and remove everything.\n\n" +
			"Time limits are 120 times shorter than the runbook's. Exit 10 when a verdict is wrong.",
		Example: "sbx drill\nsbx drill --scenario leak -o json\nsbx drill --clean",
		Args:    usageArgs(noArgs, "`--scenario NAME` chooses what is staged"),
	}
	f := cmd.Flags()
	f.BoolVar(&o.keep, "keep", false, "investigate only and leave everything running (for five minutes at most)")
	f.BoolVar(&o.clean, "clean", false, "remove what drills left, and stage nothing")
	f.StringSliceVar(&o.scenarios, "scenario", nil, "stage only this `NAME` (repeatable)")
	complete(cmd, "scenario", drill.Names)
	return d.verb(cmd, document{
		schema: drillSchema, shape: output.ShapeFree, refuses: []output.FormatName{output.CSV, output.NameOnly},
	}, func(ctx context.Context, p *output.Printer, _ []string) error { return runDrill(ctx, d, p, o) })
}

func runDrill(ctx context.Context, d *Deps, p *output.Printer, o drillOptions) error {
	if o.clean && (o.keep || len(o.scenarios) > 0) {
		return fault.Usage("--clean stages nothing, so --keep and --scenario mean nothing with it")
	}
	f, profile, err := d.local(ctx)
	if err != nil {
		return err
	}
	if o.clean {
		return cleanDrills(ctx, d, p, f)
	}
	binary, err := d.Program()
	if err != nil {
		return err
	}
	progress := p.Progress("drill")
	defer progress.Done()
	report, err := drill.Run(ctx, drill.Options{
		Fleet: f, Profile: profile, Binary: binary, Scenarios: o.scenarios, Keep: o.keep, By: d.by("drill"), Now: d.now, Say: progress.Update,
	})
	if fault.KindOf(err) == fault.KindUsage {
		return err
	}
	progress.Done()
	if cause := ended(ctx, err); cause != nil {
		err = cause
	}
	doc := output.Document{Schema: drillSchema, Fields: drillFields(report), Human: func(s *output.Sheet) { drillSheet(s, report) }}
	if err != nil {
		return p.ShowAs(doc, err, err)
	}
	return p.Show(doc)
}

// local narrows the fleet to a profile whose sandboxes are processes of this machine.
func (d *Deps) local(ctx context.Context) (*fleet.Fleet, string, error) {
	c, err := d.Config()
	if err != nil {
		return nil, "", err
	}
	name, err := localProfile(c)
	if err != nil {
		return nil, "", err
	}
	f, err := d.Only(ctx, name)
	return f, name, err
}

func localProfile(c *config.Config) (string, error) {
	for _, p := range c.Profiles {
		if p.HostProcesses {
			return p.Name, nil
		}
	}
	return "", fault.New(fault.KindUnsupported, "no local profile is configured, and a drill is staged on this machine only")
}

func drillFields(r drill.Report) output.Fields {
	cases := make([]any, 0, len(r.Cases))
	for _, c := range r.Cases {
		cases = append(cases, output.Fields{
			{Key: "name", Value: c.Name},
			{Key: "ref", Value: c.Ref.String()},
			{Key: "cause", Value: string(c.Cause)},
			{Key: "expected", Value: string(c.Expected)},
			{Key: "confidence", Value: string(c.Confidence)},
			{Key: "evidence", Value: evidence(c.Evidence)},
			{Key: "outcome", Value: string(c.Outcome)},
			{Key: "ok", Value: c.OK},
		})
	}
	steps := make([]any, 0, len(r.Steps))
	for _, s := range r.Steps {
		steps = append(steps, output.Fields{
			{Key: "id", Value: s.ID},
			{Key: "title", Value: s.Title},
			{Key: "eta_seconds", Value: output.Seconds(s.ETA)},
			{Key: "took_seconds", Value: output.Seconds(s.Took)},
			{Key: "answers", Value: s.Answers},
		})
	}
	return output.Fields{
		{Key: "run", Value: r.Run},
		{Key: "enforcement", Value: string(r.Enforcement)},
		{Key: "cases", Value: cases},
		{Key: "steps", Value: steps},
		{Key: "left_behind", Value: len(r.LeftBehind)},
	}
}

func drillSheet(s *output.Sheet, r drill.Report) {
	s.Section("Investigation")
	for _, step := range r.Steps {
		s.Text(step.Title + " (took " + short(step.Took) + ", the runbook allows " + sandbox.FormatDuration(step.ETA) + ")")
		for _, a := range step.Answers {
			s.Text("  " + a)
		}
	}
	s.Section("Verdicts")
	rows := make([][]any, 0, len(r.Cases))
	for _, c := range r.Cases {
		rows = append(rows, []any{c.Name, c.Ref.String(), causeWord(c), string(c.Confidence), string(c.Outcome), verdictWord(c)})
	}
	s.Table([]string{"CASE", "REF", "CAUSE", "CONFIDENCE", "OUTCOME", "VERDICT"}, rows)
	for _, c := range r.Cases {
		s.Text(c.Name + ": " + c.About)
		for _, e := range c.Evidence {
			s.Text("  " + e.What + " = " + e.Value + " (" + e.Source + ")")
		}
	}
	s.Section("Result")
	s.Field("memory limit held by", string(r.Enforcement))
	s.Field("left behind", strconv.Itoa(len(r.LeftBehind)))
	if r.Kept {
		s.Field("kept", "for five minutes at most; `sbx drill --clean` removes them")
	}
}

// judged says that the rules were asked: not so in a drill that was interrupted.
func judged(c drill.Case) bool { return c.Confidence != "" }

func verdictWord(c drill.Case) string {
	switch {
	case c.OK:
		return "right"
	case !judged(c) && c.Why == "":
		return "not judged"
	}
	return "WRONG: " + c.Why
}

func causeWord(c drill.Case) string {
	if judged(c) && c.Cause == sandbox.CauseNone {
		return "none"
	}
	return string(c.Cause)
}

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

func cleanDrills(ctx context.Context, d *Deps, p *output.Printer, f *fleet.Fleet) error {
	endings, left, err := drill.Clean(ctx, f, d.by("drill --clean"))
	r := drill.Report{LeftBehind: left}
	for _, e := range endings {
		r.Cases = append(r.Cases, drill.Case{Ref: e.Ref, Outcome: e.Outcome, OK: e.Err == nil})
	}
	doc := output.Document{Schema: drillSchema, Fields: drillFields(r), Human: func(s *output.Sheet) {
		s.Text("removed " + strconv.Itoa(len(endings)) + ", left behind " + strconv.Itoa(len(left)))
	}}
	switch {
	case err != nil:
		return p.ShowAs(doc, err, err)
	case len(left) > 0:
		found := fault.New(fault.KindFound, "%d sandboxes of drills could not be removed", len(left))
		return p.ShowAs(doc, found, found)
	}
	return p.Show(doc)
}
