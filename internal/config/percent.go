package config

import (
	"fmt"
	"strconv"
	"strings"

	"sbx/internal/sandbox"
)

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
