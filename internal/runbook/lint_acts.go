package runbook

import (
	"fmt"
	"slices"
	"strings"
)

// refuseActs reports steps that act where the document only looks.
func (l *linter) refuseActs(path string, steps []Step, part string) {
	for i, s := range steps {
		if s.Act != nil {
			l.fail(fmt.Sprintf("%s[%d].act", path, i), RuleKind, fmt.Sprintf("step %s acts, and %s changes nothing", s.ID, part), "move it to the steps of a cause or of a procedure")
		}
	}
}

func (l *linter) checkAct(path string, s Step, theory Word) {
	if s.Gate == "" {
		l.fail(path+".act", RuleGate, fmt.Sprintf("step %s is destructive and has no gate", s.ID), "gate: yes, count or name")
	}
	if s.Expect == "" || s.Within == 0 {
		l.fail(path+".act", RuleProof, fmt.Sprintf("step %s does not prove its effect", s.ID), "expect says what must hold afterwards, within says how soon")
	}
	a := s.Act
	for _, f := range []struct {
		key   string
		given bool
	}{
		{"targets", a.Targets != ""},
		{"stuck", a.Stuck},
		{"older_than", a.OlderThan != ""},
		{"include_failed", a.IncludeFailed},
		{"idle_for", a.IdleFor != ""},
		{"where", a.Where != ""},
		{"if_usage_above", a.IfUsageAbove != ""},
		{"emergency", a.Emergency},
		{"records", a.Records != ""},
	} {
		if f.given && !slices.Contains(a.options(), f.key) {
			l.fail(path+".act."+f.key, RuleKind, fmt.Sprintf("%s takes no %s", a.Action, f.key), "it takes "+strings.Join(a.options(), ", "))
		}
	}
	switch {
	case a.Targets == "" && slices.Contains(a.options(), "targets"):
		l.fail(path+".act", RuleKind, string(a.Action)+" has no targets", "targets: cause, stuck or named")
	case a.Targets == "cause" && theory == "":
		l.fail(path+".act.targets", RuleKind, "only a step of a cause has the targets `cause`", "stuck, or named")
	}
	l.checkLine(path+".act", a.Command())
}
