package cond

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// parts divides a condition into texts, numbers, words, signs, and single characters. A character
// of a word is a letter, a digit, _ or any beyond ASCII that is no space, which is judged by expr: a
// table of all letters would take 0.7 ms of every start.
var parts = regexp.MustCompile(strings.ReplaceAll("`[^`]*`"+`|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'`+
	`|[.]?[0-9][0-9.]*[eE][-+](?:WORD|[.%])*|[.]?[0-9](?:WORD|[.%])*|WORD+`+
	`|!(?:==?|~)?|[&|=<>~/*?;#{$:^%]{1,3}|(?s:.)`, "WORD", `[^\x00-/:-@\[-^\x60{-\x7F\x{85}\pZ]`))

// parse gives the tree of the text.
func (c *compiler[T]) parse() (ast.Node, error) { //nolint:ireturn // a node of any kind
	text, err := c.prepare()
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseWithConfig(text, &conf.Config{MaxNodes: maxNodes, DisableIfOperator: true})
	if err != nil {
		return nil, c.explained(err)
	}
	return tree.Node, nil
}

// prepare notes the numbers of the text by their place and puts a word of the same length there,
// because expr knows no units. It names the mistakes that expr can only call unexpected: words and
// signs of other languages.
func (c *compiler[T]) prepare() (string, error) {
	var text strings.Builder
	at := place{}
	for _, span := range parts.FindAllStringIndex(c.text, -1) {
		part, before, after := c.text[span[0]:span[1]], c.text[:span[0]], c.text[span[1]:]
		size := utf8.RuneCountInString(part)
		at = place{at.to, at.to + size}
		var err error
		switch first, _ := utf8.DecodeRuneInString(part); {
		case unicode.IsDigit(first), first == '.' && size > 1:
			err = c.number(part, before, at)
			part = strings.Repeat("_", size)
		case isWordStart(first):
			err = c.checkWord(part, before, after, at)
		case strings.ContainsRune("!&|=<>~/*?;#{$:^%", first):
			err = c.checkSign(part, at)
		case size == 1 && strings.ContainsRune("\"'`", first):
			err = c.mistake(at, "put "+part+" after the text", "the quote is not closed")
		}
		if err != nil {
			return "", err
		}
		text.WriteString(part)
	}
	return text.String(), nil
}

func isWordStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isWordRune(r rune) bool { return isWordStart(r) || unicode.IsDigit(r) }

// number notes a number, which may have a unit.
func (c *compiler[T]) number(text, before string, at place) error {
	last, _ := utf8.DecodeLastRuneInString(before)
	if text[0] == '.' && isWordRune(last) || strings.HasSuffix(strings.TrimSpace(before), ".") {
		return c.unexpected(at) // NAME.5 and NAME. 5
	}
	l, is := literalOf(text)
	if !is {
		return c.mistake(at, "durations: 200ms, 90s, 10m, 1h30m, 2d; sizes: 512M, 2G; shares: 5%", "%q is neither a number nor a duration, size or percentage", text)
	}
	c.literals[at.from] = l
	return nil
}

// foreignWords are words of other languages and what to write.
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

func (c *compiler[T]) checkWord(word, before, after string, at place) error {
	hint, foreign := foreignWords()[word]
	if !foreign || strings.HasSuffix(before, ".") || strings.HasPrefix(after, ".") || c.schema.find(word) != nil {
		return nil
	}
	return c.mistake(at, hint, "%q is not a word of a condition", word)
}

func (c *compiler[T]) checkSign(sign string, at place) error {
	if slices.Contains([]string{"&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "*", "/"}, sign) {
		return nil
	}
	hint := map[string]string{
		"=": "write == to compare", "===": "write ==", "!==": "write !=", "<>": "write !=", "=~": "write NAME matches \"RE\"", "~": "write NAME matches \"RE\"", "!~": "write not (NAME matches \"RE\")",
		"&": "write and, or &&", "|": "write or, or ||", "=>": "write >=", "=<": "write <=", "?": "conditions have no branches: write and, or, not", "??": "write NAME == nil to ask whether it is not reported",
		"//": "a condition has no comments", "/*": "a condition has no comments", "%": "conditions have no modulo; write 5% without a space", "**": "conditions have no powers", "^": "conditions have no powers",
		"$": "names have no $",
	}[sign]
	return c.mistake(at, hint, "%q is not an operator of a condition", sign)
}

// explained is an error of expr in words of ours.
func (c *compiler[T]) explained(err error) error {
	wrong, placed := errors.AsType[*file.Error](err)
	if !placed {
		return c.mistake(place{0, 1}, "", "%s", err)
	}
	at := place{wrong.From, wrong.To}
	switch {
	case strings.Contains(wrong.Message, "maximum allowed nodes"):
		return c.mistake(place{0, 1}, "split it", "the condition is too large: more than %d parts", maxNodes)
	case strings.Contains(wrong.Message, "escape"):
		return c.mistake(at, `write \\ for a backslash`, "the text has an escape that does not exist")
	case wrong.Message == "unexpected token EOF", wrong.Message == "unexpected end of expression":
		end := len([]rune(strings.TrimRight(c.text, " \t\n")))
		return c.mistake(place{end, end + 1}, "", "the condition ends here, and a value or ) is missing")
	}
	return c.unexpected(at)
}

// unexpected is a part at a place where none can stand.
func (c *compiler[T]) unexpected(at place) error {
	part, hint := c.slice(at), ""
	isOperator := slices.Contains([]string{"and", "or", "not", "in", "contains", "startsWith", "endsWith", "matches"}, part)
	if first, _ := utf8.DecodeRuneInString(part); !isOperator && (isWordRune(first) || strings.ContainsRune("\"'`", first) || len(part) > 1 && first == '.') {
		hint = "join two comparisons with and, or"
	}
	return c.mistake(at, hint, "%q is not expected here", part)
}
