package runbook

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/cond"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
)

// refuseActs reports steps that act where the document only looks.
func (l *linter) refuseActs(path string, steps []Step, part string) {
	for i, s := range steps {
		if s.Act != nil {
			l.fail(
				fmt.Sprintf("%s[%d].act", path, i), RuleKind, fmt.Sprintf("step %s acts, and %s changes nothing", s.ID, part),
				"move it to the steps of a cause or of a procedure",
			)
		}
	}
}

func (l *linter) checkAct(path string, s Step, possible Word) {
	if s.Gate == "" {
		l.fail(path+".act", RuleGate, fmt.Sprintf("step %s is destructive and has no gate", s.ID), "gate: yes, count or name")
	}
	if s.Expect == "" || s.Within == 0 {
		l.fail(path+".act", RuleProof, fmt.Sprintf("step %s does not prove its effect", s.ID), "expect says what must hold afterwards, within says how soon")
	}
	a := s.Act
	if a.Action == "" { // it could not be read
		return
	}
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
	case a.Targets == "cause" && possible == "":
		l.fail(path+".act.targets", RuleKind, "only a step of a cause has the targets `cause`", "stuck, or named")
	}
	l.checkValues(path+".act", a)
	l.checkLine(path+".act", a.Command())
}

// checkValues reads the values of a cleanup as the act will, with placeholders filled by defaults.
func (l *linter) checkValues(path string, a *Act) {
	duration := func(text string) error { _, err := sandbox.ParseDuration(text); return err }
	for _, v := range []struct {
		key, text string
		read      func(string) error
	}{
		{"older_than", a.OlderThan, duration},
		{"idle_for", a.IdleFor, duration},
		{"if_usage_above", a.IfUsageAbove, func(text string) error { _, err := config.ParsePercent(text); return err }},
		{"where", string(a.Where), func(text string) error { _, err := selector.ParseWhere(text); return err }},
	} {
		if v.text == "" {
			continue
		}
		err := v.read(l.book.Fill(v.text))
		if err == nil {
			continue
		}
		at, message := l.placeOf(path+"."+v.key), strings.ReplaceAll(err.Error(), "\n", "; ")
		if e, ok := errors.AsType[*cond.Error](err); ok {
			message = e.Message
			if !strings.Contains(v.text, "{{") { // else the columns are those of the filled text
				at = l.book.source.within(path+"."+v.key, e.Line, e.Column, e.Width)
			}
		}
		l.add(path+"."+v.key, at, Error, RuleExpression, v.key+": "+message, fault.HintOf(err))
	}
}
