package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/yamltext"
)

const (
	keyType        = "type"
	keyOwned       = "owned"
	suffixVariable = "_env"
	suffixCommand  = "_command"
)

func (d *decoder) readProfiles(v value) {
	for _, block := range d.Pairs(v, "providers") {
		if wrong := profileName(block.Name()); wrong != "" {
			d.Refuse(block.KeyAt(), "%s is not a profile name: %s", yamltext.QuoteKey(block.Name()), wrong)
			continue
		}
		d.doc.named = append(d.doc.named, block.Name())
		d.readProfile(block)
	}
}

// readProfile reads one block by the options of its type. Without a known type its
// keys cannot be judged and are left alone.
func (d *decoder) readProfile(v value) {
	name := v.Name()
	if v.Node.Kind != yaml.MappingNode {
		d.Refuse(v.At(), "profile %s must be a mapping, like {type: %s}", name, joinWords(d.typeNames()[:min(1, len(d.types))]))
		return
	}
	kind, ok := d.typeOf(v)
	if !ok {
		return
	}
	b := block{name: word{name, v.KeyAt()}, kind: kind.Name}
	all := readers{
		keyType:  func(value) {},
		keyOwned: func(v value) { b.owned, b.at = d.readOwned(v), v.KeyAt() },
	}
	if kind.Attach == nil {
		d.metadataReaders(name, all)
		d.thresholdReaders(scope{profile: name}, all)
	}
	for _, o := range kind.Options {
		all[o.Name] = func(v value) { d.readOption(name, o, v) }
		if o.Secret {
			all[o.Name+suffixVariable] = func(v value) {
				if key, free := d.readOptionKeyOnce(name, o, v); free {
					d.readVariableName(key, v)
				}
			}
			all[o.Name+suffixCommand] = func(v value) { d.readSecretCommand(name, o, v) }
		}
	}
	d.readTable(v, "profile "+name, all)
	d.doc.profiles = append(d.doc.profiles, b)
}

// typeOf finds the type of a block.
func (d *decoder) typeOf(v value) (providers.Type, bool) {
	name, at, text := v.Name(), v.Key, ""
	var near *yaml.Node // a misspelt key
	for i := 0; i+1 < len(v.Node.Content); i += 2 {
		switch key := v.Node.Content[i]; {
		case key.Value == keyType:
			at, text = v.Node.Content[i+1], v.Node.Content[i+1].Value
		case fault.Nearest(key.Value, []string{keyType}) != "":
			near = key
		}
	}
	kind, ok := findType(d.types, text)
	switch {
	case at.Kind != yaml.ScalarNode:
		d.Refuse(yamltext.PlaceOf(at), "the type of profile %s must be a word", name)
	case text == "" && near != nil:
		d.Refuse(yamltext.PlaceOf(near), "unknown key %s in profile %s (did you mean %q?)", yamltext.QuoteKey(near.Value), name, keyType)
	case text == "":
		d.Refuse(yamltext.PlaceOf(at), "profile %s has no type%s", name, suggestAllowed(name, d.typeNames()))
	case !ok:
		d.Refuse(yamltext.PlaceOf(at), "profile %s has the unknown type %s%s", name, yamltext.QuoteKey(text), suggestAllowed(text, d.typeNames()))
	case slices.Contains(d.typeNames(), name) && name != text:
		d.Refuse(v.KeyAt(), "profile %s has the name of a type and another type, %s; give it another name", name, text)
	default:
		return kind, true
	}
	return providers.Type{}, false
}

// readOwned reads `all` or `{labels: {...}}`.
func (d *decoder) readOwned(v value) *Owned {
	if v.Node.Kind == yaml.ScalarNode {
		if v.Node.Value != "all" {
			d.Refuse(v.At(), "owned must be all or {labels: {key: value}}")
		}
		return &Owned{All: true}
	}
	rule := Owned{Labels: map[string]string{}}
	d.readTable(v, keyOwned, readers{"labels": func(v value) {
		for _, l := range d.readLabels(v) {
			rule.Labels[l.value.Key] = l.value.Value
		}
	}})
	if len(rule.Labels) == 0 {
		d.Refuse(v.At(), "owned names no label; without one nothing could be terminated")
	}
	return &rule
}

// readOption reads a setting of a provider. The mistake of a secret never quotes it.
func (d *decoder) readOption(profile string, o providers.Option, v value) {
	key, free := d.readOptionKeyOnce(profile, o, v)
	switch {
	case !free:
	case isComposite(o.Kind):
		text, err := compositeAsJSON(o.Kind, v.Node)
		if err != nil {
			d.Refuse(v.At(), "%s: %w", o.Name, err)
			return
		}
		d.doc.setValue(key, text, v.At())
	default:
		d.setting(key, func(text string) error {
			if err := checkKind(o.Kind, text); err != nil {
				return withoutSecretText(o.Kind, o.Secret, err)
			}
			return checkChoice(o, text)
		})(v)
	}
}

// readOptionKeyOnce gives the key of a setting; false where the profile has it already, in
// another spelling.
func (d *decoder) readOptionKeyOnce(profile string, o providers.Option, v value) (string, bool) {
	key := optionKey(profile, o.Name)
	_, twice := d.doc.scalars[key]
	if twice {
		d.Refuse(v.KeyAt(), "profile %s sets its %s twice, here as %s; keep one", profile, o.Name, v.Name())
	}
	return key, !twice
}

// readVariableName reads `<secret>_env: NAME`: the file names the environment variable
// that holds the secret. A word that is no name may be the secret itself and is
// not quoted.
func (d *decoder) readVariableName(key string, v value) {
	if v.Node.Kind != yaml.ScalarNode || !variableName(v.Node.Value) {
		d.Refuse(v.At(), "%s must be the name of an environment variable, not its value", v.Name())
		return
	}
	d.doc.setVariable(key, v.Node.Value, v.At())
}

// readSecretCommand reads `<secret>_command: [PROGRAM, ARGUMENT...]`: what the program prints
// is the secret. It runs when the profile is opened, never for reading the file.
func (d *decoder) readSecretCommand(profile string, o providers.Option, v value) {
	key, free := d.readOptionKeyOnce(profile, o, v)
	if !free {
		return
	}
	if words := wordTexts(d.readWords(v)); len(words) > 0 {
		d.doc.setCommand(key, words, v.At())
	} else if v.Node.Kind == yaml.SequenceNode && len(v.Node.Content) == 0 {
		d.Refuse(v.At(), "%s names no program", v.Name())
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
