package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"sbx/internal/providers"
)

// composed says that a value of this kind is a list or a map.
func composed(kind providers.OptionKind) bool {
	return kind == providers.OptionArgs || kind == providers.OptionMap || kind == providers.OptionLimits
}

// among refuses a word that is none of an option's choices.
func among(o providers.Option, text string) error {
	if len(o.Choices) == 0 || slices.Contains(o.Choices, text) {
		return nil
	}
	return fmt.Errorf("must be one of %s, not %s", listed(o.Choices), quoted(text))
}

// fitting is normalise for an option, whose choices count as well.
func fitting(o providers.Option, text string) (string, error) {
	text, err := normalise(o.Kind, text)
	if err == nil {
		err = among(o, text)
	}
	return text, err
}

// normalise reads an option that is written as in a file, from the environment
// or from a default. Lists and maps become JSON.
func normalise(kind providers.OptionKind, text string) (string, error) {
	if !composed(kind) {
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
	if kind != providers.OptionArgs {
		pairs := make(map[string]string, len(list)/2)
		for i := 0; i+1 < len(list); i += 2 {
			if _, twice := pairs[list[i]]; twice {
				return "", errors.New("names one key twice")
			}
			if kind == providers.OptionLimits {
				if err := check(providers.OptionDuration, list[i+1]); err != nil {
					return "", fmt.Errorf("%s: %w", quoted(list[i]), err)
				}
			}
			pairs[list[i]] = list[i+1]
		}
		value = pairs
	}
	text, err := json.Marshal(value)
	return string(text), err
}
