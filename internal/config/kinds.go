package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/yamltext"
)

// The kinds that settings have and provider options do not.
const (
	kindPercent   providers.OptionKind = "percent"
	kindCores     providers.OptionKind = "cores"   // 2 or 0.5
	kindAddress   providers.OptionKind = "address" // http or https
	kindPlainWord providers.OptionKind = "word"    // without white space
)

// maxCount bounds every count: more is a slip of the finger.
const maxCount = 1_000_000

func parseCount(text string) (int64, error) {
	n, ok := digitsOf(text)
	if !ok || n < 1 || n > maxCount {
		return 0, fmt.Errorf("must be a whole number from 1 to %d, not %q", maxCount, text)
	}
	return n, nil
}

// parseCores reads 2 or 0.5 into thousandths of a core.
func parseCores(text string) (int64, error) {
	const most, digits = 1000, 3
	whole, part, _ := strings.Cut(text, ".")
	n, ok := digitsOf(whole)
	m, fine := digitsOf((part + "000")[:digits])
	dotted := whole+"."+part == text
	milli := n*1000 + m
	if !ok || !fine || len(part) > digits || (dotted && part == "") || n > most || milli < 1 || milli > most*1000 {
		return 0, fmt.Errorf("must be a number of cores up to %d, like 2 or 0.5, not %q", most, text)
	}
	return milli, nil
}

func coresOf(milli int64) float64 { return float64(milli) / 1000 }

// plainWord refuses what no name of a snapshot or an image is.
func plainWord(text string) error {
	const longest = 255
	if len(text) > longest || text[0] == '-' || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }) {
		return fmt.Errorf("must be a name of at most %d characters without spaces that begins with no dash", longest)
	}
	return nil
}

func digitsOf(text string) (int64, bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// parseAmount reads a measure in the smallest unit of its kind: one, percent,
// thousandth of a core, nanosecond or byte. A larger amount is a wider limit.
func parseAmount(kind providers.OptionKind, text string) (int64, error) {
	switch kind {
	case providers.OptionDuration:
		d, err := sandbox.ParseDuration(text)
		return int64(d), err
	case providers.OptionSize:
		return sandbox.ParseSize(text)
	case kindPercent:
		p, err := ParsePercent(text)
		return int64(p), err
	case kindCores:
		return parseCores(text)
	default:
		return parseCount(text)
	}
}

// CheckSecret says what is wrong with a secret that a command has printed, without its text.
func CheckSecret(text string) error { return checkKind(providers.OptionText, text) }

// checkKind refuses a text that its kind does not take.
func checkKind(kind providers.OptionKind, text string) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("has a line end or another control character")
	case strings.HasPrefix(text, "\uFEFF"):
		return errors.New("begins with a byte order mark: save the file that it comes from without one")
	case len(text) > 1 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0]:
		return errors.New("is in quotes, which would be sent as a part of it: write it without them")
	}
	switch kind {
	case providers.OptionText:
		return nil
	case kindAddress:
		return webAddress(text)
	case kindPlainWord:
		return plainWord(text)
	case providers.OptionBool:
		if text != "true" && text != "false" {
			return fmt.Errorf("must be true or false, not %q", text)
		}
		return nil
	default:
		_, err := parseAmount(kind, text)
		return err
	}
}

// sampleOfKind shows how a value of a kind is written in a file.
func sampleOfKind(kind providers.OptionKind) string {
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
	case providers.OptionLimits:
		return "{implementation: 15m, default: 10m}"
	case kindPercent:
		return "25%"
	default:
		return "text"
	}
}

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
		return 0, sandbox.RefuseMeasure(text, "a percentage", "it must be whole and from 1% to 100%", "25%")
	}
	return Percent(n), nil
}

// isComposite says that a value of this kind is a list or a map.
func isComposite(kind providers.OptionKind) bool {
	return kind == providers.OptionArgs || kind == providers.OptionMap || kind == providers.OptionLimits
}

// checkChoice refuses a word that is none of an option's choices.
func checkChoice(o providers.Option, text string) error {
	if len(o.Choices) == 0 || slices.Contains(o.Choices, text) {
		return nil
	}
	return fmt.Errorf("must be one of %s, not %s", joinWords(o.Choices), yamltext.QuoteKey(text))
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
		if item.Kind != yaml.ScalarNode || yamltext.IsEmpty(item) {
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
					return "", fmt.Errorf("%s: %w", yamltext.QuoteKey(list[i]), err)
				}
			}
			pairs[list[i]] = list[i+1]
		}
		value = pairs
	}
	text, err := json.Marshal(value)
	return string(text), err
}
