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

// scanner divides a text into tokens. It names the mistakes that the parser could only call
// unexpected: words and signs of other languages.
type scanner struct {
	source

	runes  []rune
	tokens []token
	known  func(name string) bool
}

// scan returns the tokens of a text; the last one is its end.
func scan(s source, known func(string) bool) ([]token, error) {
	sc := &scanner{source: s, runes: []rune(s.text), known: known}
	for i := 0; i < len(sc.runes); {
		next, err := sc.step(i)
		if err != nil {
			return nil, err
		}
		i = next
	}
	end := len([]rune(strings.TrimRight(s.text, " \t\n")))
	return append(sc.tokens, token{kind: tokenEnd, at: place{end, end + 1}}), nil
}

// add appends a token of the characters from i to before end, and returns end.
func (s *scanner) add(kind tokenKind, i, end int) int {
	s.tokens = append(s.tokens, token{kind: kind, at: place{i, end}, text: string(s.runes[i:end])})
	return end
}

// step reads one token and returns the place behind it.
func (s *scanner) step(i int) (int, error) {
	switch r := s.runes[i]; {
	case r == '"' || r == '\'' || r == '`':
		return s.quoted(i)
	case unicode.IsDigit(r), r == '.' && i+1 < len(s.runes) && unicode.IsDigit(s.runes[i+1]):
		return s.number(i)
	case isWordStart(r):
		return s.word(i)
	case unicode.IsSpace(r):
		return i + 1, nil
	case strings.ContainsRune("&|=<>!~/*?;#{$:^%", r):
		return s.sign(i)
	}
	return s.add(tokenSign, i, i+1), nil
}

func isWordStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isWordRune(r rune) bool { return isWordStart(r) || unicode.IsDigit(r) }

func (s *scanner) quoted(i int) (int, error) {
	quote := s.runes[i]
	for at := i + 1; at < len(s.runes); at++ {
		switch r := s.runes[at]; {
		case r == '\\' && quote != '`':
			at++
		case r == '\n' && quote != '`':
			return 0, s.mistake(place{i, i + 1}, fmt.Sprintf("put %c after the text", quote), "the quote is not closed")
		case r == quote:
			end := s.add(tokenText, i, at+1)
			return end, s.unquote(&s.tokens[len(s.tokens)-1])
		}
	}
	return 0, s.mistake(place{i, i + 1}, fmt.Sprintf("put %c after the text", quote), "the quote is not closed")
}

// unquote removes the quotes of a text; between ' and " it resolves the escapes, which are those of Go.
func (s *scanner) unquote(t *token) error {
	raw := t.text[0] == '`'
	inner := t.text[1 : len(t.text)-1]
	if t.text = inner; raw {
		return nil
	}
	var text strings.Builder
	for inner != "" {
		if len(inner) > 1 && inner[0] == '\\' && strings.IndexByte("'\"`?", inner[1]) >= 0 {
			text.WriteByte(inner[1])
			inner = inner[2:]
			continue
		}
		r, _, rest, err := strconv.UnquoteChar(inner, 0)
		if err != nil {
			return s.mistake(t.at, `write \\ for a backslash`, "the text has an escape that does not exist")
		}
		text.WriteRune(r)
		inner = rest
	}
	t.text = text.String()
	return nil
}

// number reads a number, which may have a unit.
func (s *scanner) number(i int) (int, error) {
	end := i
	for end < len(s.runes) && (isWordRune(s.runes[end]) || s.runes[end] == '.' || s.runes[end] == '%' || isExponentSign(s.runes[i:end], s.runes[end])) {
		end++
	}
	s.add(tokenNumber, i, end)
	t := &s.tokens[len(s.tokens)-1]
	t.literal = literal{form: formBare, text: t.text}
	if _, unit := cutDigits(t.text); unit == "%" {
		t.literal.form = formPercent
	} else if d, err := sandbox.ParseDuration(t.text); err == nil {
		t.literal.form, t.literal.number = formDuration, d.Seconds()
		return end, nil
	} else if n, errSize := sandbox.ParseSize(t.text); errSize == nil {
		t.literal.form, t.literal.number = formSize, float64(n)
		return end, nil
	}
	var err error
	if t.literal.number, err = strconv.ParseFloat(strings.TrimSuffix(t.text, "%"), 64); err != nil || !isDecimal(t.text) {
		return 0, s.mistake(t.at, "durations: 200ms, 90s, 10m, 1h30m, 2d; sizes: 512M, 2G; shares: 5%", "%q is neither a number nor a duration, size or percentage", t.text)
	}
	return end, nil
}

// isExponentSign says that a sign belongs to a number like 1e-3.
func isExponentSign(number []rune, sign rune) bool {
	mantissa, isExponent := strings.CutSuffix(strings.ToLower(string(number)), "e")
	return isExponent && (sign == '-' || sign == '+') && isDigits(strings.ReplaceAll(mantissa, ".", ""))
}

// isDecimal refuses what strconv takes beyond decimal numbers: 0x1p4, 0x_1p4.
func isDecimal(text string) bool { return !strings.ContainsAny(text, "xX_") }

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
	if slices.Contains([]string{"and", "or", "not", "in", "contains", "startsWith", "endsWith", "matches"}, word) {
		return s.add(tokenSign, i, end), nil
	}
	return s.add(tokenName, i, end), nil
}

// sign reads an operator. The longest foreign one at this place is the mistake.
func (s *scanner) sign(i int) (int, error) {
	end := i
	for end < len(s.runes) && end < i+3 && strings.ContainsRune("&|=<>!~/*?:^%;#{$", s.runes[end]) {
		end++
	}
	sign := string(s.runes[i:end])
	if slices.Contains([]string{"&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "*", "/"}, sign) {
		return s.add(tokenSign, i, end), nil
	}
	if strings.HasPrefix(sign, "!!") {
		return s.add(tokenSign, i, i+1), nil
	}
	if len(sign) > 1 && sign[len(sign)-1] == '!' { // an operator before a !
		return s.add(tokenSign, i, end-1), nil
	}
	hint := map[string]string{
		"=": "write == to compare", "===": "write ==", "!==": "write !=", "<>": "write !=", "=~": "write NAME matches \"RE\"", "~": "write NAME matches \"RE\"", "!~": "write not (NAME matches \"RE\")",
		"&": "write and, or &&", "|": "write or, or ||", "=>": "write >=", "=<": "write <=", "?": "conditions have no branches: write and, or, not", "??": "write NAME == nil to ask whether it is not reported",
		"//": "a condition has no comments", "/*": "a condition has no comments", "%": "conditions have no modulo; write 5% without a space", "**": "conditions have no powers", "^": "conditions have no powers",
		"$": "names have no $",
	}[sign]
	return 0, s.mistake(place{i, end}, hint, "%q is not an operator of a condition", sign)
}
