package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// topReaders is the schema of a file: what is not here is an unknown key. Keys arrive
// with the rooms that use them.
func (d *decoder) topReaders() map[string]reader {
	return map[string]reader{
		"providers":   d.readProfiles,
		keyUse:        d.readUse,
		keyLaunch:     d.readLaunch,
		keyProduction: d.readProduction,
		"protect":     d.readProtect,
		"limits":      d.readLimits,
		keyCleanup:    d.readCleanup,
		keyRun:        d.readRun,
		keyNotify:     d.readNotify,
		keyStore:      d.readStore,
		keyMetadata:   d.readMetadata(""),
		keyThresholds: d.readThresholds(""),
		keyKeys:       d.readKeys,
		keyMouse:      d.readMouse,
	}
}

func (d *decoder) readUse(p pair) {
	list := d.profileNames(p)
	if p.value.Kind == yaml.SequenceNode && len(p.value.Content) == 0 {
		d.addMistake(p.value, "use names no profile; remove the key to use all")
		return
	}
	d.doc.use = &names{words: list, at: placeOf(p.key)}
	d.doc.setValue(keyUse, strings.Join(wordTexts(list), ","), placeOf(p.key))
}

func (d *decoder) readProduction(p pair) { d.doc.production = d.profileNames(p) }

func (d *decoder) readLaunch(p pair) {
	if text, ok := d.readText(p.value, keyLaunch); ok {
		d.doc.setValue(keyLaunch, text, placeOf(p.value))
	}
}

// profileNames reads a list of profile names, each once. Whether the profiles
// exist is judged when all files are read.
func (d *decoder) profileNames(p pair) []word {
	list := d.readWords(p)
	seen := map[string]bool{}
	for _, w := range list {
		if seen[w.text] {
			d.errs = append(d.errs, mistakeAt(d.doc.path, w.at, "%s names %q twice", p.key.Value, w.text))
		}
		seen[w.text] = true
	}
	return list
}

func (d *decoder) readProtect(p pair) {
	d.readTable(p.value, "protect", map[string]reader{
		"labels": func(p pair) {
			d.doc.labels = d.readLabels(p)
		},
		"ids": d.readIDs,
	})
}

// readLabels reads label keys with their values; case and dots are kept.
func (d *decoder) readLabels(p pair) []placed[Label] {
	var list []placed[Label]
	for _, l := range d.readPairs(p.value, p.key.Value) {
		key, ok := d.readText(l.key, "a label's key")
		if !ok {
			continue
		}
		if value, ok := d.readText(l.value, "the value of a label"); ok {
			list = append(list, placed[Label]{Label{key, value}, placeOf(l.key)})
		}
	}
	return list
}

func (d *decoder) readIDs(p pair) {
	for _, w := range d.readWords(p) {
		ref, err := sandbox.ParseRef(w.text)
		if err != nil {
			d.errs = append(d.errs, mistakeAt(d.doc.path, w.at, "ids: %w", err))
			continue
		}
		d.doc.ids = append(d.doc.ids, placed[sandbox.Ref]{ref, w.at})
	}
}

func (d *decoder) readLimits(p pair) {
	readers := map[string]reader{}
	for _, l := range limitSettings() {
		readers[l.name] = func(p pair) {
			if text, ok := d.readMeasured(p, l.kind, false); ok {
				d.doc.setValue(l.settingKey(), text, placeOf(p.value))
			}
		}
	}
	d.readTable(p.value, "limits", readers)
}

func (d *decoder) readMeasured(p pair, kind providers.OptionKind, secret bool) (string, bool) {
	text, ok := d.readText(p.value, p.key.Value)
	if !ok {
		return "", false
	}
	if err := checkKind(kind, text); err != nil {
		d.addMistake(p.value, "%s: %w", p.key.Value, withoutSecretText(kind, secret, err))
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
