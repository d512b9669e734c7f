package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

const (
	keyThresholds = "thresholds"
	keyAgentTypes = "agent_types"
	keyStuckAge   = "stuck_age"
)

// thresholdSetting is one limit of the rules as data. Its default is that of the rules.
type thresholdSetting struct {
	name string // its key; "escalate.for" is the key "for" of the table "escalate"
	kind providers.OptionKind
	of   func(*triage.Thresholds) any // the field: *time.Duration, *int, or *float64 for a percentage
	help string
	// perAgentType marks what is judged of one sandbox: an agent type may have its own.
	perAgentType bool
}

func thresholdSettings() []thresholdSetting {
	type limits = triage.Thresholds
	const count, duration = providers.OptionCount, providers.OptionDuration
	return []thresholdSetting{
		{name: "active", kind: count, of: func(t *limits) any { return &t.ActiveMax }, help: "more running sandboxes at one profile are critical"},
		{name: "active_normal", kind: count, of: func(t *limits) any { return &t.ActiveNormal }, help: "fewer are running under normal load"},
		{name: "sustained", kind: duration, of: func(t *limits) any { return &t.Sustained }, help: "more than `active` for this long is an alert"},
		{name: "escalate.active", kind: count, of: func(t *limits) any { return &t.EscalateActive }, help: "more than these are escalated"},
		{name: "escalate.for", kind: duration, of: func(t *limits) any { return &t.EscalateFor }, help: "after this long"},
		{name: "timeout_rate_high", kind: kindPercent, of: func(t *limits) any { return &t.TimeoutRateHigh }, help: "a higher share of timeouts is an alert"},
		{name: "timeout_rate_good", kind: kindPercent, of: func(t *limits) any { return &t.TimeoutRateGood }, help: "a lower share is good"},
		{name: "quota_near", kind: kindPercent, of: func(t *limits) any { return &t.QuotaNear }, help: "share of a quota from which it is nearly used up"},
		{name: "cleanup_every", kind: duration, of: func(t *limits) any { return &t.CleanupEvery }, help: "how often cleanup should run"},
		{name: keyStuckAge, kind: duration, of: func(t *limits) any { return &t.StuckAge }, perAgentType: true, help: "an inactive sandbox that is older is stuck"},
		{name: "watch_age", kind: duration, of: func(t *limits) any { return &t.WatchAge }, perAgentType: true, help: "an older sandbox is worth a look"},
		{
			name: "provisioning_age", kind: duration, of: func(t *limits) any { return &t.ProvisioningAge }, perAgentType: true,
			help: "a sandbox that is provisioned for longer is stuck",
		},
		{
			name: "ending_age", kind: duration, of: func(t *limits) any { return &t.EndingAge }, perAgentType: true,
			help: "a sandbox that is terminating for longer is stuck",
		},
		{name: "inactivity", kind: duration, of: func(t *limits) any { return &t.Inactivity }, perAgentType: true, help: "a longer silence is inactivity"},
		{
			name: "busy_silence", kind: duration, of: func(t *limits) any { return &t.BusySilence }, perAgentType: true,
			help: "how long a busy processor excuses silence",
		},
		{
			name: "failed_probes", kind: count, of: func(t *limits) any { return &t.FailedProbes }, perAgentType: true,
			help: "this many failed probes in a row mean that nothing inside answers",
		},
		{
			name: "repeat_timeouts", kind: count, of: func(t *limits) any { return &t.RepeatTimeouts }, perAgentType: true,
			help: "this many time limits hit by one sandbox are repeated",
		},
	}
}

// scope is what a threshold holds for. An empty name stands for all.
type scope struct{ profile, agentType string }

func (s scope) settingKey(name string) string {
	key := keyThresholds
	if s.profile != "" {
		key = optionKey(s.profile, keyThresholds)
	}
	if s.agentType != "" {
		key += "." + keyAgentTypes + "." + strings.ToLower(s.agentType)
	}
	return key + "." + name
}

// thresholdReaders adds what reads the thresholds of all profiles, or of one.
func (d *decoder) thresholdReaders(of scope, all readers) {
	for _, m := range thresholdSettings() {
		all[keyThresholds+"."+m.name] = d.threshold(of, m)
	}
	all[keyThresholds+"."+keyAgentTypes] = func(v value) {
		for _, kind := range d.Pairs(v, keyAgentTypes) {
			name, ok := d.readText(value{Node: kind.Key}, "an agent type")
			if !ok {
				continue
			}
			narrow, own := scope{of.profile, name}, readers{}
			for _, m := range thresholdSettings() {
				if m.perAgentType {
					own[m.name] = d.threshold(narrow, m)
				}
			}
			d.readTable(kind, "agent type "+name, own)
		}
	}
}

