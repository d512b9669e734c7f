package end

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/jsontext"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// Plan is what the run would end at most.
func (r *CleanupResult) Plan() cleanup.Plan { return r.Survey.Plan(r.RunID) }

// AllowLine is the command line that was typed with the flags that its guards ask for; "" = no guard
// refuses the plan, or no flag allows it.
func (r *CleanupResult) AllowLine() string {
	flags, all := safety.OverrideFlags(r.Guards)
	if !all || len(flags) == 0 || len(r.run.req.Line) == 0 {
		return ""
	}
	return safety.RetryLine(r.run.req.Line, flags)
}

// countsByProvider says how many of the plan are at which provider, where there are several.
func (r *CleanupResult) countsByProvider() string {
	counts := map[string]int{}
	for _, j := range r.Survey.Selected {
		counts[j.Sandbox.Provider]++
	}
	return FormatShares(counts)
}

// FormatShares writes how a total is shared: " (e2b 17, novita 6)", "" for one share.
func FormatShares(counts map[string]int) string {
	if len(counts) < 2 {
		return ""
	}
	return " (" + ops.JoinCounts(counts) + ")"
}

// WriteCleanupPlan writes the file of a plan whole or not at all.
func WriteCleanupPlan(path string, plan cleanup.Plan) error {
	if err := hostfile.CheckOutput(path); err != nil {
		return err
	}
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetIndent("", "  ")
	to.SetEscapeHTML(false) // a person reads the condition of the plan
	if err := to.Encode(plan); err != nil {
		return err
	}
	if err := hostfile.Replace(path, text.Bytes(), 0o600); err != nil {
		return fault.New(fault.KindUnknown, "the plan cannot be written: %w", err).WithHint("check that the folder exists, that you may write to it, and that the disk is not full")
	}
	return nil
}

// maxPlanFile bounds a plan, in bytes: some hundred thousand sandboxes.
const maxPlanFile = 128 << 20

// ReadCleanupPlan reads the file of a plan, and refuses what is no plan, key by key.
func ReadCleanupPlan(ctx context.Context, path string) (cleanup.Plan, error) {
	var plan cleanup.Plan
	text, err := hostfile.File{Flag: "--apply", Path: path, Limit: maxPlanFile, Hint: "`sbx cleanup ... --out PLAN` writes one"}.Read(ctx)
	if err != nil {
		return plan, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&plan); err != nil {
		return plan, fault.Usage("--apply: %s is not a plan: %s", path, jsontext.Describe(err)).WithHint("`sbx cleanup ... --out PLAN` writes one")
	}
	return plan, nil
}

// goOn resumes a run that was cut off: what its journal shows to be done is left
// alone, everything else is read again and brought to its end.
func (r *cleanupRun) goOn(ctx context.Context) (*CleanupResult, error) {
	disk, err := r.env.Journals()
	if err != nil {
		return nil, err
	}
	return r.withRunLock(ctx, func(ctx context.Context) (*CleanupResult, error) {
		h, log, err := runs.ScanRun(disk, r.req.Resume)
		if err != nil {
			return nil, err
		}
		if err := mayResume(h); err != nil {
			return nil, err
		}
		if len(h.Open()) == 0 {
			r.watch.Note(h.RunID + " has nothing left to do")
		}
		if r.fleet, err = r.env.Only(ctx, h.Profiles()...); err != nil {
			return nil, err
		}
		rule, err := cleanup.RuleOf(h)
		if err != nil {
			return nil, err
		}
		w, err := r.env.Runs().Resume(disk, h, log, r.env.Actor(), r.watch)
		if err != nil {
			return nil, err
		}
		defer w.Close()
		r.id, r.rule = h.RunID, rule
		r.rule.Unowned = true // whose they are was judged when the run began; an owner that changed keeps them
		r.survey = cleanup.SurveyOf(h, r.rule, r.env.Now())
		return r.endTargets(ctx, w, cleanup.ResumedTargets(h))
	})
}

// mayResume says why a run cannot be resumed; nil = it can.
func mayResume(h runs.History) error {
	switch {
	case h.Begin.Verb != "" && h.Begin.Verb != runs.VerbCleanup:
		return fault.Usage("%s is a run of %s, which cannot be resumed", h.RunID, h.Begin.Verb).WithHint("run it again: it makes a new plan")
	case h.End != nil && h.End.Refused:
		return fault.New(fault.KindRefused, "%s was refused and terminated nothing: %s", h.RunID, h.End.Error).WithHint("start a new run")
	case h.Broken != "":
		return fault.New(fault.KindRefused, "the journal of %s was changed or damaged: %s", h.RunID, h.Broken).WithHint("start a new run")
	case len(h.Unreadable) > 0: // it may be what asked for an end, or what kept a sandbox on purpose
		return fault.New(fault.KindRefused, "%w", h.Unreadable.Error(h.RunID)).WithHint("what they say is not known, so the run is not resumed: start a new run, which judges every sandbox again")
	case h.StartedAt.IsZero():
		return fault.New(fault.KindRefused, "%s was interrupted before it had a plan", h.RunID).WithHint("start a new run")
	}
	return nil
}

