package cleanup_test

import (
	"slices"
	"strings"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/testkit/schedule"
	"sbx/internal/triage"
)

// order is what the operator asked for. The oracle evaluates it by itself, without
// cleanup.Rule.
type order struct {
	olderThan, failedOlderThan, idleFor time.Duration
	stuck                               bool
	state                               sandbox.State // "" = any
	label                               string        // key=value; "" = any
	ignoreActivity, includePaused       bool
	unowned, delete                     bool

	maxDelete, maxFraction int
	production             []string

	wait, lockWait time.Duration
	slots          int
}

// rule is the order as a cleanup.Rule.
func (o order) rule(m mutation) cleanup.Rule {
	r := cleanup.Rule{
		Selector:        selector.Selector{OlderThan: o.olderThan, Stuck: o.stuck},
		FailedOlderThan: o.failedOlderThan, IdleFor: o.idleFor, IgnoreActivity: o.ignoreActivity,
		IncludePaused: o.includePaused, Unowned: o.unowned, Delete: o.delete,
	}
	if o.state != "" {
		r.Selector.States = []sandbox.State{o.state}
	}
	if key, value, labelled := strings.Cut(o.label, "="); labelled {
		r.Selector.Labels = []selector.Label{{Key: key, Values: []string{value}}}
	}
	if m.rule != nil {
		m.rule(&r)
	}
	return r
}

// world is the configuration for one process.
func (s *sim) world(inc *incarnation, o order) cleanup.Environment {
	book := triage.ThresholdBook{Default: triage.DefaultThresholds()}
	w := cleanup.Environment{
		Now:        inc.now,
		Limits:     safety.Limits{MaxDelete: o.maxDelete, MaxFraction: o.maxFraction, Allowed: o.production},
		Thresholds: func(sb sandbox.Sandbox) triage.Thresholds { return book.For(sb) },
		Protected:  safety.Protection{Now: inc.now, Configured: func(one sandbox.Sandbox) bool { return s.protect[one.Ref()] }}.ByRule,
	}
	for _, c := range s.clouds {
		p := cleanup.Profile{Name: c.name, OwnedRule: c.owned}
		if c.owned != "all" {
			p.Owns = c.owns
		}
		w.Profiles = append(w.Profiles, p)
		if c.production {
			w.Limits.Production = append(w.Limits.Production, c.name)
		}
		if c.ageOnly {
			book.Overrides = append(book.Overrides, triage.Override{Profile: c.name, Set: triage.Thresholds{AgeOnly: true}})
		}
		for agent, age := range c.stuckAfter {
			book.Overrides = append(book.Overrides, triage.Override{Profile: c.name, AgentType: agent, Set: triage.Thresholds{StuckAge: age}})
		}
	}
	if s.mut.world != nil {
		s.mut.world(&w)
	}
	return w
}

// makeOrder chooses one.
func (s *sim) makeOrder() order {
	r := s.rng
	o := order{
		idleFor: schedule.Pick(r, 0, time.Minute, 5*time.Minute), ignoreActivity: r.Float64() < 0.15, includePaused: r.Float64() < 0.3,
		unowned: r.Float64() < 0.15, delete: r.Float64() < 0.35,
		maxDelete: schedule.Pick(r, 20, 20, 20, 5, 2), maxFraction: schedule.Pick(r, 100, 100, 50, 25),
		wait: schedule.Pick(r, 30*time.Second, 5*time.Second), lockWait: schedule.Pick(r, 0, 2*time.Minute), slots: schedule.Pick(r, 16, 4, 1),
	}
	switch r.IntN(10) {
	case 0, 1, 2:
		o.stuck = true
	case 3:
		o.failedOlderThan = schedule.Pick(r, time.Minute, 30*time.Minute)
	case 4:
		o.failedOlderThan, o.olderThan = schedule.Pick(r, time.Minute, 30*time.Minute), 10*time.Minute
	case 5:
		o.state, o.olderThan = schedule.Pick(r, sandbox.StateRunning, sandbox.StatePaused, sandbox.StateFailed), 10*time.Minute
	case 6:
		o.label, o.olderThan = "team=agents", 10*time.Minute
	default:
		o.olderThan = schedule.Pick(r, 5*time.Minute, 10*time.Minute, time.Hour)
	}
	for _, c := range s.clouds {
		if c.production && r.Float64() < 0.5 {
			o.production = append(o.production, c.name)
		}
	}
	slices.Sort(o.production)
	return o
}
