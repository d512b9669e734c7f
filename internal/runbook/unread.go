package runbook

import (
	"regexp"
	"slices"
	"strings"
)

// explains says that a finding about the value of a path may follow from a value that could not be read, which
// is reported already: a step whose `gate` is misspelt has no gate.
func (s source) explains(path string, rule Rule) bool {
	item := path[:strings.LastIndexByte(path, ']')+1]
	list := item[:max(0, strings.LastIndexByte(item, '['))]
	switch {
	case s.lost(path):
		return true
	case rule == RuleSyntax:
		return s.lost(item, "title", "collect", "check")
	case rule == RuleKind:
		return s.lost(item, "collect", "check", "manual", "confirm", "act", "wait_until", "alert", "when")
	case rule == RuleGate:
		return s.lost(item, "gate")
	case rule == RuleProof:
		return s.lost(item, "expect", "within")
	case rule == RuleETA:
		return s.lost(item, "eta", "collect", "check")
	case rule == RuleSum:
		return s.lost("spec.steps", "eta", "collect", "check")
	case rule == RuleNotRead, rule == RuleUnreachable:
		return s.lost("spec.steps", "collect") || s.lost(list, "collect")
	case rule == RuleStale:
		return s.lost("metadata", "review_every")
	}
	return rule == RuleUnused && len(s.unread) > 0
}

// keyOf is the key of a value behind the path of its holder, or of an item behind that of a list.
var keyOf = regexp.MustCompile(`^(?:\[\d+\])?(?:\.(\w+).*)?$`)

// lost says that a value, or one of these keys in it or in one of its items, could not be read.
func (s source) lost(path string, keys ...string) bool {
	return slices.ContainsFunc(s.unread, func(unread string) bool {
		rest, below := strings.CutPrefix(path, unread)
		if below && (unread == "" || rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
		rest, inside := strings.CutPrefix(unread, path)
		m := keyOf.FindStringSubmatch(rest)
		return inside && m != nil && len(keys) > 0 && (m[1] == "" || slices.Contains(keys, m[1]))
	})
}
