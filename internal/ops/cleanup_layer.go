package ops

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
)

// layerAndShortfall is the layer that this run belongs to and why it is no proof of it; both as
// the journal keeps them.
func (r *cleanupRun) layerAndShortfall() (layer, shortfall string) {
	if r.req.PlanFromFile || r.req.Resume != "" || r.req.ProviderSide {
		return "", "its rule was not that of a layer"
	}
	l, shortfall := r.cronRule().Layer()
	return string(l), shortfall
}

// provenLayer is the layer that the run is a proof of; "" = none.
func (r *cleanupRun) provenLayer() string {
	if layer, shortfall := r.layerAndShortfall(); shortfall == "" {
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
		{"a plan that was read before", r.narrowed},
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

// profileStatus says when a profile was last in order, by the runs of this run's own
// layer; of a run without a layer, by those of the same rule.
func (r *cleanupRun) profileStatus(runs []cleanup.History, profile string) cron.Status {
	layer := r.provenLayer()
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
	expected := cron.Expected{Layers: []cron.Layer{cron.Layer(layer)}, Every: max(r.req.Every, time.Minute), Profiles: []string{profile}}
	return cron.Judge([]cron.Expected{expected}, mine, r.env.Now())[0]
}

// sameRule compares rules as the journal keeps them.
func sameRule(a, b cleanup.Rule) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
