package commands

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

func TestCompletedRefsShowNoEscapesOfOthers(t *testing.T) {
	t.Parallel()
	evil := running("aaaa", time.Minute)
	evil.Sandbox.Name = "\x1b]0;owned\x07\nprod/fake\tx"
	b, _ := oneFake(evil)
	for _, verb := range []string{"inspect", "terminate", "exec", "logs", "wait", "top", "cleanup --explain"} {
		words := append([]string{"__complete"}, strings.Fields(verb)...)
		out := b.runArgs(t, append(words, "")...).stdout
		assert.Equal(t, "prod/aaaa\t\\x1b]0;owned\\x07\\nprod/fake\\tx running\n:4\n", out, verb)
		out = b.runArgs(t, append(words, "\x1b")...).stdout
		assert.Equal(t, ":4\n", out, verb+": a name that a shell takes apart is not completed")
	}
}

// completed are the words that a TAB offers, without their descriptions.
func completed(t *testing.T, b *bench, args ...string) []string {
	t.Helper()
	r := b.runArgs(t, append([]string{"__complete"}, args...)...)
	require.Zero(t, r.code, r.stderr)
	var words []string
	for line := range strings.Lines(r.stdout) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(word, ":") {
			words = append(words, word)
		}
	}
	return words
}

// inStates is a bench with one sandbox in each state, named after it.
func inStates() *bench {
	var seeds []fake.Seed
	for _, state := range sandbox.States() {
		one := running(string(state)+"1", time.Minute)
		one.Sandbox.State, one.Sandbox.Name = state, "is-"+string(state)
		seeds = append(seeds, one)
	}
	b, _ := oneFake(seeds...)
	return b
}

// TestCompletionOffersWhatTheVerbCanActOn, by reference and by name.
func TestCompletionOffersWhatTheVerbCanActOn(t *testing.T) {
	t.Parallel()
	all := []string{"provisioning", "running", "paused", "stopped", "terminating", "terminated", "failed", "unknown"}
	living := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "terminated" || s == "failed" })
	for line, want := range map[string][]string{
		"inspect":            all,
		"logs":               all,
		"terminate":          living,
		"terminate --delete": all,
		"top":                living,
		"exec":               {"running", "unknown"},
		"wait":               living,
		"wait --for running": slices.DeleteFunc(slices.Clone(living), func(s string) bool { return s == "running" }),
		"cleanup --explain":  living,
	} {
		var refs, names []string
		for _, state := range want {
			refs, names = append(refs, "prod/"+state+"1"), append(names, "is-"+state)
		}
		assert.ElementsMatch(t, refs, completed(t, inStates(), append(strings.Fields(line), "")...), line)
		assert.ElementsMatch(t, names, completed(t, inStates(), append(strings.Fields(line), "is-")...), line)
	}
	assert.NotContains(t, completed(t, inStates(), "terminate", "is-running", ""), "prod/running1", "it is given already")
}

// TestANameOfTwoIsNotCompleted: it would be refused as ambiguous.
func TestANameOfTwoIsNotCompleted(t *testing.T) {
	t.Parallel()
	one, two := running("aaaa", time.Minute), running("bbbb", time.Minute)
	one.Sandbox.Name, two.Sandbox.Name = "twin", "twin"
	b, _ := oneFake(one, two)
	assert.Empty(t, completed(t, b, "inspect", "tw"))
	assert.Len(t, completed(t, b, "inspect", ""), 2)
}

func TestTaskCompletion(t *testing.T) {
	t.Parallel()
	b, _ := examples(t)
	for _, verb := range []string{"stop", "resume", "tasks show"} {
		assert.Equal(t, []string{"t-k3v9x2mq7abc"}, completed(t, b, append(strings.Fields(verb), "t-")...), verb)
	}
	assert.Empty(t, completed(t, b, "resume", "t-k3v9x2mq7abc", ""), "one task alone is resumed")
}

// TestCompletionIsPlain: no description holds a backtick, and no flag offers files unless it
// takes one.
func TestCompletionIsPlain(t *testing.T) {
	t.Parallel()
	for path, cmd := range tree(t, newBench()) {
		if cmd.IsAdditionalHelpTopicCommand() {
			continue
		}
		for _, word := range []string{"", "-"} {
			r := newBench().runArgs(t, append(append([]string{"__complete"}, strings.Fields(path)...), word)...)
			assert.NotContains(t, r.stdout, "`", "%s %s", path, word)
		}
	}
	b := newBench()
	assert.Contains(t, b.run(t, "__complete ls --older-than 1").stdout, ":4\n")
	assert.Contains(t, b.run(t, "__complete cleanup --out x").stdout, ":0\n", "a file")
}
