package output

import (
	"math"
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// machineText is a shaped value as one cell of csv or tsv, not yet escaped: unknown is
// empty, a map is "k=v,k=v", a list of words "a,b", anything deeper compact JSON.
func machineText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		return joinScalars(v)
	case Fields:
		return joinPairs(v)
	}
	return string(appendJSON(nil, v, compact))
}

func joinScalars(list []any) string {
	words := make([]string, len(list))
	for i, e := range list {
		if !isScalar(e) {
			return string(appendJSON(nil, list, compact))
		}
		words[i] = machineText(e)
	}
	return strings.Join(words, ",")
}

func joinPairs(fields Fields) string {
	words := make([]string, len(fields))
	for i, f := range fields {
		if !isScalar(f.Value) {
			return string(appendJSON(nil, fields, compact))
		}
		words[i] = f.Key + "=" + machineText(f.Value)
	}
	return strings.Join(words, ",")
}

func isScalar(v any) bool {
	switch v.(type) {
	case []any, Fields:
		return false
	}
	return true
}

// noValue is shown for an unknown or missing value.
const noValue = "-"

// humanText is a value for eyes, not yet escaped: "-" for unknown, "3m ago" for an instant,
// "1h30m" for a duration and for a `_seconds` key.
func humanText(v any, key string, now time.Time) string {
	if at, ok := asInstant(v); ok {
		return relativeTime(at, now)
	}
	if d, ok := v.(time.Duration); ok {
		return sandbox.FormatElapsed(d)
	}
	shaped := shapeValue(v)
	if f, ok := asNumber(shaped); ok && strings.HasSuffix(key, "_seconds") {
		return sandbox.FormatElapsed(time.Duration(f * float64(time.Second)))
	}
	if f, ok := shaped.(float64); ok {
		return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64)
	}
	if text := machineText(shaped); text != "" {
		return text
	}
	return noValue
}

func asInstant(v any) (time.Time, bool) {
	switch v := v.(type) {
	case time.Time:
		return v, !v.IsZero()
	case *time.Time:
		if v != nil {
			return *v, !v.IsZero()
		}
	}
	return time.Time{}, false
}

func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// relativeTime writes an instant as seen from now: "3m ago", "in 2h", "now" within a second.
func relativeTime(at, now time.Time) string {
	switch d := now.Sub(at); {
	case d >= time.Second:
		return sandbox.FormatDuration(d) + " ago"
	case d <= -time.Second:
		return "in " + sandbox.FormatDuration(-d)
	}
	return "now"
}
