package cron

import (
	"slices"
	"strings"
)

// LayerOf names the layer that a command line of sbx is a run of; false for
// anything else. It is given the words of argv, the program's name or not, as a
// journal keeps them. A line that selects less than its layer (a label, a name, a
// state) is no run of it: that a part was cleaned proves nothing about the rest.
// Whether the run was allowed to act is not its business.
func LayerOf(args []string) (Layer, bool) {
	i := slices.IndexFunc(args, func(w string) bool { return w == "cleanup" || w == "reconcile" })
	if i < 0 {
		return "", false
	}
	given := flagsOf(args[i+1:])
	if given == nil {
		return "", false
	}
	if args[i] == "reconcile" {
		return named(Reconcile, given["fix"] || given["check"])
	}
	for _, other := range []string{"apply", "resume", "explain", "out", "state", "younger-than", "before", "after", "label", "name", "task", "agent-type", "where", "idle-for", "unowned"} {
		if given[other] {
			return "", false
		}
	}
	byAge := given["older-than"] || given["failed-older-than"]
	switch {
	case given["stuck"]:
		return named(Stuck, !byAge && !given["if-usage-above"])
	case given["if-usage-above"]:
		return Usage, true
	}
	return named(Age, byAge)
}

func named(l Layer, is bool) (Layer, bool) {
	if !is {
		return "", false
	}
	return l, true
}

// flagsOf are the names of the flags that are on; nil when a word that is no flag
// stands right behind the verb, as in `cleanup status`.
func flagsOf(words []string) map[string]bool {
	given := map[string]bool{}
	if len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		return nil
	}
	for _, w := range words {
		if w == "--" {
			break
		}
		name, value, _ := strings.Cut(w, "=")
		if long, ok := strings.CutPrefix(name, "--"); ok {
			given[long] = value != "false"
		}
	}
	return given
}
