package sandbox

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// ErrMeasure is what every refused duration, size or moment wraps.
var ErrMeasure = errors.New("not understood")

// measureError is a refused text; it is an ErrMeasure.
type measureError string

func (e measureError) Error() string        { return string(e) }
func (e measureError) Is(target error) bool { return target == ErrMeasure }

// RefuseMeasure says what a text should have been, why it is not, and how it is written.
func RefuseMeasure(text, what, why, write string) error {
	if text == "" {
		return measureError("it is empty (is a shell variable unset?)")
	}
	return measureError(fmt.Sprintf("%q is not %s: %s; write it like %s", text, what, why, write))
}

const (
	day  = 24 * time.Hour
	week = 7 * day
	// maxDuration keeps now-minus-age inside the calendar: ten years.
	maxDuration = 3650 * day
)

const howDuration = "200ms, 90s, 10m, 1.5h, 3d, 1w or 1h30m"

// ParseDuration reads 200ms, 90s, 10m, 1.5h, 3d, 1w and sums of them in falling units
// (1h30m). Zero, signs, bare numbers and the empty string are refused: an unset shell
// variable must never mean "no limit".
func ParseDuration(text string) (time.Duration, error) {
	refuse := func(why string) (time.Duration, error) {
		return 0, RefuseMeasure(text, "a duration", why, howDuration)
	}
	if text == "" || text[0] == '-' || text[0] == '+' {
		return refuse("a sign is not allowed")
	}
	var total time.Duration
	last := time.Duration(math.MaxInt64)
	for rest := text; rest != ""; {
		number, after := cutNumber(rest)
		if number == "" {
			return refuse("a number must come before each unit")
		}
		unit, name := durationUnit(after)
		switch {
		case after == "":
			return refuse("the unit is missing")
		case unit == 0:
			return refuse(fmt.Sprintf("unknown unit %q", name))
		case unit >= last:
			return refuse("units must descend, and each may occur once")
		}
		amount, ok := scaleDecimal(number, int64(unit), int64(maxDuration))
		if !ok {
			return refuse("longer than ten years")
		}
		total += time.Duration(amount)
		last, rest = unit, after[len(name):]
	}
	switch {
	case total == 0:
		return refuse("it is zero")
	case total > maxDuration:
		return refuse("longer than ten years")
	}
	return total, nil
}

// cutNumber takes a number such as 12 or 1.5 off the front of a text; "" where it begins with
// none.
func cutNumber(text string) (number, rest string) {
	digits := func(from int) int {
		for from < len(text) && text[from] >= '0' && text[from] <= '9' {
			from++
		}
		return from
	}
	end := digits(0)
	if end > 0 && end < len(text) && text[end] == '.' {
		if part := digits(end + 1); part > end+1 {
			end = part
		}
	}
	return text[:end], text[end:]
}

// scaleDecimal multiplies a number of cutNumber with a unit, rounded down; false beyond most.
func scaleDecimal(number string, unit, most int64) (int64, bool) {
	const places = 9 // more change nothing that anybody means
	whole, part, _ := strings.Cut(number, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > most/unit {
		return 0, false
	}
	amount, share := n*unit, big.NewInt(0)
	if part = part[:min(len(part), places)]; part != "" {
		share.SetString(part+strings.Repeat("0", places-len(part)), 10)
		share.Mul(share, big.NewInt(unit)).Div(share, big.NewInt(1_000_000_000))
	}
	amount += share.Int64()
	return amount, amount <= most
}

// durationUnits are the letters of all units, longest first, apart from ms.
const durationUnits = "wdhms"

// durationUnit is the unit that a text begins with, and its name; 0 beside an unknown one.
func durationUnit(text string) (unit time.Duration, name string) {
	end := strings.IndexFunc(text, func(r rune) bool { return r >= '0' && r <= '9' || r == '.' })
	if end > 0 {
		text = text[:end]
	}
	switch text {
	case "ms":
		return time.Millisecond, text
	case "s":
		return time.Second, text
	case "m":
		return time.Minute, text
	case "h":
		return time.Hour, text
	case "d":
		return day, text
	case "w":
		return week, text
	}
	return 0, text
}

// FormatDuration writes an age or a limit as ParseDuration reads it, in at most two
// units, rounded down; under a second it is 0s.
func FormatDuration(d time.Duration) string {
	for i := range len(durationUnits) {
		unit, _ := durationUnit(durationUnits[i : i+1])
		if d < unit {
			continue
		}
		out := strconv.FormatInt(int64(d/unit), 10) + durationUnits[i:i+1]
		if i+1 < len(durationUnits) {
			smaller, _ := durationUnit(durationUnits[i+1 : i+2])
			if rest := d % unit / smaller; rest > 0 {
				out += strconv.FormatInt(int64(rest), 10) + durationUnits[i+1:i+2]
			}
		}
		return out
	}
	return "0s"
}

// FormatExactDuration writes a duration without rounding: a limit that is compared with
// another.
func FormatExactDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// FormatElapsed writes how long something took: FormatDuration with milliseconds below a
// second and tenths of a second below ten.
func FormatElapsed(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + FormatElapsed(-d)
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	}
	return FormatDuration(d)
}

// MiB is 1024*1024 bytes, the unit of every `*_mb` figure.
const MiB = 1 << 20

const howSize = "64M, 512MB, 512Mi or 1.5G"

// ParseSize reads 512M, 2G, 64K into bytes, all 1024-based; MB and Mi mean M, and lower case
// means the same. Bare numbers, zero, signs and the empty string are refused.
func ParseSize(text string) (int64, error) {
	refuse := func(why string) (int64, error) { return 0, RefuseMeasure(text, "a size", why, howSize) }
	number, suffix := cutNumber(text)
	var unit int64
	switch strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(suffix), "b"), "i") {
	case "k":
		unit = 1 << 10
	case "m":
		unit = MiB
	case "g":
		unit = 1 << 30
	}
	switch {
	case number == "":
		return refuse("it must begin with a number")
	case suffix == "":
		return refuse("the unit is missing")
	case unit == 0:
		return refuse(fmt.Sprintf("unknown unit %q", suffix))
	}
	n, ok := scaleDecimal(number, unit, 1<<50)
	switch {
	case !ok:
		return refuse("it is too large")
	case n == 0:
		return refuse("it is zero")
	}
	return n, nil
}
