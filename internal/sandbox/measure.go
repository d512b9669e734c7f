package sandbox

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrMeasure is what every refused duration or size wraps.
var ErrMeasure = errors.New("not understood")

const (
	day  = 24 * time.Hour
	week = 7 * day
	// maxDuration keeps now-minus-age inside the calendar: ten years.
	maxDuration = 3650 * day
)

// ParseDuration reads 90s, 10m, 2h, 3d, 1w and sums of them in falling units
// (1h30m). Zero, signs, bare numbers, fractions and the empty string are
// refused: an unset shell variable must never mean "no limit".
func ParseDuration(text string) (time.Duration, error) {
	refuse := func(why string) (time.Duration, error) {
		return 0, fmt.Errorf("%w: duration %q: %s; write it like 90s, 10m, 2h, 3d, 1w or 1h30m", ErrMeasure, text, why)
	}
	switch {
	case text == "":
		return refuse("empty (is a shell variable unset?)")
	case text[0] == '-' || text[0] == '+':
		return refuse("a sign has no meaning here")
	}
	var total time.Duration
	last := time.Duration(math.MaxInt64)
	for rest := text; rest != ""; {
		digits := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		switch {
		case digits == 0:
			return refuse("a number must come before each unit")
		case digits < 0:
			return refuse("a unit is missing")
		}
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		unit := durationUnit(rest[digits])
		switch {
		case err != nil:
			return refuse("the number is too large")
		case unit == 0:
			return refuse(fmt.Sprintf("unknown unit %q", rest[digits:digits+1]))
		case unit >= last:
			return refuse("units must fall, each used once")
		case n > int64(maxDuration/unit):
			return refuse("longer than ten years")
		}
		total += time.Duration(n) * unit
		last, rest = unit, rest[digits+1:]
	}
	switch {
	case total == 0:
		return refuse("zero")
	case total > maxDuration:
		return refuse("longer than ten years")
	}
	return total, nil
}

// durationUnits are the letters of all units, longest first.
const durationUnits = "wdhms"

func durationUnit(c byte) time.Duration {
	switch c {
	case 's':
		return time.Second
	case 'm':
		return time.Minute
	case 'h':
		return time.Hour
	case 'd':
		return day
	case 'w':
		return week
	}
	return 0
}

// FormatDuration writes an age or a limit as ParseDuration reads it, in at most two
// units, rounded down; under a second it is 0s.
func FormatDuration(d time.Duration) string {
	for i := range len(durationUnits) {
		unit := durationUnit(durationUnits[i])
		if d < unit {
			continue
		}
		out := strconv.FormatInt(int64(d/unit), 10) + durationUnits[i:i+1]
		if i+1 < len(durationUnits) {
			if rest := d % unit / durationUnit(durationUnits[i+1]); rest > 0 {
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

// ParseSize reads 512M, 2G, 64K (1024-based) into bytes. Bare numbers, zero,
// signs and fractions are refused.
func ParseSize(text string) (int64, error) {
	refuse := func(why string) (int64, error) {
		return 0, fmt.Errorf("%w: size %q: %s; write it like 64M, 512M or 2G", ErrMeasure, text, why)
	}
	if text == "" {
		return refuse("empty (is a shell variable unset?)")
	}
	var unit int64
	switch text[len(text)-1] {
	case 'K':
		unit = 1 << 10
	case 'M':
		unit = MiB
	case 'G':
		unit = 1 << 30
	default:
		return refuse("the unit K, M or G is missing")
	}
	digits := text[:len(text)-1]
	if digits == "" || strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) {
		return refuse("only a whole number may stand before the unit")
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil || n > (1<<50)/unit:
		return refuse("too large")
	case n == 0:
		return refuse("zero")
	}
	return n * unit, nil
}
