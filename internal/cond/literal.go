package cond

import (
	"strconv"
	"strings"

	"sbx/internal/sandbox"
)

// literalForm is how a number was written.
type literalForm int8

const (
	formNone literalForm = iota // not a literal
	formBare
	formPercent
	formDuration
	formSize
)

// literal is a number with a unit, as written in the text.
type literal struct {
	form   literalForm
	text   string
	number float64 // in percent, seconds or bytes
}

// literalOf reads 10, 1.5e3, 5%, 1h30m, 512M.
func literalOf(text string) (literal, bool) {
	if d, err := sandbox.ParseDuration(text); err == nil {
		return literal{formDuration, text, d.Seconds()}, true
	}
	if n, err := sandbox.ParseSize(text); err == nil {
		return literal{formSize, text, float64(n)}, true
	}
	l := literal{form: formBare, text: text}
	digits, percent := strings.CutSuffix(text, "%")
	if percent {
		l.form = formPercent
	}
	var err error
	l.number, err = strconv.ParseFloat(digits, 64)
	return l, err == nil && !strings.ContainsAny(digits, "xX_") // no 0x1p4
}
