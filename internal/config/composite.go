package config

import (
	"encoding/json"
	"errors"

	"go.yaml.in/yaml/v3"

	"sbx/internal/providers"
)

// normalise reads an option that is written as in a file, from the environment
// or from a default. Lists and maps become JSON.
func normalise(kind providers.OptionKind, text string) (string, error) {
	if kind != providers.OptionArgs && kind != providers.OptionMap {
		return text, check(kind, text)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
		return "", errors.New("must be written like " + sample(kind))
	}
	return composite(kind, doc.Content[0])
}

// composite reads a list of words or a map of words into JSON, which the
// provider's room reads without this one.
func composite(kind providers.OptionKind, node *yaml.Node) (string, error) {
	shape, list := yaml.MappingNode, []string{}
	if kind == providers.OptionArgs {
		shape = yaml.SequenceNode
	}
	if node.Kind != shape {
		return "", errors.New("must be written like " + sample(kind))
	}
	for _, item := range node.Content {
		if item.Kind != yaml.ScalarNode || missing(item) {
			return "", errors.New("must hold only words, like " + sample(kind))
		}
		list = append(list, item.Value)
	}
	var value any = list
	if kind == providers.OptionMap {
		pairs := make(map[string]string, len(list)/2)
		for i := 0; i+1 < len(list); i += 2 {
			if _, twice := pairs[list[i]]; twice {
				return "", errors.New("names one key twice")
			}
			pairs[list[i]] = list[i+1]
		}
		value = pairs
	}
	text, err := json.Marshal(value)
	return string(text), err
}
