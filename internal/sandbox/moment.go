package sandbox

import (
	"strings"
	"time"
)

const howMoment = "2026-11-22, 2026-11-22T12:00, 12:00, yesterday, or 1h for an hour ago"

// ParseMoment reads a point in time as a person writes it: RFC 3339, a date (its first moment),
// a date with a time, with or without seconds and zone, a time of today, `today`, `yesterday`, or a
// duration (that long ago).
// What has no zone is UTC, like every time that is printed: an answer must not depend on the
// host. Refused are a time of today that is still to come, which may mean yesterday's, and what
// ParseDuration refuses.
func ParseMoment(text string, now time.Time) (time.Time, error) {
	now = now.UTC()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	switch strings.ToLower(text) {
	case "today":
		return midnight, nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1), nil
	case "now":
		return time.Time{}, RefuseMeasure(text, "a moment", "everything was created before now", howMoment)
	}
	if at, ok := ParseTime(text); ok {
		return at, nil
	}
	for _, layout := range []string{"15:04", time.TimeOnly} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		at = midnight.Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second)
		if at.After(now) {
			return time.Time{}, RefuseMeasure(text, "a date or time", "that is later today (UTC)", midnight.AddDate(0, 0, -1).Format(time.DateOnly)+"T"+text)
		}
		return at, nil
	}
	age, err := ParseDuration(text)
	switch {
	case err == nil:
		return now.Add(-age), nil
	case text != "" && isDecimal(text):
		return time.Time{}, RefuseMeasure(text, "a date or time", "the unit is missing", howMoment)
	}
	return time.Time{}, RefuseMeasure(text, "a date or time", "it is neither a time nor a duration", howMoment)
}

const howFuture = "2026-11-22T18:00Z, 2026-11-22, or 18:00 for a time of today (UTC)"

// ParseFuture reads a point in time that is to come, in the forms of ParseMoment: RFC 3339, a date (its first moment), a
// date with a time, or a time of today. What has passed is refused, and so is a duration, which has a flag of its own.
func ParseFuture(text string, now time.Time) (time.Time, error) {
	at, ok := ParseTime(text)
	for _, layout := range []string{"15:04", time.TimeOnly} {
		if of, err := time.Parse(layout, text); err == nil {
			now := now.UTC()
			at, ok = time.Date(now.Year(), now.Month(), now.Day(), of.Hour(), of.Minute(), of.Second(), 0, time.UTC), true
		}
	}
	switch _, err := ParseDuration(text); {
	case !ok && err == nil:
		return time.Time{}, RefuseMeasure(text, "a date or time", "it is a duration", howFuture)
	case !ok:
		return time.Time{}, RefuseMeasure(text, "a date or time", "it cannot be read as one", howFuture)
	case !at.After(now):
		return time.Time{}, RefuseMeasure(text, "a time to come", "it has passed: it is now "+now.UTC().Format(time.RFC3339), howFuture)
	case at.Sub(now) > maxDuration:
		return time.Time{}, RefuseMeasure(text, "a time to come", "it is more than ten years away", howFuture)
	}
	return at, nil
}

// ParseTime reads a point in time that no clock is needed for: RFC 3339, also without seconds, a
// date, or a date with a time; without a zone in UTC.
func ParseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

func isDecimal(text string) bool {
	number, rest := cutNumber(text)
	return number != "" && rest == ""
}

// ParseAge reads how long ago something was, for what only reads: a duration, or a moment of
// ParseMoment in the past. A selector keeps moments as moments.
func ParseAge(text string, now time.Time) (time.Duration, error) {
	age, refused := ParseDuration(text)
	if refused == nil {
		return age, nil
	}
	at, err := ParseMoment(text, now)
	switch {
	case err != nil && (strings.Contains(text, ":") || strings.LastIndex(text, "-") > 0):
		return 0, err // it is meant as a time
	case err != nil:
		return 0, refused
	}
	age = now.Sub(at)
	switch {
	case age <= 0:
		return 0, RefuseMeasure(text, "an age", "it is not in the past", howDuration)
	case age > maxDuration:
		return 0, RefuseMeasure(text, "an age", "longer than ten years ago", howDuration)
	}
	return age, nil
}