// PlanListed plans the end of what the plan of a request names, or of what an interrupted run has left. Nothing is
// looked at before the act, which judges each of them again.
func PlanListed(ctx context.Context, env *ops.Env, req CleanupRequest, watch ops.Observer) (*ops.Act, error) {
	if err := env.MayChange(); err != nil {
		return nil, err
	}
	r, err := newCleanupRun(ctx, env, req, watch)
	if err != nil {
		return nil, err
	}
	what, items, err := r.listedItems()
	if err != nil {
		return nil, err
	}
	a := &ops.Act{Verb: "terminate", At: env.Now(), Targets: plannedItems(items), Line: req.Line, Named: req.Production, Execute: r.execute(req)}
	if len(items) == 0 && req.Plan == nil {
		return a, nil
	}
	for _, word := range safety.Answers(safety.AskCount, len(items), nil) {
		q := ops.AskEnd(word, "")
		q.Refusal = fault.New(fault.KindRefused, "%s: needs confirmation", what).WithHint("repeat with --yes")
		a.Asks = append(a.Asks, q)
	}
	watch.Note(what)
	return a, nil
}

// listedItems are what is left to end of a plan or a run, and a text about it.
func (r *cleanupRun) listedItems() (what string, items []runs.Item, err error) {
	if plan := r.req.Plan; plan != nil {
		return fmt.Sprintf("the plan of %s names %d sandboxes", plan.MadeAt.Format("15:04:05 UTC"), len(plan.Items)), plan.Items, r.checkPlan()
	}
	disk, err := r.env.Journals()
	if err != nil {
		return "", nil, err
	}
	h, _, err := runs.ScanRun(disk, r.req.Resume)
	if err == nil {
		err = mayResume(h)
	}
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%s has %d of %d sandboxes left", h.RunID, len(h.Open()), len(h.Begin.Plan.Items)), h.Open(), nil
}

// checkPlan refuses the plan of a file that is too old.
func (r *cleanupRun) checkPlan() error {
	if !r.req.PlanFromFile {
		return nil
	}
	return r.req.Plan.Check(r.env.Now(), r.req.MaxPlanAge)
}

// layerAndGap is the layer that this run belongs to and why it is no proof of it; both as
// the journal keeps them.
func (r *cleanupRun) layerAndGap() (layer, coverageGap string) {
	if r.req.PlanFromFile || r.req.Resume != "" || r.req.ProviderSide {
		return "", "its rule was not the rule of a layer"
	}
	l, coverageGap := r.cronRule().Layer()
	return string(l), coverageGap
}

// provenLayer is the layer that the run is a proof of; "" = none.
func (r *cleanupRun) provenLayer() string {
	if layer, coverageGap := r.layerAndGap(); coverageGap == "" {
		return layer
	}
	return ""
}

// metricSeries names the metrics of this run: the two lines of layer usage have separate files.
func (r *cleanupRun) metricSeries() string {
	layer := r.provenLayer()
	if r.req.Emergency && layer != "" {
		layer += "-emergency"
	}
	return layer
}

// cronRule is the rule of the run in the form that layers compare.
func (r *cleanupRun) cronRule() cron.Rule {
	rule := cron.Rule{Emergency: r.req.Emergency, UsageAbove: r.req.UsageAbove, Narrowing: r.narrowingFlags()}
	if !r.req.Emergency {
		rule.Stuck, rule.OlderThan = r.rule.Selector.Stuck, r.rule.Selector.OlderThan
	}
	return rule
}

// narrowingFlags names the flags by which a run does less than its layer.
func (r *cleanupRun) narrowingFlags() []string {
	s := r.rule.Selector
	var flags []string
	for _, f := range []struct {
		flag string
		set  bool
	}{
		{"only what was confirmed, and more was found since", r.narrowed},
		{"--state", len(s.States) > 0},
		{"--younger-than", s.YoungerThan > 0},
		{"--before", !s.Before.IsZero()},
		{"--after", !s.After.IsZero()},
		{"--label", len(s.Labels) > 0},
		{"--name", s.Name != ""},
		{"--task", s.Task != ""},
		{"--agent-type", s.AgentType != ""},
		{"--owner", s.Owner != ""},
		{"--template", s.Template != ""},
		{"--exit-code", s.ExitCode != nil},
		{"--where", !s.Where.IsZero()},
		{"--unhealthy", r.rule.Unhealthy},
		{"--idle-for", r.rule.IdleFor > 0 && r.rule.IdleFor > r.env.Thresholds(sandbox.Sandbox{}).Inactivity},
	} {
		if f.set {
			flags = append(flags, f.flag)
		}
	}
	return flags
}

// profileStatus says when a profile was last in order, by the runs of this run's own
// layer; of a run without a layer, by those of the same rule.
func (r *cleanupRun) profileStatus(runs []runs.History, profile string) cron.Status {
	layer := r.provenLayer()
	var mine []cron.Run
	for _, h := range runs {
		if !slices.Contains(h.Profiles(), profile) || h.Begin.Proven() != layer {
			continue
		}
		if rule, err := cleanup.RuleOf(h); layer == "" && (err != nil || !sameRule(rule, r.rule)) {
			continue
		}
		run := cleanup.CronRun(h)
		run.Layer, run.CoverageGap = cron.Layer(layer), "" // it is held against its own rule alone
		mine = append(mine, run)
	}
	expected := cron.Expected{Layers: []cron.Layer{cron.Layer(layer)}, Every: max(r.req.Every, time.Minute), Profiles: []string{profile}}
	return cron.Judge([]cron.Expected{expected}, mine, r.env.Now())[0]
}

// sameRule compares rules as the journal keeps them.
func sameRule(a, b cleanup.Rule) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
