package end

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// layerAndGap is the layer of defence that this run belongs to, and why it does not prove that the layer works, both as
// the journal keeps them; "" = none.
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
