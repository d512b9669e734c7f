package cond

import "slices"

// tokenKind is what a token is.
type tokenKind int8

const (
	tokenEnd  tokenKind = iota
	tokenName           // a word that is no operator
	tokenNumber
	tokenText
	tokenSign // an operator, a bracket, a comma or a dot; and, or, not, in and their like too
)

// token is one word, number, text or sign of a condition.
type token struct {
	kind    tokenKind
	at      place
	text    string // of a text: without its quotes; else as written
	literal literal
}

func (t token) is(sign string) bool { return t.kind == tokenSign && t.text == sign }

// hasUnit says that a token is a number with a unit.
func (t token) hasUnit() bool { return t.kind == tokenNumber && t.literal.form != formBare }

// precedences are how tightly the operators between two values bind. They are those of expr-lang/expr,
// with which the tests compare the trees.
func precedences() map[string]int {
	return map[string]int{
		"or": 10, "||": 10, "and": 15, "&&": 15,
		"==": precedenceCompare, "!=": precedenceCompare, "<": precedenceCompare, "<=": precedenceCompare, ">": precedenceCompare, ">=": precedenceCompare,
		"in": precedenceCompare, "contains": precedenceCompare, "startsWith": precedenceCompare, "endsWith": precedenceCompare, "matches": precedenceCompare,
		"+": 30, "-": 30, "*": 60, "/": 60,
	}
}

const (
	precedenceCompare = 20
	precedenceNot     = 50
	precedenceSign    = 90
)

// parser makes a tree of tokens, by precedence climbing. The first mistake stops it.
type parser struct {
	source

	tokens   []token // the last one is the end
	next     int
	nodes    int
	binary   map[string]int
	mistaken error
}

// parse gives the tree of the text.
func parse(s source, known func(name string) bool) (expression, error) { //nolint:ireturn // a node of any kind
	tokens, err := scan(s, known)
	if err != nil {
		return nil, err
	}
	p := &parser{source: s, tokens: tokens, binary: precedences()}
	tree := p.expression(0)
	if p.current().kind != tokenEnd {
		p.unexpected(p.current())
	}
	return tree, p.mistaken
}

func (p *parser) current() token { return p.tokens[p.next] }

// take gives the current token and goes on to the one after it.
func (p *parser) take() token {
	t := p.current()
	if t.kind != tokenEnd {
		p.next++
	}
	return t
}

// expect takes a sign, or notes that it is missing.
func (p *parser) expect(sign string) {
	if !p.current().is(sign) {
		p.unexpected(p.current())
		return
	}
	p.take()
}

func (p *parser) unexpected(t token) {
	switch {
	case p.mistaken != nil:
	case t.kind == tokenEnd:
		p.mistaken = p.mistake(t.at, "", "the condition ends here, and a value or ) is missing")
	case t.kind == tokenSign:
		p.mistaken = p.mistake(t.at, "", "%q is not expected here", p.slice(t.at))
	default:
		p.mistaken = p.mistake(t.at, "join two comparisons with and, or", "%q is not expected here", p.slice(t.at))
	}
}

// node counts a node; a mistake ends the parsing of more than maxNodes.
func (p *parser) node(n expression) expression { //nolint:ireturn // a node of any kind
	if p.nodes++; p.nodes > maxNodes && p.mistaken == nil {
		p.mistaken = p.mistake(place{0, 1}, "split it", "the condition is too large: more than %d parts", maxNodes)
	}
	return n
}

// expression parses a value and the operators after it that bind at least as tightly as
// the precedence.
func (p *parser) expression(precedence int) expression { //nolint:ireturn // a node of any kind
	left := p.operand()
	for p.mistaken == nil {
		t, negated := p.current(), token{}
		if t.is("not") && p.negatesNext() {
			negated, t = t, p.tokens[p.next+1]
		}
		binds, isBinary := p.binary[t.text]
		if t.kind != tokenSign || !isBinary || binds < precedence {
			break
		}
		if negated.kind != tokenEnd {
			p.take()
		}
		p.take()
		if isOrder(t.text) {
			left = p.chain(left, t)
			continue
		}
		left = p.node(binaryNode{t.at, t.text, left, p.expression(binds + 1)})
		if negated.kind != tokenEnd {
			left = p.node(unaryNode{t.at, "not", left})
		}
	}
	return left
}

