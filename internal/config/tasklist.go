package config

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	"sbx/internal/yamltext"
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
	read, root, some := yamltext.Read(content)
	r := &taskReader{decoder: decoder{Reader: read, doc: newDocument(path), hint: hintTasks}}
	var list TaskList
	switch {
	case some && len(read.Mistakes) == 0:
		list = r.readTaskList(root)
	case !some && len(read.Mistakes) == 0:
		return list, fault.Usage("%s: it has no tasks", path).WithHint(hintTasks)
	}
	if len(read.Mistakes) > 0 {
		return TaskList{}, joinMistakes(r.errors())
	}
	return list, nil
}

const hintTasks = "docs/TASKS.md has an example; `tasks:` is a list of {command: [WORD, ...]} or {shell: LINE}"

// taskReader reads one file of tasks. It goes on after a mistake.
type taskReader struct {
	decoder
	defaults taskSettings
	keys     map[string]int // of tasks, with the line of the first
}

// taskSettings are the settings of one mapping, by flag.
type taskSettings map[string]TaskSetting

func (r *taskReader) readTaskList(root value) TaskList {
	var list TaskList
	var tasks *value
	r.defaults, r.keys = taskSettings{}, map[string]int{}
	r.readTable(root, "the file", readers{
		"batch":    func(v value) { list.Batch = r.readName(v) },
		"defaults": func(v value) { r.readTable(v, "defaults", r.settingReaders(r.defaults)) },
		"tasks":    func(v value) { tasks = &v },
	})
	switch {
	case tasks == nil:
		if len(r.Mistakes) == 0 {
			r.Refuse(root.At(), "it has no tasks; %s", hintTasks)
		}
		return list
	case tasks.Node.Kind != yaml.SequenceNode, len(tasks.Node.Content) == 0:
		r.Refuse(tasks.At(), "tasks must be a list with an entry for each task")
		return list
	case len(tasks.Node.Content) > maxTasks:
		r.Refuse(tasks.At(), "tasks has %d entries; %d are the most", len(tasks.Node.Content), maxTasks)
		return list
	}
	for _, one := range r.Items(*tasks, "tasks") {
		list.Tasks = append(list.Tasks, r.readTask(one))
	}
	if len(r.Mistakes) == 0 {
		r.resolveNeeds(list.Tasks)
	}
	return list
}

func (r *taskReader) readTask(v value) TaskEntry {
	e := TaskEntry{Place: r.originOf(v)}
	own, before := taskSettings{}, len(r.Mistakes)
	all := r.settingReaders(own)
	all["key"] = func(v value) { e.Key = r.readTaskKey(v) }
	all["name"] = r.settingReader(own, "name", taskText)
	all["needs"] = func(v value) { e.needs = r.oneOrMore(v) }
	commands := 0
	all["command"] = func(v value) { commands++; e.Command = r.readCommand(v) }
	all["shell"] = func(v value) { commands++; e.Command = r.readShell(v) }
	r.readTable(v, "a task", all)
	if commands != 1 && len(r.Mistakes) == before {
		r.Refuse(v.At(), "a task needs either command: [WORD, ...] or shell: LINE")
	}
	merged := mergeTaskSettings(r.defaults, own)
	if p, ok := merged[taskProvider]; ok {
		e.Provider = p.Values[0]
		delete(merged, taskProvider)
	}
	for _, flag := range slices.Sorted(maps.Keys(merged)) {
		e.Settings = append(e.Settings, merged[flag])
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

func (r *taskReader) originOf(v value) string {
	return (&placedError{path: r.doc.path, at: v.At()}).position()
}
