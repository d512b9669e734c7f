// Package requirement knows which requirement of docs/REQUIREMENTS.md a name of sbx serves: a flag, a question, a
// target, a figure, an alert. Until the next release JSON carries both, as id and requirement, and conditions of a
// runbook may use either.
package requirement

import (
	"strings"
	"sync"

	"sbx/docs"
)

// Of is the first requirement that a name serves, such as R26; "" = none.
func Of(name string) string { return table().of[name] }

// Name is the name of a requirement; "" = sbx has none for it.
func Name(id string) string { return table().names[id] }

// All are the ids of the requirements that have names, with these.
func All() map[string][]string { return table().all }

type pairs struct {
	of, names map[string]string
	all       map[string][]string
}

// table reads the rows of the page: the first of six cells is the id, the last one the names.
var table = sync.OnceValue(func() pairs { //nolint:gochecknoglobals // read once, never changed
	p := pairs{map[string]string{}, map[string]string{}, map[string][]string{}}
	page, err := docs.Files.ReadFile("REQUIREMENTS.md")
	if err != nil {
		panic(err) // it is embedded
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 || !strings.Contains(cells[5], "`") {
			continue
		}
		id := strings.TrimSpace(cells[0])
		for name := range strings.SplitSeq(cells[5], ",") {
			name = strings.Trim(strings.TrimSpace(name), "`")
			p.all[id] = append(p.all[id], name)
			if p.of[name] == "" {
				p.of[name] = id
			}
			if p.names[id] == "" {
				p.names[id] = name
			}
		}
	}
	return p
})
