package runbook

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/check"
	"sbx/internal/cond"
	"sbx/internal/config"
	"sbx/internal/ops/look"
	"sbx/internal/requirement"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/triage"
)

// Collector is one read that a step may ask for. It changes nothing.
type Collector struct {
	ID      string
	Title   string
	ETA     time.Duration // for a person who types Command; 0 = the step says it
	Command string        // without the program's name
	Without string        // how a person reads it who has no sbx; "" = not at all
	// Gives are the beginnings of the names that it reads.
	Gives []string
}

// Collectors are all collectors: the five steps of the investigation, then single reads.
func Collectors() []Collector {
	by := map[string]Collector{
		"count": {
			Command: "stats", Without: "the dashboard of the provider; MonoTask: `GET /api/sandbox/stats`",
			Gives: []string{"stats.", "create_failures", "quota."},
		},
		"stuck": {
			Command: "ls --stuck", Without: "list the sandboxes with state, age, agent type and task; MonoTask: `GET /api/sandbox/list`",
			Gives: []string{"stats.stuck", "stats.unjudged", "diagnose.", "sandbox."},
		},
		"logs": {
			Command: "logs REF --patterns", Without: "read the log of each suspicious sandbox; MonoTask: `GET /api/sandbox/{id}/logs`",
			Gives: []string{"diagnose."},
		},
		"resources": {
			Command: "top", Without: "processor, memory and operations of each one, twice; MonoTask: `GET /api/sandbox/{id}/resources`",
			Gives: []string{"diagnose.", "sandbox."},
		},
		"cleanup": {Command: "cleanup status", Without: "the log of the cleanup job, filtered by `sandbox.*cleanup`", Gives: []string{"cleanup."}},
	}
	var all []Collector
	for _, s := range triage.InvestigationSteps() {
		c := by[s.ID]
		c.ID, c.Title, c.ETA = s.ID, s.Title, s.ETA
		all = append(all, c)
	}
	return append(all,
		Collector{
			ID: "diagnose", Title: "Investigate all sandboxes", Command: "diagnose",
			Gives: []string{"stats.", "create_failures", "quota.", "cleanup.", "diagnose.", "sandbox."},
		},
		Collector{ID: "inspect", Title: "Look at one sandbox", Command: "inspect REF", Gives: []string{"diagnose.", "sandbox."}},
		Collector{ID: "verify", Title: "Compare with the targets", Command: "verify", Gives: []string{"verify.", "stats.", "quota.", "cleanup.", "create_failures"}},
		Collector{ID: "quota", Title: "Check the quotas", Command: "doctor", Gives: []string{"quota."}},
		Collector{ID: "records", Title: "Compare records with sandboxes", Command: "reconcile --check", Gives: []string{"records."}},
		Collector{ID: "tasks", Title: "Check the figures of tasks", Command: "report", Gives: []string{"tasks."}},
		Collector{ID: "cron", Title: "Check the cron jobs", Command: "cron check", Gives: []string{"cleanup."}},
		Collector{ID: "doctor", Title: "Check the tool and its providers", Command: "doctor", Gives: []string{"quota."}},
	)
}

func findCollector(id Word) (Collector, bool) {
	all := Collectors()
	i := slices.IndexFunc(all, func(c Collector) bool { return c.ID == string(id) })
	if i < 0 {
		return Collector{}, false
	}
	return all[i], true
}

func collectorIDs() []string {
	var ids []string
	for _, c := range Collectors() {
		ids = append(ids, c.ID)
	}
	return ids
}

// possibleCauseNeeds are the collectors of which one must have run for a cause to be named; those of
// an exit are known to `inspect` and to the record of a task.
func possibleCauseNeeds(possible string) []string {
	switch possible {
	case "infinite_loop", "memory_leak":
		return []string{"resources", "inspect", "diagnose"}
	case "external_hang", "silent":
		return []string{"resources", "logs", "inspect", "diagnose"}
	case "cleanup_not_running":
		return []string{"cleanup", "cron", "diagnose"}
	case "state_corruption":
		return []string{"records", "cleanup", "diagnose"}
	case "resource_exhaustion":
		return []string{"count", "quota", "diagnose"}
	}
	return []string{"stuck", "inspect", "tasks", "diagnose"}
}

// ForCause is the shipped runbook about a cause; the one table between the ids of causes and
// those of runbooks.
func ForCause(possible string) string {
	switch possible {
	case "cleanup_not_running":
		return "cleanup-not-running"
	case "state_corruption", "no_owner", "orphan":
		return "state-drift"
	case "resource_exhaustion", "provisioning":
		return "provisioning-failing"
	case "oom", "oom_child", "runtime_heap", "memory_watchdog", "memory_leak", "supervisor_lost":
		return "sigkill-137"
	case "stopped":
		return "cancel-does-not-stop"
	}
	return triage.StuckRunbook
}

// SeeAlso is the runbook about a cause where that is another one; "" = none. Of a shipped runbook it
// is that of the table.
func (r *Runbook) SeeAlso(c Cause) string {
	see := string(c.See)
	if see == "" && r.Origin.Shipped {
		see = ForCause(string(c.PossibleCause))
	}
	if see == string(r.Metadata.ID) {
		return ""
	}
	return see
}

// Known is what a diagnosis knows of the cause: its title and symptoms.
func (c Cause) Known() triage.PossibleCause {
	for _, t := range triage.PossibleCauses() {
		if t.ID == string(c.PossibleCause) {
			return t
		}
	}
	return triage.PossibleCause{ID: string(c.PossibleCause), Title: string(c.PossibleCause)}
}

