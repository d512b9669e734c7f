package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/reconcile"
)

// layer is the layer that this run belongs to and why it is no proof of it; both as
// the journal keeps them.
func (r *cleanupRun) layer() (layer, shortfall string) {
	if r.o.apply != "" || r.o.resume != "" || r.o.providerSide {
		return "", "its rule was not that of a layer"
	}
	l, shortfall := r.cronRule().Layer()
	return string(l), shortfall
}

// proven is the layer that the run is a proof of; "" = none.
func (r *cleanupRun) proven() string {
	if layer, shortfall := r.layer(); shortfall == "" {
		return layer
	}
	return ""
}

// series is what tells the metrics of this run from those of other layers: the two
// lines of layer usage have files of their own.
func (r *cleanupRun) series() string {
	layer := r.proven()
	if r.o.emergency && layer != "" {
		layer += "-emergency"
	}
	return layer
}

// cronRule is the rule of the run as the layers know rules.
func (r *cleanupRun) cronRule() cron.Rule {
	rule := cron.Rule{Emergency: r.o.emergency, UsageAbove: r.usageAbove, Narrowing: r.narrowing()}
	if !r.o.emergency {
		rule.Stuck, rule.OlderThan = r.rule.Selector.Stuck, r.rule.Selector.OlderThan
	}
	return rule
}

// narrowing names the flags by which a run does less than its layer.
func (r *cleanupRun) narrowing() []string {
	s := r.rule.Selector
	var flags []string
	for _, f := range []struct {
		flag string
		set  bool
	}{
		{"a plan that was read before", r.planned},
		{"--state", len(s.States) > 0},
		{"--younger-than", s.YoungerThan > 0},
		{"--before", !s.Before.IsZero()},
		{"--after", !s.After.IsZero()},
		{"--label", len(s.Labels) > 0},
		{"--name", s.Name != ""},
		{"--task", s.Task != ""},
		{"--agent-type", s.AgentType != ""},
		{"--owner", s.Owner != ""},
		{"--unhealthy", r.rule.Unhealthy},
		{"--notify-before", r.rule.NotifyBefore > 0},
		{"--idle-for", r.rule.IdleFor > cleanup.DefaultIdleFor},
	} {
		if f.set {
			flags = append(flags, f.flag)
		}
	}
	return flags
}

// layer is that of a run of reconcile that looks or acts.
func (o *reconcileOptions) layer(r reconcile.Rules) (layer, shortfall string) {
	rule := cron.Rule{Reconcile: true}
	for _, f := range []struct {
		flag string
		set  bool
	}{
		{"--adopt", r.Adopt},
		{"--observations", r.Observations > reconcile.DefaultObservations},
		{"--grace", r.Grace > reconcile.DefaultGrace},
		{"--create-grace", r.CreateGrace > reconcile.DefaultCreateGrace},
		{"--max-records-age", r.RecordsAge < reconcile.DefaultRecordsAge},
	} {
		if f.set {
			rule.Narrowing = append(rule.Narrowing, f.flag)
		}
	}
	l, shortfall := rule.Layer()
	return string(l), shortfall
}

// cronRun is a recorded run as the layers judge it. One that cannot be trusted has
// succeeded nowhere.
func cronRun(h cleanup.History) cron.Run {
	run := cron.Run{
		Layer: cron.Layer(h.Begin.Layer), Shortfall: h.Begin.Shortfall, StartedAt: h.StartedAt, EndedAt: h.EndedAt,
		ExitCode: h.ExitCode(), Succeeded: h.Succeeded(), Unowned: h.Unowned(),
	}
	if h.End != nil {
		run.Error = h.End.Error
	}
	if run.Layer == "" && run.Shortfall == "" {
		run.Shortfall = cron.ShortfallNoLayer
	}
	return run
}

// cronRuns are the recorded runs of a verb, "" of any. A journal that cannot be read or
// trusted proves no run, and is an error beside the others.
func (e *Env) cronRuns(ctx context.Context, verb string) ([]cron.Run, []error) {
	list, errs := e.histories(ctx, verb, statusRuns)
	c, err := e.Config()
	if err != nil {
		return nil, append(errs, err)
	}
	open := undecided(c)
	var runs []cron.Run
	for _, h := range list {
		if h.Broken != "" {
			continue
		}
		run := cronRun(h)
		maps.DeleteFunc(run.Unowned, func(profile string, _ int) bool { return !slices.Contains(open, profile) }) // decided since
		runs = append(runs, run)
	}
	return runs, errs
}

// profileStatus says when a profile was last in order, by the runs of this run's own
// layer; of a run without a layer, by those of the same rule.
func (r *cleanupRun) profileStatus(runs []cleanup.History, profile string) cron.Status {
	layer := r.proven()
	var mine []cron.Run
	for _, h := range runs {
		if !slices.Contains(h.Profiles(), profile) || h.Begin.Proven() != layer {
			continue
		}
		if layer == "" && !sameRule(h.Begin.Plan.Rule, r.rule) {
			continue
		}
		run := cronRun(h)
		run.Layer, run.Shortfall = cron.Layer(layer), "" // it is held against its own rule alone
		mine = append(mine, run)
	}
	expected := cron.Expected{Layers: []cron.Layer{cron.Layer(layer)}, Every: max(r.every, time.Minute), Profiles: []string{profile}}
	return cron.Judge([]cron.Expected{expected}, mine, r.d.now())[0]
}

// sameRule compares rules as the journal keeps them.
func sameRule(a, b cleanup.Rule) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// profileNames are the names of the profiles that verbs work on.
func (e *Env) profileNames() ([]string, error) {
	c, err := e.Config()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range c.Selected() {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return nil, fault.Usage("no profile is selected").WithHint("`%s providers` lists them", e.Process.Name())
	}
	return names, nil
}

// expectedLayers are the layers that should run, over the profiles that verbs work on.
func (e *Env) expectedLayers(wanted []cron.Layer) ([]cron.Expected, error) {
	names, err := e.profileNames()
	if err != nil {
		return nil, err
	}
	c, err := e.Config()
	if err != nil {
		return nil, err
	}
	list := make([]cron.Expected, len(wanted))
	for i, l := range wanted {
		list[i] = cron.Expect(l, names)
		if l == cron.Usage {
			list[i].Profiles, list[i].Unmeasured = e.measured(c.Selected())
		}
	}
	return list, nil
}
