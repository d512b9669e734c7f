package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// topReaders is the schema of a file: what is not here is an unknown key. Most of it are tables of settings
// that say more than a tag could: a default, a flag, a help text, and where the value goes.
func (d *decoder) topReaders() readers {
	all := readers{
		"providers":      d.readProfiles,
		keyUse:           d.readUse,
		keyLaunch:        d.setting(keyLaunch, ofKind(providers.OptionText)),
		keyProduction:    func(v value) { d.doc.production = d.profileNames(v) },
		"protect.labels": func(v value) { d.doc.labels = d.readLabels(v) },
		"protect.ids":    d.readIDs,
		keyUnattended:    d.setting(keyUnattended, ofKind(providers.OptionBool)),
		keyStoreURL:      d.readStoreURL,
		keyKeys:          d.readKeys,
		keyMouse:         d.setting(keyMouse, mouseWord),
	}
	for _, s := range slices.Concat(limitSettings(), runSettings()) {
		all[s.settingKey()] = d.setting(s.settingKey(), s.checkText)
	}
	d.notifyReaders(all)
	d.metadataReaders("", all)
	d.thresholdReaders(scope{}, all)
	return all
}

func (d *decoder) readUse(v value) {
	list := d.profileNames(v)
	if v.Node.Kind == yaml.SequenceNode && len(v.Node.Content) == 0 {
		d.Refuse(v.At(), "use names no profile; remove the key to use all")
		return
	}
	d.doc.use = list
	d.doc.setValue(keyUse, strings.Join(wordTexts(list), ","), v.KeyAt())
}

// profileNames reads a list of profile names, each once. Whether the profiles
// exist is judged when all files are read.
func (d *decoder) profileNames(v value) []word {
	list := d.readWords(v)
	seen := map[string]bool{}
	for _, w := range list {
		if seen[w.text] {
			d.Refuse(w.at, "%s names %q twice", v.Name(), w.text)
		}
		seen[w.text] = true
	}
	return list
}

// readLabels reads label keys with their values; case and dots are kept.
func (d *decoder) readLabels(v value) []placed[Label] {
	var list []placed[Label]
	for _, l := range d.Pairs(v, v.Path) {
		key, ok := d.readText(value{Node: l.Key}, "a label's key")
		if !ok {
			continue
		}
		if text, ok := d.readText(l, "the value of a label"); ok {
			list = append(list, placed[Label]{Label{key, text}, l.KeyAt()})
		}
	}
	return list
}

func (d *decoder) readIDs(v value) {
	for _, w := range d.readWords(v) {
		ref, err := sandbox.ParseRef(w.text)
		if err != nil {
			d.Refuse(w.at, "ids: %w", err)
			continue
		}
		d.doc.ids = append(d.doc.ids, placed[sandbox.Ref]{ref, w.at})
	}
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
