package config

import (
	"maps"
	"slices"
	"strings"

	"sbx/internal/yamltext"
)

const keyKeys = "keys"

// readKeys reads the keys of the dashboard by their actions. Which actions and keys there are is judged by
// the dashboard.
func (d *decoder) readKeys(v value) {
	for _, one := range d.Pairs(v, keyKeys) {
		if text, ok := d.readText(one, keyKeys+"."+yamltext.PrintableKey(one.Name())); ok {
			d.doc.setValue(keyKeys+"."+one.Name(), text, one.At())
		}
	}
}

// keyNames are the settings of keys in the files, sorted.
func (l *loader) keyNames() []string {
	names := map[string]bool{}
	for name := range l.doc.scalars {
		if strings.HasPrefix(name, keyKeys+".") {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (l *loader) resolveKeys() {
	l.config.Keys = map[string]string{}
	for _, name := range l.keyNames() {
		l.config.Keys[strings.TrimPrefix(name, keyKeys+".")] = l.text(name)
	}
}

func (l *loader) explainKeys() {
	for _, name := range l.keyNames() {
		l.explainSetting(name)
	}
}
