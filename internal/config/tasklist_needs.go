package config

import (
	"slices"
	"strconv"
	"strings"

	"sbx/internal/yamltext"
)

// resolveNeeds finds the tasks that each one needs, by key or name, and refuses what could never begin.
func (r *taskReader) resolveNeeds(tasks []TaskEntry) {
	named := map[string][]int{}
	for i, t := range tasks {
		for _, name := range t.names() {
			if !slices.Contains(named[name], i) {
				named[name] = append(named[name], i)
			}
		}
	}
	for i := range tasks {
		for _, need := range tasks[i].needs {
			switch found := named[need.text]; {
			case len(found) == 0:
				r.Refuse(need.at, "needs: no task has the name or the key %s", yamltext.QuoteKey(need.text))
			case len(found) > 1:
				r.Refuse(need.at, "needs: %d tasks are called %s; give the one that is meant a key", len(found), yamltext.QuoteKey(need.text))
			case !slices.Contains(tasks[i].Needs, found[0]):
				tasks[i].Needs = append(tasks[i].Needs, found[0])
			}
		}
	}
	if loop := loopOf(tasks); len(loop) > 0 {
		var words []string
		for _, i := range loop {
			words = append(words, tasks[i].label(i))
		}
		r.Refuse(tasks[loop[0]].needs[0].at, "needs: these tasks wait for each other: %s", strings.Join(words, " -> "))
	}
}

// loopOf is a chain of tasks that ends where it begins; nil = there is none.
func loopOf(tasks []TaskEntry) []int {
	const (
		open = iota + 1
		done
	)
	state := make([]int, len(tasks))
	var path []int
	var visit func(i int) []int
	visit = func(i int) []int {
		switch state[i] {
		case done:
			return nil
		case open:
			return append(slices.Clone(path[slices.Index(path, i):]), i)
		}
		state[i], path = open, append(path, i)
		for _, need := range tasks[i].Needs {
			if loop := visit(need); loop != nil {
				return loop
			}
		}
		state[i], path = done, path[:len(path)-1]
		return nil
	}
	for i := range tasks {
		if loop := visit(i); loop != nil {
			return loop
		}
	}
	return nil
}

// names are what other tasks may call a task by.
func (e TaskEntry) names() []string {
	names := []string{}
	if e.Key != "" {
		names = append(names, e.Key)
	}
	for _, s := range e.Settings {
		if s.Flag == "name" {
			names = append(names, s.Values...)
		}
	}
	return names
}

// label is a task's name, its key, or its position from 1.
func (e TaskEntry) label(i int) string {
	if names := e.names(); len(names) > 0 {
		return names[len(names)-1]
	}
	return strconv.Itoa(i + 1)
}
