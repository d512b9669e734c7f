package config

import (
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/sandbox"
)

const keyMetadata = "metadata"

// meaning is what a label of a provider may say of a sandbox.
type meaning struct {
	name     string
	fallback []string // the keys that are read without configuration
	own      string   // the key of sbx itself, which is always read first
	help     string
}

func labelMeanings() []meaning {
	d := sandbox.DefaultMetadata()
	return []meaning{
		{"task", d.Task, sandbox.LabelTask, "the task that it works on"},
		{"agent_type", d.AgentType, sandbox.LabelAgentType, "the type of its agent, as in stuck_after"},
		{"owner", d.Owner, sandbox.LabelOwner, "its owner, for people; `owned` sets what cleanup may terminate"},
	}
}

// settingKey is the key of a meaning: of all profiles, or of one.
func (m meaning) settingKey(profile string) string {
	if profile == "" {
		return keyMetadata + "." + m.name
	}
	return optionKey(profile, keyMetadata+"."+m.name)
}

// metadataReaders adds what reads which labels mean what, for one profile or, without a name, for all.
func (d *decoder) metadataReaders(profile string, all readers) {
	for _, m := range labelMeanings() {
		all[keyMetadata+"."+m.name] = func(v value) {
			if text, ok := d.labelKeys(v); ok {
				d.doc.setValue(m.settingKey(profile), text, v.At())
			}
		}
	}
}

// labelKeys reads one key or a list of them into JSON.
func (d *decoder) labelKeys(v value) (string, bool) {
	keys := wordTexts(d.oneOrMore(v))
	if v.Node.Kind == yaml.SequenceNode && len(v.Node.Content) == 0 {
		d.Refuse(v.At(), "%s names no label; remove the key", v.Name())
	}
	text, err := json.Marshal(keys)
	return string(text), err == nil && len(keys) > 0
}

// metadataDefaults are the labels that are read without configuration.
func (l *loader) metadataDefaults() {
	for _, m := range labelMeanings() {
		if text, err := json.Marshal(m.fallback); err == nil {
			l.layers.byDefault(m.settingKey(""), entry{text: string(text), origin: originDefault})
		}
	}
}

// metadataOf are the labels that mean something in a profile.
func (l *loader) metadataOf(profile string) sandbox.Metadata {
	read := func(m meaning) []string {
		e, ok := l.layers.lookup(m.settingKey(profile))
		if !ok {
			e, _ = l.layers.lookup(m.settingKey(""))
		}
		var keys []string
		if json.Unmarshal([]byte(e.text), &keys) != nil {
			return nil // it was checked as it was read
		}
		return keys
	}
	all := labelMeanings()
	return sandbox.Metadata{Task: read(all[0]), AgentType: read(all[1]), Owner: read(all[2])}
}

// explainMetadata shows which labels mean what, for all profiles or for one.
func (l *loader) explainMetadata(profile string) {
	for _, m := range labelMeanings() {
		if e, ok := l.layers.lookup(m.settingKey(profile)); ok {
			l.showValue(m.settingKey(profile), e, false)
		}
	}
}

// MetadataRow is one line of a page about labels.
type MetadataRow struct {
	Name, Own, Default, Help string
}

// MetadataRows lists what labels may say, the label of sbx itself and those that are
// read without configuration.
func MetadataRows() []MetadataRow {
	var rows []MetadataRow
	for _, m := range labelMeanings() {
		rows = append(rows, MetadataRow{m.name, m.own, strings.Join(m.fallback, ", "), m.help})
	}
	return slices.Clip(rows)
}
