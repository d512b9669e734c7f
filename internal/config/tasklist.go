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
	root, errs := parse(path, content)
	if len(errs) > 0 {
		return TaskList{}, joined(advised(errs))
	}
	if root == nil {
		return TaskList{}, fault.Usage("%s: it holds no tasks", path).WithHint(hintTasks)
	}
	r := &taskReader{decoder: decoder{doc: newDocument(path)}}
	list := r.list(root)
	if len(r.errs) > 0 {
		return TaskList{}, joined(advised(r.errs))
	}
	return list, nil
}

const hintTasks = "docs/TASKS.md has an example; `tasks:` is a list of {command: [WORD, ...]} or {shell: LINE}"

// advised gives mistakes the hint of this kind of file.
func advised(errs []error) []error {
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

func (r *taskReader) list(root *yaml.Node) TaskList {
	var list TaskList
	var tasks *yaml.Node
	r.defaults, r.keys = taskSettings{}, map[string]int{}
	r.table(root, "the file", map[string]reader{
		"batch":    func(p pair) { list.Batch = r.named(p) },
		"defaults": func(p pair) { r.table(p.value, "defaults", r.settings(r.defaults)) },
		"tasks":    func(p pair) { tasks = p.value },
	})
	switch {
	case tasks == nil:
		if len(r.errs) == 0 {
			r.fail(root, "it has no tasks; %s", hintTasks)
		}
		return list
	case tasks.Kind != yaml.SequenceNode, len(tasks.Content) == 0:
		r.fail(tasks, "tasks must be a list with an entry for each task")
		return list
	case len(tasks.Content) > maxTasks:
		r.fail(tasks, "tasks has %d entries; %d are the most", len(tasks.Content), maxTasks)
		return list
	}
	for _, node := range tasks.Content {
		list.Tasks = append(list.Tasks, r.task(node))
	}
	return list
}

// task reads one entry.
func (r *taskReader) task(node *yaml.Node) TaskEntry {
	e := TaskEntry{Place: r.place(node)}
	own, before := taskSettings{}, len(r.errs)
	readers := r.settings(own)
	readers["key"] = func(p pair) { e.Key = r.key(p) }
	readers["name"] = r.setting(own, "name", taskText)
	commands := 0
	readers["command"] = func(p pair) { commands++; e.Command = r.command(p) }
	readers["shell"] = func(p pair) { commands++; e.Command = r.shell(p) }
	r.table(node, "a task", readers)
	if commands != 1 && len(r.errs) == before {
		r.fail(node, "a task needs either command: [WORD, ...] or shell: LINE")
	}
	all := merged(r.defaults, own)
	if p, ok := all[taskProvider]; ok {
		e.Provider = p.Values[0]
		delete(all, taskProvider)
	}
	for _, flag := range slices.Sorted(maps.Keys(all)) {
		e.Settings = append(e.Settings, all[flag])
	}
	return e
}

// merged lays a task's own settings over the defaults. Variables and labels are
// added to those of the defaults; everything else replaces them.
func merged(defaults, own taskSettings) taskSettings {
	all := maps.Clone(defaults)
	for flag, s := range own {
		if base, ok := all[flag]; ok && (flag == "env" || flag == "env-file" || flag == "label") {
			s.Values = slices.Concat(base.Values, s.Values) // of one name the last counts
		}
		all[flag] = s
	}
	return all
}

func (r *taskReader) place(node *yaml.Node) string {
	at := placeOf(node)
	return (&placedError{path: r.doc.path, at: at}).where()
}
