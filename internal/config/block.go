package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

const (
	keyType        = "type"
	keyOwned       = "owned"
	suffixVariable = "_env"
	suffixCommand  = "_command"
)

func (d *decoder) readProfiles(p pair) {
	for _, block := range d.readPairs(p.value, "providers") {
		if wrong := profileName(block.key.Value); wrong != "" {
			d.addMistake(block.key, "%s is not a profile name: %s", quoteKey(block.key.Value), wrong)
			continue
		}
		d.doc.named = append(d.doc.named, block.key.Value)
		d.readProfile(block)
	}
}

// readProfile reads one block by the options of its type. Without a known type its
// keys cannot be judged and are left alone.
func (d *decoder) readProfile(p pair) {
	name := p.key.Value
	if p.value.Kind != yaml.MappingNode {
		d.addMistake(p.value, "profile %s must be a mapping, like {type: %s}", name, joinWords(d.typeNames()[:min(1, len(d.types))]))
		return
	}
	kind, ok := d.typeOf(p)
	if !ok {
		return
	}
	b := block{name: word{name, placeOf(p.key)}, kind: kind.Name}
	readers := map[string]reader{
		keyType:  func(pair) {},
		keyOwned: func(p pair) { b.owned, b.at = d.readOwned(p), placeOf(p.key) },
	}
	if kind.Attach == nil {
		readers[keyMetadata] = d.readMetadata(name)
		readers[keyThresholds] = d.readThresholds(name)
	}
	for _, o := range kind.Options {
		readers[o.Name] = func(p pair) { d.readOption(name, o, p) }
		if o.Secret {
			readers[o.Name+suffixVariable] = func(p pair) { d.readSecretVariable(name, o, p) }
			readers[o.Name+suffixCommand] = func(p pair) { d.readSecretCommand(name, o, p) }
		}
	}
	d.readTable(p.value, "profile "+name, readers)
	d.doc.profiles = append(d.doc.profiles, b)
}

// typeOf finds the type of a block.
func (d *decoder) typeOf(p pair) (providers.Type, bool) {
	name, at, text := p.key.Value, p.key, ""
	var near *yaml.Node // a misspelt key
	for i := 0; i+1 < len(p.value.Content); i += 2 {
		switch key := p.value.Content[i]; {
		case key.Value == keyType:
			at, text = p.value.Content[i+1], p.value.Content[i+1].Value
		case fault.Nearest(key.Value, []string{keyType}) != "":
			near = key
		}
	}
	kind, ok := findType(d.types, text)
	switch {
	case at.Kind != yaml.ScalarNode:
		d.addMistake(at, "the type of profile %s must be a word", name)
	case text == "" && near != nil:
		d.addMistake(near, "unknown key %s in profile %s (did you mean %q?)", quoteKey(near.Value), name, keyType)
	case text == "":
		d.addMistake(at, "profile %s has no type%s", name, suggestAllowed(name, d.typeNames()))
	case !ok:
		d.addMistake(at, "profile %s has the unknown type %s%s", name, quoteKey(text), suggestAllowed(text, d.typeNames()))
	case slices.Contains(d.typeNames(), name) && name != text:
		d.addMistake(p.key, "profile %s has the name of a type and another type, %s; give it another name", name, text)
	default:
		return kind, true
	}
	return providers.Type{}, false
}

// readOwned reads `all` or `{labels: {...}}`.
func (d *decoder) readOwned(p pair) *Owned {
	if p.value.Kind == yaml.ScalarNode {
		if p.value.Value != "all" {
			d.addMistake(p.value, "owned must be all or {labels: {key: value}}")
		}
		return &Owned{All: true}
	}
	rule := Owned{Labels: map[string]string{}}
	d.readTable(p.value, keyOwned, map[string]reader{"labels": func(p pair) {
		for _, l := range d.readLabels(p) {
			rule.Labels[l.value.Key] = l.value.Value
		}
	}})
	if len(rule.Labels) == 0 {
		d.addMistake(p.value, "owned names no label; without one nothing could be terminated")
	}
	return &rule
}

// readOption reads a setting of a provider. The mistake of a secret never quotes it.
func (d *decoder) readOption(profile string, o providers.Option, p pair) {
	key, free := d.readOptionKeyOnce(profile, o, p)
	if !free {
		return
	}
	text, ok := d.readOptionValue(o, p)
	if ok {
		d.doc.setValue(key, text, placeOf(p.value))
	}
}

// readOptionKeyOnce gives the key of a setting; false where the profile has it already, in
// another spelling.
func (d *decoder) readOptionKeyOnce(profile string, o providers.Option, p pair) (string, bool) {
	key := optionKey(profile, o.Name)
	_, twice := d.doc.scalars[key]
	if twice {
		d.addMistake(p.key, "profile %s sets its %s twice, here as %s; keep one", profile, o.Name, p.key.Value)
	}
	return key, !twice
}

func (d *decoder) readOptionValue(o providers.Option, p pair) (string, bool) {
	var text string
	var err error
	if isComposite(o.Kind) {
		text, err = compositeAsJSON(o.Kind, p.value)
	} else {
		var ok bool
		if text, ok = d.readMeasured(p, o.Kind, o.Secret); !ok {
			return "", false
		}
		err = checkChoice(o, text)
	}
	if err != nil {
		d.addMistake(p.value, "%s: %w", o.Name, err)
	}
	return text, err == nil
}

// readSecretVariable reads `<secret>_env: NAME`: the file names the environment variable
// that holds the secret. A word that is no name may be the secret itself and is
// not quoted.
func (d *decoder) readSecretVariable(profile string, o providers.Option, p pair) {
	key, free := d.readOptionKeyOnce(profile, o, p)
	if !free {
		return
	}
	if p.value.Kind != yaml.ScalarNode || !variableName(p.value.Value) {
		d.addMistake(p.value, "%s must be the name of an environment variable, not its value", p.key.Value)
		return
	}
	d.doc.setVariable(key, p.value.Value, placeOf(p.value))
}

// readSecretCommand reads `<secret>_command: [PROGRAM, ARGUMENT...]`: what the program prints
// is the secret. It runs when the profile is opened, never for reading the file.
func (d *decoder) readSecretCommand(profile string, o providers.Option, p pair) {
	key, free := d.readOptionKeyOnce(profile, o, p)
	if !free {
		return
	}
	if words := wordTexts(d.readWords(p)); len(words) > 0 {
		d.doc.setCommand(key, words, placeOf(p.value))
	} else if p.value.Kind == yaml.SequenceNode && len(p.value.Content) == 0 {
		d.addMistake(p.value, "%s names no program", p.key.Value)
	}
}

func variableName(text string) bool {
	odd := strings.ContainsFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	return text != "" && !odd && (text[0] < '0' || text[0] > '9')
}

func (d *decoder) typeNames() []string { return typeNames(d.types) }

func typeNames(types []providers.Type) []string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = t.Name
	}
	return list
}

func findType(types []providers.Type, name string) (providers.Type, bool) {
	i := slices.IndexFunc(types, func(t providers.Type) bool { return t.Name == name })
	if i < 0 {
		return providers.Type{}, false
	}
	return types[i], true
}
