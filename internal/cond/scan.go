package cond

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

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

// scanner reads a text before the parser does. It finds the literals that the parser does not
// know (10m, 512M, 5%) and replaces each by a number of the same length, so that all places stay
// as they are; and it finds mistakes that the parser can only call unexpected.
type scanner struct {
	source

	runes    []rune
	out      []rune
	literals map[int]literal // by place of the first character
	known    func(name string) bool
}

// scan returns the text for the parser, and the literals in it.
func scan(s source, known func(string) bool) (string, map[int]literal, error) {
	sc := &scanner{source: s, runes: []rune(s.text), literals: map[int]literal{}, known: known}
	sc.out = slices.Clone(sc.runes)
	for i := 0; i < len(sc.runes); {
		next, err := sc.step(i)
		if err != nil {
			return "", nil, err
		}
		i = next
	}
	return string(sc.out), sc.literals, nil
}

// step reads one token and returns the place behind it.
func (s *scanner) step(i int) (int, error) {
	switch r := s.runes[i]; {
	case r == '"' || r == '\'' || r == '`':
		return s.quoted(i)
	case unicode.IsDigit(r):
		return s.number(i)
	case isWordStart(r):
		return s.word(i)
	case unicode.IsSpace(r):
		return i + 1, nil
	case strings.ContainsRune("&|=<>!~/*?;#{$:^%", r):
		return s.sign(i)
	}
	return i + 1, nil
}

func isWordStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isWordRune(r rune) bool { return isWordStart(r) || unicode.IsDigit(r) }

func (s *scanner) quoted(i int) (int, error) {
	quote := s.runes[i]
	for at := i + 1; at < len(s.runes); at++ {
		switch {
		case s.runes[at] == '\\' && quote != '`':
			at++
		case s.runes[at] == quote:
			return at + 1, nil
		}
	}
	return 0, s.mistake(place{i, i + 1}, fmt.Sprintf("put %c after the text", quote), "the quote is not closed")
}

// number reads a number, which may have a unit.
func (s *scanner) number(i int) (int, error) {
	end := i
	for end < len(s.runes) && (isWordRune(s.runes[end]) || s.runes[end] == '.' || s.runes[end] == '%') {
		end++
	}
	at := place{i, end}
	text := string(s.runes[i:end])
	number, unit := cutDigits(text)
	if unit == "" {
		return end, nil
	}
	if exponent := unit[0]; (exponent == 'e' || exponent == 'E') && (len(unit) == 1 || isDigits(unit[1:])) { // 1e3, 1e-3
		return end, nil
	}
	l := literal{text: text}
	if unit == "%" {
		l.form = formPercent
		l.number, _ = strconv.ParseFloat(number, 64)
	} else if d, err := sandbox.ParseDuration(text); err == nil {
		l.form, l.number = formDuration, d.Seconds()
	} else if n, errSize := sandbox.ParseSize(text); errSize == nil {
		l.form, l.number = formSize, float64(n)
	} else {
		return 0, s.mistake(at, "durations: 200ms, 90s, 10m, 1h30m, 2d; sizes: 512M, 2G; shares: 5%", "%q is neither a number nor a duration, size or percentage", text)
	}
	s.literals[i] = l
	for k := i; k < end; k++ {
		s.out[k] = '0'
	}
	return end, nil
}

// cutDigits takes digits with one decimal point off the front of a text.
func cutDigits(text string) (number, rest string) {
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		return text, ""
	}
	if text[end] == '.' {
		if part := strings.IndexFunc(text[end+1:], func(r rune) bool { return r < '0' || r > '9' }); part < 0 {
			return text, ""
		} else if part > 0 {
			end += 1 + part
		}
	}
	return text[:end], text[end:]
}

func isDigits(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// foreignWords are words of other languages and what to write; the parser would only call the
// word after them unexpected.
func foreignWords() map[string]string {
	return map[string]string{
		"AND": "write and", "OR": "write or", "NOT": "write not", "IN": "write in", "And": "write and", "Or": "write or", "Not": "write not",
		"is": "write == to compare; NAME == nil asks whether it is not reported", "IS": "write == to compare", "like": "write contains, startsWith or matches", "LIKE": "write contains, startsWith or matches",
		"null": "write nil", "NULL": "write nil", "None": "write nil", "none": "write nil", "undefined": "write nil",
		"True": "write true", "TRUE": "write true", "False": "write false", "FALSE": "write false",
		"startswith": "write startsWith", "endswith": "write endsWith", "starts_with": "write startsWith", "ends_with": "write endsWith",
		"includes": "write contains", "has": "write \"KEY\" in labels", "unknown": "write NAME == nil to ask whether it is not reported",
		"let": "conditions have no variables", "if": "conditions have no branches: write and, or, not", "else": "conditions have no branches: write and, or, not",
		"now": "compare age_seconds, or write the time in quotes",
	}
}

func (s *scanner) word(i int) (int, error) {
	end := i
	for end < len(s.runes) && isWordRune(s.runes[end]) {
		end++
	}
	word := string(s.runes[i:end])
	afterDot := i > 0 && s.runes[i-1] == '.'
	beforeDot := end < len(s.runes) && s.runes[end] == '.'
	if hint, foreign := foreignWords()[word]; foreign && !afterDot && !beforeDot && !s.known(word) {
		return 0, s.mistake(place{i, end}, hint, "%q is not a word of a condition", word)
	}
	return end, nil
}

// sign reads an operator. The longest foreign one at this place is the mistake.
func (s *scanner) sign(i int) (int, error) {
	end := i
	for end < len(s.runes) && end < i+3 && strings.ContainsRune("&|=<>!~/*?:^%;#{$", s.runes[end]) {
		end++
	}
	sign := string(s.runes[i:end])
	if slices.Contains([]string{"&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "*", "/"}, sign) {
		return end, nil
	}
	if strings.HasPrefix(sign, "!!") || len(sign) > 1 && sign[len(sign)-1] == '!' { // a comparison or ! before a !
		return i + 1, nil
	}
	hint := map[string]string{
		"=": "write == to compare", "===": "write ==", "!==": "write !=", "<>": "write !=", "=~": "write NAME matches \"RE\"", "~": "write NAME matches \"RE\"", "!~": "write not (NAME matches \"RE\")",
		"&": "write and, or &&", "|": "write or, or ||", "=>": "write >=", "=<": "write <=", "?": "conditions have no branches: write and, or, not", "??": "write NAME == nil to ask whether it is not reported",
		"//": "a condition has no comments", "/*": "a condition has no comments", "%": "conditions have no modulo; write 5% without a space", "**": "conditions have no powers", "^": "conditions have no powers",
		"$": "names have no $",
	}[sign]
	return 0, s.mistake(place{i, end}, hint, "%q is not an operator of a condition", sign)
}
