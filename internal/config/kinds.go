package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
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

// coresOf are those of an amount.
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

// checkKind refuses a text that its kind does not take.
func checkKind(kind providers.OptionKind, text string) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("holds a line end or another control character")
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
