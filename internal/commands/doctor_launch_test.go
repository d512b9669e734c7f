package commands

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/providers"
)

// TestDoctorTellsWhatStopsLaunching: a broken variable of task launch is a
// warning of doctor and nothing to other verbs.
func TestDoctorTellsWhatStopsLaunching(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env    []string
		file   string
		code   int
		plugin int
		want   []string // verdict and message of the rows of task launch
	}{
		"nothing to tell": {nil, "", 0, 0, nil},
		"variables": {[]string{"SANDBOX_CPU=two", "AGENT_TIMEOUT="}, "", 10, 1, []string{
			"false env AGENT_TIMEOUT: is empty (is a shell variable unset?)",
			`false env SANDBOX_CPU: must be a whole number of cores from 2 to 4, not "two"`,
		}},
		"contradiction": {[]string{"CLAUDE_CODE_TIMEOUT=700", "SANDBOX_TIMEOUT=600"}, "", 10, 1, []string{
			"false command_timeout 11m40s (env CLAUDE_CODE_TIMEOUT) is longer than attempt_timeout 10m (env SANDBOX_TIMEOUT): the attempt ends first",
		}},
		"notes": {[]string{"CLAUDE_CODE_TIMEOUT=200", "AGENT_TIMEOUT=60000"}, "", 0, 0, []string{
			"false command_timeout: 60s applies, the smallest: AGENT_TIMEOUT differs from CLAUDE_CODE_TIMEOUT (200s)",
		}},
		"sizes of a service": {nil, "providers: {far: {type: fake}}\nlaunch: far\n", 0, 0, []string{"unknown the provider chooses memory and cpu of a task at far"}},
		"one size":           {[]string{"SANDBOX_MEMORY_GB=4"}, "providers: {far: {type: fake}}\nlaunch: far\n", 0, 0, []string{"unknown the provider chooses cpu of a task at far"}},
		"both sizes":         {[]string{"SANDBOX_CPU=2"}, "providers: {far: {type: fake}}\nlaunch: far\nrun: {memory: 2G}\n", 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := checking(t, []providers.Check{good("token")}).configure(t, tc.file)
			b.env = append(b.env, tc.env...)
			r := b.run(t, "doctor -o json")
			assert.Equal(t, tc.code, r.code, r.stdout)
			var got []string
			for _, item := range r.list(t, "items") {
				if item["check"] == "task launch" {
					got = append(got, fmt.Sprint(item["verdict"], " ", item["message"]))
				}
			}
			assert.ElementsMatch(t, tc.want, got)
			assert.Equal(t, tc.plugin, b.run(t, "doctor -o nagios").code)
			assert.Equal(t, 0, b.run(t, "ls -o json").code, "what launches nothing does not care")
		})
	}
}

func TestExplainTellsOfRefusedVariables(t *testing.T) {
	t.Parallel()
	b := newBench().configure(t, "")
	b.env = append(b.env, "SANDBOX_CPU=two", "CALLBACK_URL=me:s3cret@host")
	r := b.run(t, "config explain -o json")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stderr, "env SANDBOX_CPU: must be a whole number of cores from 2 to 4")
	assert.Contains(t, r.stderr, "unset SANDBOX_CPU")
	assert.Equal(t, 2, strings.Count(r.stderr, "\n"), r.stderr)
	origins := map[any]any{}
	for _, item := range r.list(t, "items") {
		origins[item["key"]] = item["origin"]
	}
	assert.Equal(t, "env SANDBOX_CPU (refused)", origins["run.cpu"])
	assert.Equal(t, "env CALLBACK_URL (refused)", origins["run.callback_url"])
	assert.NotContains(t, r.stdout+r.stderr, "s3cret")
	assert.Empty(t, newBench().configure(t, "").run(t, "config explain").stderr)
}