// Facts are what collectors have read of one provider.
type Facts struct {
	check.Subject

	Checks     map[string]sandbox.Verdict // of verify, by id
	Cause      string                     // the first one of the diagnosis, by its id; NoCause = it names none; "" = not known
	Confidence sandbox.Confidence
	Sandbox    *selector.Subject // of the one under the condition; nil = none
}

// NoCause is diagnose.cause where a diagnosis that could read everything names no cause.
const NoCause = "none"

// Schema is what conditions of a runbook may use: the names of alerts, of the settings, of the
// checks of verify, of the diagnosis, and of one sandbox.
func Schema(vars []Var) cond.Schema[*Facts] {
	type name = cond.Name[*Facts]
	s := cond.Schema[*Facts]{Hint: "the names are alert.ID, verify.ID, diagnose.cause, sandbox.NAME, thresholds.NAME, vars.NAME and those of `sbx help conditions`"}
	for _, n := range check.Schema().Names {
		s.Names = append(s.Names, name{Name: n.Name, Kind: n.Kind, Unit: n.Unit, Title: n.Title, Meaning: n.Meaning, Words: n.Words, Value: func(f *Facts) cond.Value { return n.Value(&f.Subject) }})
	}
	for _, setting := range config.DefaultSettings() {
		if setting.Amount != nil {
			s.Names = append(s.Names, name{Name: setting.Key, Kind: cond.KindNumber, Unit: unitOf(setting.Unit), Meaning: setting.Help, Value: func(f *Facts) cond.Value { return cond.Number(setting.Amount(f.Limits)) }})
		}
	}
	for _, f := range look.VerifyFigures() {
		n := name{Name: verifyPrefix + f.ID, Kind: cond.KindBool, Title: "target met for " + f.Title, Meaning: "whether the target is met: " + f.Title, Value: func(facts *Facts) cond.Value {
			return verdictValue(facts.Checks[f.ID])
		}}
		old := n
		old.Name = verifyPrefix + requirement.Of(f.ID)
		s.Names = append(s.Names, n, old)
	}
	possibles := []string{NoCause}
	for _, t := range triage.PossibleCauses() {
		possibles = append(possibles, t.ID)
	}
	for _, r := range check.Alerts() {
		s.Names = append(s.Names, name{Name: alertPrefix + r.ID, Kind: cond.KindBool, Title: r.Title, Meaning: "whether the condition of the alert holds now: " + r.Title, Value: func(f *Facts) cond.Value {
			return verdictValue(r.Judge(&f.Subject))
		}})
	}
	s.Names = append(s.Names,
		name{Name: "diagnose.cause", Kind: cond.KindText, Title: "likeliest cause", Words: possibles, Label: triage.PossibleCauseLabel, Meaning: "the likeliest cause", Value: func(f *Facts) cond.Value { return cond.Text(f.Cause) }},
		name{Name: "diagnose.confidence", Kind: cond.KindText, Meaning: "how sure the cause is", Words: []string{string(sandbox.Certain), string(sandbox.Probable), string(sandbox.Hint), string(sandbox.ConfidenceUnknown)}, Value: func(f *Facts) cond.Value { return cond.Text(f.Confidence) }},
	)
	for _, n := range selector.ConditionNames() {
		s.Names = append(s.Names, name{Name: "sandbox." + n.Name, Kind: n.Kind, Unit: n.Unit, Meaning: n.Meaning, Words: n.Words, Look: n.Look, Value: func(f *Facts) cond.Value {
			if f.Sandbox == nil {
				return cond.Unread("known only with --ref REF")
			}
			return n.Value(f.Sandbox)
		}})
	}
	for _, v := range vars {
		amount, unit, err := v.amount()
		if err == nil {
			s.Names = append(s.Names, name{Name: "vars." + string(v.ID), Kind: cond.KindNumber, Unit: unit, Meaning: v.About, Value: func(*Facts) cond.Value { return cond.Number(amount) }})
		}
	}
	return s
}

// Beginnings of the names of the checks of verify, and of alerts.
const (
	verifyPrefix = "verify."
	alertPrefix  = "alert."
)

// AlertIDs are the ids of the alerts of sbx.
func AlertIDs() []string {
	var ids []string
	for _, r := range check.Alerts() {
		ids = append(ids, r.ID)
	}
	return ids
}

// CheckedAlert is the alert whose condition a step consists of.
func (s Step) CheckedAlert() (check.Check, bool) {
	id, ok := strings.CutPrefix(string(s.Check), alertPrefix)
	if !ok {
		return check.Check{}, false
	}
	return check.Alert(id)
}

func verdictValue(v sandbox.Verdict) cond.Value {
	switch v {
	case sandbox.True:
		return cond.Bool(true)
	case sandbox.False:
		return cond.Bool(false)
	case sandbox.Unknown:
	}
	return cond.Absent()
}

func unitOf(u config.Unit) cond.Unit {
	switch u {
	case config.UnitSeconds:
		return cond.UnitSeconds
	case config.UnitRatio:
		return cond.UnitRatio
	case config.UnitCount:
	}
	return cond.UnitCount
}

// amount is the value of a variable in its unit.
func (v Var) amount() (float64, cond.Unit, error) {
	text := string(v.Default)
	if share, ok := strings.CutSuffix(text, "%"); ok {
		n, err := strconv.ParseFloat(share, 64)
		return n / 100, cond.UnitRatio, err
	}
	if d, err := sandbox.ParseDuration(text); err == nil {
		return d.Seconds(), cond.UnitSeconds, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, cond.UnitCount, err
}
