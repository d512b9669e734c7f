package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// top is the schema of a file: what is not here is an unknown key. Keys arrive
// with the rooms that use them.
func (d *decoder) top() map[string]reader {
	return map[string]reader{
		"providers":   d.profiles,
		keyUse:        d.use,
		keyLaunch:     d.launch,
		keyProduction: d.production,
		"protect":     d.protect,
		"limits":      d.limits,
		keyRun:        d.runs,
		keyNotify:     d.notify,
		keyStore:      d.store,
		keyMetadata:   d.metadata(""),
	}
}

func (d *decoder) use(p pair) {
	list := d.profileNames(p)
	if p.value.Kind == yaml.SequenceNode && len(p.value.Content) == 0 {
		d.fail(p.value, "use names no profile; remove the key to use all")
		return
	}
	d.doc.use = &names{words: list, at: placeOf(p.key)}
	d.doc.set(keyUse, strings.Join(texts(list), ","), placeOf(p.key))
}

func (d *decoder) production(p pair) { d.doc.production = d.profileNames(p) }

func (d *decoder) launch(p pair) {
	if text, ok := d.text(p.value, keyLaunch); ok {
		d.doc.set(keyLaunch, text, placeOf(p.value))
	}
}

// profileNames reads a list of profile names, each once. Whether the profiles
// exist is judged when all files are read.
func (d *decoder) profileNames(p pair) []word {
	list := d.words(p)
	seen := map[string]bool{}
	for _, w := range list {
		if seen[w.text] {
			d.errs = append(d.errs, mistake(d.doc.path, w.at, "%s names %q twice", p.key.Value, w.text))
		}
		seen[w.text] = true
	}
	return list
}

func (d *decoder) protect(p pair) {
	d.table(p.value, "protect", map[string]reader{
		"labels": func(p pair) {
			d.doc.labels = d.labels(p)
		},
		"ids": d.ids,
	})
}

// labels reads label keys with their values; case and dots are kept.
func (d *decoder) labels(p pair) []placed[Label] {
	var list []placed[Label]
	for _, l := range d.pairs(p.value, p.key.Value) {
		key, ok := d.text(l.key, "a label's key")
		if !ok {
			continue
		}
		if value, ok := d.text(l.value, "the value of a label"); ok {
			list = append(list, placed[Label]{Label{key, value}, placeOf(l.key)})
		}
	}
	return list
}

func (d *decoder) ids(p pair) {
	for _, w := range d.words(p) {
		ref, err := sandbox.ParseRef(w.text)
		if err != nil {
			d.errs = append(d.errs, mistake(d.doc.path, w.at, "ids: %w", err))
			continue
		}
		d.doc.ids = append(d.doc.ids, placed[sandbox.Ref]{ref, w.at})
	}
}

func (d *decoder) limits(p pair) {
	readers := map[string]reader{}
	for _, l := range limits() {
		readers[l.name] = func(p pair) {
			if text, ok := d.measured(p, l.kind, false); ok {
				d.doc.set(l.key(), text, placeOf(p.value))
			}
		}
	}
	d.table(p.value, "limits", readers)
}

// measured reads a scalar of a kind.
func (d *decoder) measured(p pair, kind providers.OptionKind, secret bool) (string, bool) {
	text, ok := d.text(p.value, p.key.Value)
	if !ok {
		return "", false
	}
	if err := check(kind, text); err != nil {
		d.fail(p.value, "%s: %w", p.key.Value, discreet(kind, secret, err))
		return "", false
	}
	return text, true
}

// profileName says what is wrong with a profile's name; "" = nothing.
func profileName(name string) string {
	const longest = 63
	rule := "a profile's name has 1 to 63 of a-z 0-9 _ - and begins with a letter or digit"
	odd := strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
	if name == "" || len(name) > longest || odd || name[0] == '-' || name[0] == '_' {
		return rule
	}
	return ""
}
