package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// kindPercent is the one kind that settings have and provider options do not.
const kindPercent providers.OptionKind = "percent"

// maxCount bounds every count: more is a slip of the finger.
const maxCount = 1_000_000

// Percent is a share from 1 to 100; whole, so that guards compare without
// rounding.
type Percent int

// String writes 25%.
func (p Percent) String() string { return strconv.Itoa(int(p)) + "%" }

// Exceeded says that part is more than this share of whole.
func (p Percent) Exceeded(part, whole int) bool { return part*100 > int(p)*whole }

// ParsePercent reads 1% to 100%. Bare numbers, zero, signs, fractions and the
// empty string are refused with an error that wraps sandbox.ErrMeasure.
func ParsePercent(text string) (Percent, error) {
	digits, marked := strings.CutSuffix(text, "%")
	n, ok := digitsOf(digits)
	if !marked || !ok || n < 1 || n > 100 {
		return 0, fmt.Errorf("%w: percentage %q: write it like 25%%, from 1%% to 100%%", sandbox.ErrMeasure, text)
	}
	return Percent(n), nil
}

func parseCount(text string) (int64, error) {
	n, ok := digitsOf(text)
	if !ok || n < 1 || n > maxCount {
		return 0, fmt.Errorf("must be a whole number from 1 to %d, not %q", maxCount, text)
	}
	return n, nil
}

func digitsOf(text string) (int64, bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// amount reads a measure in the smallest unit of its kind: one, percent,
// nanosecond or byte. A larger amount is a wider limit.
func amount(kind providers.OptionKind, text string) (int64, error) {
	switch kind {
	case providers.OptionDuration:
		d, err := sandbox.ParseDuration(text)
		return int64(d), err
	case providers.OptionSize:
		return sandbox.ParseSize(text)
	case kindPercent:
		p, err := ParsePercent(text)
		return int64(p), err
	default:
		return parseCount(text)
	}
}

// check refuses a text that its kind does not take.
func check(kind providers.OptionKind, text string) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("holds a line end or another control character")
	}
	switch kind {
	case providers.OptionText:
		return nil
	case providers.OptionBool:
		if text != "true" && text != "false" {
			return fmt.Errorf("must be true or false, not %q", text)
		}
		return nil
	default:
		_, err := amount(kind, text)
		return err
	}
}

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

// sample shows how a value of a kind is written in a file.
func sample(kind providers.OptionKind) string {
	switch kind {
	case providers.OptionDuration:
		return "10m"
	case providers.OptionSize:
		return "512M"
	case providers.OptionCount:
		return "1"
	case providers.OptionBool:
		return "false"
	case providers.OptionArgs:
		return "[one, two]"
	case providers.OptionMap:
		return "{key: word}"
	case kindPercent:
		return "25%"
	default:
		return "text"
	}
}
