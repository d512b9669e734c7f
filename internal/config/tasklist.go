package config

import (
	"errors"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
)

// TaskList is what a file of tasks says (`sbx run --file`).
type TaskList struct {
	Batch string // its own name; "" = the file gives none
	Tasks []TaskEntry
}

// TaskEntry is one task of a file, with what `defaults` adds to it.
type TaskEntry struct {
	Key      string // "" = its content is its key
	Command  []string
	Provider string
	Settings []TaskSetting // by flag; each flag once
	Place    string        // file:line:column
	Needs    []int         // positions in Tasks of those that have to complete before it begins

	needs []word // as they are written
}

// TaskSetting is a flag of `sbx run` as the file says it. The values are texts that
// the flag takes; those of env may be secrets.
type TaskSetting struct {
	Flag   string
	Values []string
	Place  string
}

// Most that a file of tasks may hold.
const (
	MaxTaskFile = 8 << 20 // bytes
	maxTasks    = 10_000
	maxKey      = 256 // bytes
)

// ReadTasks reads the content of a file of tasks, strictly: every mistake has its
// line and column, all of them are told, and none shows a value. fault.KindUsage.
func ReadTasks(path string, content []byte) (TaskList, error) {
	root, errs := parseYAML(path, content)
	if len(errs) > 0 {
		return TaskList{}, joinMistakes(withTaskFileHint(errs))
	}
	if root == nil {
		return TaskList{}, fault.Usage("%s: it has no tasks", path).WithHint(hintTasks)
	}
	r := &taskReader{decoder: decoder{doc: newDocument(path)}}
	list := r.readTaskList(root)
	if len(r.errs) > 0 {
		return TaskList{}, joinMistakes(withTaskFileHint(r.errs))
	}
	return list, nil
}

const hintTasks = "docs/TASKS.md has an example; `tasks:` is a list of {command: [WORD, ...]} or {shell: LINE}"

func withTaskFileHint(errs []error) []error {
	for i, err := range errs {
		if e, ok := errors.AsType[*placedError](err); ok {
			errs[i] = fault.Usage("%w", e).WithHint(hintTasks)
		}
	}
	return errs
}

// taskReader reads one file of tasks. It goes on after a mistake.
type taskReader struct {
	decoder
	defaults taskSettings
	keys     map[string]int // of tasks, with the line of the first
}

// taskSettings are the settings of one mapping, by flag.
type taskSettings map[string]TaskSetting

func (r *taskReader) readTaskList(root *yaml.Node) TaskList {
	var list TaskList
	var tasks *yaml.Node
	r.defaults, r.keys = taskSettings{}, map[string]int{}
	r.readTable(root, "the file", map[string]reader{
		"batch":    func(p pair) { list.Batch = r.readName(p) },
		"defaults": func(p pair) { r.readTable(p.value, "defaults", r.settingReaders(r.defaults)) },
		"tasks":    func(p pair) { tasks = p.value },
	})
	switch {
	case tasks == nil:
		if len(r.errs) == 0 {
			r.addMistake(root, "it has no tasks; %s", hintTasks)
		}
		return list
	case tasks.Kind != yaml.SequenceNode, len(tasks.Content) == 0:
		r.addMistake(tasks, "tasks must be a list with an entry for each task")
		return list
	case len(tasks.Content) > maxTasks:
		r.addMistake(tasks, "tasks has %d entries; %d are the most", len(tasks.Content), maxTasks)
		return list
	}
	for _, node := range tasks.Content {
		list.Tasks = append(list.Tasks, r.readTask(node))
	}
	if len(r.errs) == 0 {
		r.resolveNeeds(list.Tasks)
	}
	return list
}

func (r *taskReader) readTask(node *yaml.Node) TaskEntry {
	e := TaskEntry{Place: r.originOf(node)}
	own, before := taskSettings{}, len(r.errs)
	readers := r.settingReaders(own)
	readers["key"] = func(p pair) { e.Key = r.readTaskKey(p) }
	readers["name"] = r.settingReader(own, "name", taskText)
	readers["needs"] = func(p pair) { e.needs = r.readNeeds(p) }
	commands := 0
	readers["command"] = func(p pair) { commands++; e.Command = r.readCommand(p) }
	readers["shell"] = func(p pair) { commands++; e.Command = r.readShell(p) }
	r.readTable(node, "a task", readers)
	if commands != 1 && len(r.errs) == before {
		r.addMistake(node, "a task needs either command: [WORD, ...] or shell: LINE")
	}
	all := mergeTaskSettings(r.defaults, own)
	if p, ok := all[taskProvider]; ok {
		e.Provider = p.Values[0]
		delete(all, taskProvider)
	}
	for _, flag := range slices.Sorted(maps.Keys(all)) {
		e.Settings = append(e.Settings, all[flag])
	}
	return e
}

// mergeTaskSettings lays a task's own settings over the defaults. Variables and labels are
// added to those of the defaults; everything else replaces them.
func mergeTaskSettings(defaults, own taskSettings) taskSettings {
	all := maps.Clone(defaults)
	for flag, s := range own {
		if base, ok := all[flag]; ok && (flag == "env" || flag == "env-file" || flag == "label") {
			s.Values = slices.Concat(base.Values, s.Values) // of one name the last counts
		}
		all[flag] = s
	}
	return all
}

func (r *taskReader) originOf(node *yaml.Node) string {
	at := placeOf(node)
	return (&placedError{path: r.doc.path, at: at}).position()
}
