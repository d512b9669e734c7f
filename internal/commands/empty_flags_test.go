package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
)

// An unset shell variable widens nothing: `sbx terminate --provider "$P"` is a
// mistake, not a request to look everywhere.
func TestNoFlagMayBeGivenEmpty(t *testing.T) {
	t.Parallel()
	args := map[string]string{
		"create": "-- true", "events": "-", "events compare": "- -", "exec": "prod/aaaa -- true", "inspect": "prod/aaaa", "keep": "prod/aaaa", "extend": "prod/aaaa", "logs": "prod/aaaa", "shell": "prod/aaaa", "terminate": "prod/aaaa", "wait": "prod/aaaa",
		"completion": "bash", "cleanup show": "r-1",
		"runbook show": "state-drift", "runbook run": "state-drift", "runbook new": "mine",
		"incident note": "x", "run": "-- true", "stop": "t-abcd", "tasks show": "t-abcd", "resume": "t-abcd -- true",
	}
	b, p := oneFake(running("aaaa", time.Minute))
	seen := 0
	for path, cmd := range tree(t, newBench()) {
		if cmd.RunE == nil || onlyHelps(cmd) { // what only helps calls nothing
			continue
		}
		for _, flag := range textFlags(cmd) {
			seen++
			words := append(strings.Fields(path), "--"+flag+"=")
			r := b.runArgs(t, append(words, strings.Fields(args[path])...)...)
			assert.Equal(t, 2, r.code, "%s --%s=: %s", path, flag, r.stderr)
			assert.Contains(t, r.stderr, "--"+flag, path)
			assert.Empty(t, r.stdout, "%s --%s=", path, flag)
		}
	}
	assert.Empty(t, p.Calls(), "nothing was called")
	assert.Greater(t, seen, 100)
}

// textFlags are the flags of a verb that want a value.
func textFlags(cmd *cobra.Command) []string {
	var names []string
	add := func(f *pflag.Flag) {
		if f.NoOptDefVal == "" {
			names = append(names, f.Name)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return names
}

func TestHelpKnowsItsTopics(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"help":                 {0, "Usage:"},
		"help ls":              {0, "sbx ls [flags]"},
		"help exit-codes":      {0, "command_not_found"},
		"help config explain":  {0, "sbx config explain [flags]"},
		"help completion bash": {0, "sbx completion"},
		"help nope":            {2, "no help on \"nope\""},
		"help terminat":        {2, "did you mean `sbx help terminate`?"},
		"help config nope":     {2, "no help on \"nope\""},
	} {
		r := newBench().run(t, line)
		assert.Equal(t, want.code, r.code, "%s: %s", line, r.stderr)
		assert.Contains(t, r.stdout+r.stderr, want.says, line)
	}
}