// negatesNext says that the word not belongs to the operator after it: not in, not contains.
func (p *parser) negatesNext() bool {
	after := p.tokens[p.next+1]
	return after.kind == tokenSign && slices.Contains([]string{"in", "contains", "startsWith", "endsWith", "matches"}, after.text)
}

func isOrder(op string) bool { return op == "<" || op == "<=" || op == ">" || op == ">=" }

// chain parses 10m < age < 1h as two comparisons that must both hold.
func (p *parser) chain(left expression, op token) expression { //nolint:ireturn // a node of any kind
	var all expression
	for {
		right := p.expression(precedenceCompare + 1)
		one := p.node(binaryNode{op.at, op.text, left, right})
		if all == nil {
			all = one
		} else {
			all = p.node(binaryNode{op.at, "&&", all, one})
		}
		if p.mistaken != nil || p.current().kind != tokenSign || !isOrder(p.current().text) {
			return all
		}
		left, op = right, p.take()
	}
}

// operand parses one value with the signs before it and the members after it.
func (p *parser) operand() expression { //nolint:ireturn // a node of any kind
	t := p.take()
	switch {
	case t.kind == tokenName:
		return p.word(t)
	case t.kind == tokenNumber:
		return p.node(numberNode{t.at, t.literal})
	case t.kind == tokenText:
		return p.members(p.node(textNode{t.at, t.text}))
	case t.is("not"), t.is("!"):
		return p.members(p.node(unaryNode{t.at, t.text, p.expression(precedenceNot)}))
	case t.is("-"), t.is("+"):
		return p.members(p.node(unaryNode{t.at, t.text, p.expression(precedenceSign)}))
	case t.is("("):
		inner := p.expression(0)
		p.expect(")")
		return p.members(inner)
	case t.is("["):
		items := p.list("]")
		return p.members(p.node(listNode{t.at, items}))
	}
	p.unexpected(t)
	return nilNode{t.at}
}

// word parses what begins with a name: a constant, a name, or a call.
func (p *parser) word(t token) expression { //nolint:ireturn // a node of any kind
	switch t.text {
	case "true", "false":
		return p.node(boolNode{t.at, t.text == "true"})
	case "nil":
		return p.node(nilNode{t.at})
	}
	return p.members(p.call(p.node(nameNode{t.at, t.text}), t.at))
}

// call parses the arguments of a call, if there are any.
func (p *parser) call(callee expression, at place) expression { //nolint:ireturn // a node of any kind
	if !p.current().is("(") {
		return callee
	}
	p.take()
	return p.node(callNode{at, callee, p.list(")")})
}

// list parses expressions with commas between them, up to the sign that closes the list.
func (p *parser) list(closing string) []expression {
	var items []expression
	for p.mistaken == nil && !p.current().is(closing) {
		if items = append(items, p.expression(0)); !p.current().is(",") {
			break
		}
		p.take()
	}
	p.expect(closing)
	return items
}

// members parses .KEY and ["KEY"] after a value.
func (p *parser) members(of expression) expression { //nolint:ireturn // a node of any kind
	for p.mistaken == nil {
		switch t := p.current(); {
		case t.is("."):
			p.take()
			key := p.take()
			if !isWord(key) {
				p.unexpected(key)
				return of
			}
			of = p.call(p.node(memberNode{key.at, of, textNode{key.at, key.text}}), key.at)
		case t.is("["):
			p.take()
			of = p.node(memberNode{t.at, of, p.expression(0)})
			p.expect("]")
		default:
			return of
		}
	}
	return of
}

// isWord says that a token is a word, be it a name or an operator.
func isWord(t token) bool {
	return t.kind == tokenName || t.kind == tokenSign && isWordStart([]rune(t.text)[0])
}
