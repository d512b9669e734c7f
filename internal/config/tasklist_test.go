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

func TestMistakesInTaskFilesHaveTheirPlace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"empty", "", "it has no tasks"},
		{"no tasks", "batch: x\n", "1:1: it has no tasks"},
		{"no list", "tasks: {a: b}\n", "1:8: tasks must be a list"},
		{"empty list", "tasks: []\n", "1:8: tasks must be a list"},
		{"unknown key", "tasks:\n  - {comand: [a]}\n", `2:6: unknown key "comand" (did you mean "command"?`},
		{"unknown default", "defaults: {memroy: 1G}\ntasks: [{shell: a}]\n", `1:12: unknown key "memroy" (did you mean "memory"?`},
		{"a key as a default", "defaults: {key: x}\ntasks: [{shell: a}]\n", `1:12: unknown key "key"`},
		{"twice", "tasks:\n  - shell: a\n    shell: b\n", `3:5: "shell" is given twice`},
		{"both", "tasks:\n  - shell: a\n    command: [b]\n", "2:5: a task needs either command"},
		{"neither", "tasks:\n  - name: a\n", "2:5: a task needs either command"},
		{"a line as a command", "tasks:\n  - command: make test\n", "2:14: command must be a list"},
		{"a list as a line", "tasks:\n  - shell: [a]\n", "2:12: shell must be a text"},
		{"no program", "tasks:\n  - command: ['', a]\n", "names no program"},
		{"bare number", "tasks:\n  - {shell: a, memory: 512}\n", "2:24: memory:"},
		{"no duration", "tasks:\n  - {shell: a, deadline: 10}\n", "2:26: deadline:"},
		{"no count", "tasks:\n  - {shell: a, attempts: 0}\n", "2:26: attempts: it must be a whole number from 1"},
		{"no switch", "tasks:\n  - {shell: a, keep_alive: yes}\n", `2:28: keep_alive: it must be true or false`},
		{"same key", "tasks:\n  - {shell: a, key: x}\n  - {shell: b, key: x}\n", "3:21: the key \"x\" belongs to the task in line 2"},
		{"empty list", "defaults: {retry_on: [oom]}\ntasks:\n  - {shell: a, retry_on: []}\n", "retry_on is empty"},
		{"comma", "tasks:\n  - {shell: a, retry_on: 'oom,crash'}\n", "write a list"},
		{"tab", "tasks:\n\t- shell: a\n", "2:1: indented with a tab"},
		{"needs nobody", "tasks:\n  - {shell: a, needs: tset}\n", "2:23: needs: no task has the name or the key \"tset\""},
		{"needs two", "tasks:\n  - {shell: a, name: x}\n  - {shell: b, name: x}\n  - {shell: c, needs: [x]}\n", "4:24: needs: 2 tasks are called \"x\""},
		{"needs itself", "tasks:\n  - {shell: a, name: x, needs: x}\n", "2:32: needs: these tasks wait for each other: x -> x"},
		{"a loop", "tasks:\n  - {shell: a, name: x, needs: z}\n  - {shell: b, key: y, needs: x}\n  - {shell: c, name: z, needs: [y]}\n", "needs: these tasks wait for each other: x -> z -> y -> x"},
		{"needs no list", "tasks:\n  - {shell: a, needs: {x: y}}\n", "needs must be a single word"},
		{"alias", "tasks: [&a {shell: a}, *a]\n", "anchors are not accepted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			list, err := ReadTasks("t.yaml", []byte(tc.text))
			require.ErrorContains(t, err, tc.want)
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.Equal(t, hintTasks, fault.HintOf(err))
			assert.Empty(t, list.Tasks)
		})
	}
}

func TestMistakesInTaskFilesShowNoValue(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"tasks:\n  - {shell: a, env: {T: [s3cret]}}\n",
		"tasks:\n  - {shell: a, env: s3cret}\n",
		"tasks:\n  - {shell: a, env: {T:s3cret}}\n  - {shell: [x]}\n",
		"tasks:\n  - {shell: a, push: [s3cret]}\n",
	} {
		_, err := ReadTasks("t.yaml", []byte(text))
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "s3cret")
	}
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