func (d *decoder) threshold(of scope, m thresholdSetting) func(value) {
	read := d.setting(of.settingKey(m.name), ofKind(m.kind))
	return func(v value) {
		d.doc.scopes = append(d.doc.scopes, of)
		read(v)
	}
}

// resolveThresholds builds the thresholds of every profile and agent type, and checks whether they
// contradict each other.
func (l *loader) resolveThresholds() {
	book := &l.config.Thresholds
	book.Default = triage.DefaultThresholds()
	for _, p := range l.config.Profiles {
		if p.AgeOnly() {
			book.Overrides = append(book.Overrides, triage.Override{Profile: p.Name, Set: triage.Thresholds{AgeOnly: true}})
		}
		for kind, age := range p.StuckAfter() {
			l.refuseSecondStuckAge(p, kind)
			book.Overrides = append(book.Overrides, triage.Override{Profile: p.Name, AgentType: kind, Set: triage.Thresholds{StuckAge: age}})
		}
	}
	for _, of := range l.scopes() {
		o := triage.Override{Profile: of.profile, AgentType: of.agentType}
		for _, m := range thresholdSettings() {
			if e, ok := l.layers.lookup(of.settingKey(m.name)); ok {
				m.put(&o.Set, e.text)
			}
		}
		book.Overrides = append(book.Overrides, o)
	}
	for _, of := range l.scopes() {
		l.checkThresholds(of, book.For(sandbox.Sandbox{Provider: of.profile, AgentType: of.agentType}))
	}
}

// scopes lists what the file sets thresholds for, each once.
func (l *loader) scopes() []scope {
	var all []scope
	for _, of := range l.doc.scopes {
		if of.agentType = strings.ToLower(of.agentType); !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all
}

// refuseSecondStuckAge refuses a stuck age that two keys of one profile set.
func (l *loader) refuseSecondStuckAge(p Profile, agentType string) {
	second := scope{p.Name, agentType}.settingKey(keyStuckAge)
	if e, ok := l.layers.lookup(second); ok {
		first, _ := l.layers.lookup(optionKey(p.Name, providers.OptionStuckAfter))
		l.addError("%s: %s is set already by stuck_after of profile %s (%s): remove one", e.origin, second, p.Name, first.origin)
	}
}

// explainThresholds shows the thresholds of all profiles, and those that a profile or an agent
// type has of its own.
func (l *loader) explainThresholds() {
	t := triage.DefaultThresholds()
	scopes := l.scopes()
	if !slices.Contains(scopes, scope{}) {
		scopes = append([]scope{{}}, scopes...)
	}
	for _, of := range scopes {
		for _, m := range thresholdSettings() {
			e, ok := l.layers.lookup(of.settingKey(m.name))
			if !ok && of == (scope{}) {
				e, ok = entry{text: m.text(&t), origin: originDefault}, true
			}
			if ok {
				l.showValue(of.settingKey(m.name), e, false)
			}
		}
	}
}

// put sets the field to a text that was checked as it was read.
func (m thresholdSetting) put(t *triage.Thresholds, text string) {
	n, err := parseAmount(m.kind, text)
	if err != nil {
		return
	}
	switch field := m.of(t).(type) {
	case *time.Duration:
		*field = time.Duration(n)
	case *int:
		*field = int(n)
	case *float64:
		*field = float64(n) / 100
	}
}

// amount is the field as a number, to compare it with another of its kind.
func (m thresholdSetting) amount(t *triage.Thresholds) float64 {
	switch field := m.of(t).(type) {
	case *time.Duration:
		return field.Seconds()
	case *int:
		return float64(*field)
	case *float64:
		return *field
	}
	return 0
}

// text is the field as a file writes it.
func (m thresholdSetting) text(t *triage.Thresholds) string {
	switch field := m.of(t).(type) {
	case *time.Duration:
		return sandbox.FormatDuration(*field)
	case *float64:
		return strconv.FormatFloat(math.Round(*field*100), 'f', -1, 64) + "%"
	}
	return fmt.Sprint(m.amount(t))
}

// starterThresholds writes the thresholds of the starter file.
func starterThresholds(b *strings.Builder) {
	b.WriteString("\n# The limits by which sandboxes and fleets are judged; a profile may have its own. Those of one\n" +
		"# sandbox may differ by agent type: agent_types: {implementation: {stuck_age: 20m}}.\n#thresholds:\n")
	t := triage.DefaultThresholds()
	last := ""
	for _, m := range thresholdSettings() {
		table, key, nested := strings.Cut(m.name, ".")
		indent := ""
		if nested {
			if table != last {
				fmt.Fprintf(b, "#  %s:\n", table)
			}
			indent = "  "
		} else {
			key = m.name
		}
		last = table
		fmt.Fprintf(b, "#  %s%s: %s # %s\n", indent, key, m.text(&t), m.help)
	}
}
