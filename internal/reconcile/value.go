package reconcile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxMinutes keeps a duration inside the calendar: ten years.
const maxMinutes = 10 * 366 * 24 * 60

// optional leaves the zero value where there is NULL.
func optional(read func(cell) error) func(cell) error {
	return func(c cell) error {
		if c.absent {
			return nil
		}
		return read(c)
	}
}

// word reads a text without white space or control characters: an id, a status.
func word(to *string) func(cell) error {
	return func(c cell) error {
		switch {
		case c.absent:
			return errNull
		case !utf8.ValidString(c.text) || strings.ContainsFunc(c.text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
			return fmt.Errorf("%q is not one word", c.text)
		}
		*to = c.text
		return nil
	}
}

func boolean(to *bool) func(cell) error {
	return func(c cell) error {
		switch strings.ToLower(c.text) {
		case "t", "true":
			*to = true
		case "f", "false":
			*to = false
		default:
			return fmt.Errorf("%q is neither t nor f", c.text)
		}
		return nil
	}
}

func minutes(to *int) func(cell) error {
	return func(c cell) error {
		n, err := strconv.Atoi(c.text)
		if err != nil || n < 0 || n > maxMinutes {
			return fmt.Errorf("%q is no number of minutes", c.text)
		}
		*to = n
		return nil
	}
}

// stamp reads a timestamp of Postgres or of RFC 3339. One without a zone is UTC:
// the template's columns have none.
func stamp(to *time.Time) func(cell) error {
	return func(c cell) error {
		if c.absent {
			return errNull
		}
		text := c.text
		if len(text) > len("2006-01-02") && text[len("2006-01-02")] == 'T' {
			text = text[:len("2006-01-02")] + " " + text[len("2006-01-02T"):]
		}
		for _, layout := range []string{"", "Z07:00", "Z0700", "-07"} {
			at, err := time.Parse("2006-01-02 15:04:05"+layout, text)
			if err == nil && at.Year() > 1 {
				*to = at.UTC()
				return nil
			}
		}
		return errors.New("not a time: " + strconv.Quote(c.text))
	}
}
