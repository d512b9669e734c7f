package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"sbx/internal/providers"
)

// isComposite says that a value of this kind is a list or a map.
func isComposite(kind providers.OptionKind) bool {
	return kind == providers.OptionArgs || kind == providers.OptionMap || kind == providers.OptionLimits
}

// checkChoice refuses a word that is none of an option's choices.
func checkChoice(o providers.Option, text string) error {
	if len(o.Choices) == 0 || slices.Contains(o.Choices, text) {
		return nil
	}
	return fmt.Errorf("must be one of %s, not %s", joinWords(o.Choices), quoteKey(text))
}

// normalizeOption is normalise for an option, whose choices count as well.
func normalizeOption(o providers.Option, text string) (string, error) {
	text, err := normalizeText(o.Kind, text)
	if err == nil {
		err = checkChoice(o, text)
	}
	return text, err
}

// normalizeText reads an option that is written as in a file, from the environment
// or from a default. Lists and maps become JSON.
func normalizeText(kind providers.OptionKind, text string) (string, error) {
	if !isComposite(kind) {
		return text, checkKind(kind, text)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
		return "", errors.New("must be written like " + sampleOfKind(kind))
	}
	return compositeAsJSON(kind, doc.Content[0])
}

// compositeAsJSON reads a list of words or a map of words into JSON, which the
// provider's room reads without this one.
func compositeAsJSON(kind providers.OptionKind, node *yaml.Node) (string, error) {
	shape, list := yaml.MappingNode, []string{}
	if kind == providers.OptionArgs {
		shape = yaml.SequenceNode
	}
	if node.Kind != shape {
		return "", errors.New("must be written like " + sampleOfKind(kind))
	}
	for _, item := range node.Content {
		if item.Kind != yaml.ScalarNode || hasNoValue(item) {
			return "", errors.New("must hold only words, like " + sampleOfKind(kind))
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
				if err := checkKind(providers.OptionDuration, list[i+1]); err != nil {
					return "", fmt.Errorf("%s: %w", quoteKey(list[i]), err)
				}
			}
			pairs[list[i]] = list[i+1]
		}
		value = pairs
	}
	text, err := json.Marshal(value)
	return string(text), err
}
