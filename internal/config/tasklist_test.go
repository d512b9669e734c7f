package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

const threeTasks = `
batch: nightly
defaults:
  provider: local
  memory: 512M
  retry_on: [oom, crash]
  env: {MODE: test, TOKEN: }
  labels: {team: agents}
tasks:
  - command: [make, test]
  - key: nightly-7
    shell: |
      echo one
      echo two
    memory: 1G
    attempts: 2
    retry_on: infra
    env: [TOKEN, "MODE=fast"]
    labels: {team: others, run: "7"}
  - {name: third, shell: 'exit 3', provider: prod, keep_alive: true}
`

func TestTasksAreReadWithTheirDefaults(t *testing.T) {
	t.Parallel()
	list, err := ReadTasks("tasks.yaml", []byte(threeTasks))
	require.NoError(t, err)
	assert.Equal(t, "nightly", list.Batch)
	require.Len(t, list.Tasks, 3)
	first, second, third := list.Tasks[0], list.Tasks[1], list.Tasks[2]

	assert.Equal(t, []string{"make", "test"}, first.Command)
	assert.Equal(t, "local", first.Provider)
	assert.Equal(t, "tasks.yaml:10:5", first.Place)
	assert.Equal(t, map[string][]string{
		"memory": {"512M"}, "retry-on": {"oom", "crash"}, "env": {"MODE=test", "TOKEN"}, "label": {"team=agents"},
	}, valuesOf(first))

	assert.Equal(t, "nightly-7", second.Key)
	assert.Equal(t, []string{"sh", "-c", "echo one\necho two\n"}, second.Command)
	assert.Equal(t, map[string][]string{
		"memory": {"1G"}, "attempts": {"2"}, "retry-on": {"infra"}, "env": {"MODE=test", "TOKEN", "TOKEN", "MODE=fast"},
		"label": {"team=agents", "team=others", "run=7"},
	}, valuesOf(second))

	assert.Equal(t, "prod", third.Provider)
	assert.Equal(t, []string{"third"}, valuesOf(third)["name"])
	assert.Equal(t, []string{"true"}, valuesOf(third)["keep-alive"])
	assert.Equal(t, []string{"512M"}, valuesOf(third)["memory"])
}

func TestNeedsAreFoundByNameOrKey(t *testing.T) {
	t.Parallel()
	list, err := ReadTasks("t.yaml", []byte("tasks:\n  - {shell: a, name: last, needs: [two, first, two]}\n  - {shell: b, name: first}\n  - {shell: c, name: second, key: two, needs: first}\n"))
	require.NoError(t, err)
	assert.Equal(t, [][]int{{2, 1}, nil, {1}}, [][]int{list.Tasks[0].Needs, list.Tasks[1].Needs, list.Tasks[2].Needs})
}

func valuesOf(e TaskEntry) map[string][]string {
	values := map[string][]string{}
	for _, s := range e.Settings {
		values[s.Flag] = s.Values
	}
	return values
}

// FuzzReadTasks holds that no content panics, that mistakes have a kind and a hint,
// and that what is read can be run.
func FuzzReadTasks(f *testing.F) {
	f.Add([]byte(threeTasks))
	f.Add([]byte("tasks: [{shell: a, env: {A: }}]"))
	f.Add([]byte("tasks: [{command: [a, ''], cpu: 1e9}]"))
	f.Add([]byte("defaults: {fallback: [a, b]}\ntasks: [{key: k, shell: a}, {key: k, shell: b}]"))
	f.Fuzz(func(t *testing.T, content []byte) {
		list, err := ReadTasks("t.yaml", content)
		if err != nil {
			require.Empty(t, list.Tasks)
			require.Equal(t, fault.KindUsage, fault.KindOf(err))
			require.NotEmpty(t, fault.HintOf(err))
			return
		}
		require.NotEmpty(t, list.Tasks)
		keys := map[string]bool{}
		for _, e := range list.Tasks {
			require.NotEmpty(t, e.Command)
			require.NotEmpty(t, e.Command[0])
			require.False(t, e.Key != "" && keys[e.Key], "a key twice")
			keys[e.Key] = true
			for _, s := range e.Settings {
				require.NotEmpty(t, s.Values)
			}
			for _, word := range e.Command {
				require.False(t, strings.ContainsRune(word, 0), errors.New("a NUL byte"))
			}
		}
	})
}
