package cond

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	exprparser "github.com/expr-lang/expr/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeTree writes a tree of ours with brackets around every node.
func writeTree(n expression) string {
	switch n := n.(type) {
	case nameNode:
		return n.name
	case memberNode:
		return fmt.Sprintf("%s[%s]", writeTree(n.of), writeTree(n.key))
	case numberNode:
		return strconv.FormatFloat(n.literal.number, 'g', -1, 64)
	case textNode:
		return strconv.Quote(n.text)
	case boolNode:
		return strconv.FormatBool(n.value)
	case nilNode:
		return "nil"
	case listNode:
		return "[" + writeAll(n.items, writeTree) + "]"
	case unaryNode:
		return fmt.Sprintf("(%s %s)", n.op, writeTree(n.operand))
	case binaryNode:
		return fmt.Sprintf("(%s %s %s)", writeTree(n.left), n.op, writeTree(n.right))
	case callNode:
		return fmt.Sprintf("%s(%s)", writeTree(n.callee), writeAll(n.arguments, writeTree))
	}
	panic(fmt.Sprintf("%T", n))
}

// writeTheirs writes a tree of expr-lang/expr in the same form.
func writeTheirs(n ast.Node) string {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value
	case *ast.MemberNode:
		return fmt.Sprintf("%s[%s]", writeTheirs(n.Node), writeTheirs(n.Property))
	case *ast.IntegerNode:
		return strconv.FormatFloat(float64(n.Value), 'g', -1, 64)
	case *ast.FloatNode:
		return strconv.FormatFloat(n.Value, 'g', -1, 64)
	case *ast.StringNode:
		return strconv.Quote(n.Value)
	case *ast.BoolNode:
		return strconv.FormatBool(n.Value)
	case *ast.NilNode:
		return "nil"
	case *ast.ArrayNode:
		return "[" + writeAll(n.Nodes, writeTheirs) + "]"
	case *ast.UnaryNode:
		return fmt.Sprintf("(%s %s)", n.Operator, writeTheirs(n.Node))
	case *ast.BinaryNode:
		return fmt.Sprintf("(%s %s %s)", writeTheirs(n.Left), n.Operator, writeTheirs(n.Right))
	case *ast.BuiltinNode:
		return fmt.Sprintf("%s(%s)", n.Name, writeAll(n.Arguments, writeTheirs))
	case *ast.CallNode:
		return fmt.Sprintf("%s(%s)", writeTheirs(n.Callee), writeAll(n.Arguments, writeTheirs))
	}
	return fmt.Sprintf("%T", n)
}

func writeAll[N any](nodes []N, write func(N) string) string {
	words := make([]string, len(nodes))
	for i, n := range nodes {
		words[i] = write(n)
	}
	return strings.Join(words, ", ")
}

func parseOurs(text string) (expression, error) {
	return parse(source{text: text}, func(string) bool { return false })
}

func parseTheirs(text string) (ast.Node, error) {
	tree, err := exprparser.ParseWithConfig(text, &conf.Config{DisableIfOperator: true})
	if err != nil {
		return nil, err
	}
	return tree.Node, nil
}

// TestTreesAreThoseOfExpr: what we parse has the tree that the parser of expr-lang/expr gives it.
func TestTreesAreThoseOfExpr(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"a or b and c == d + e * f", "(a or (b and (c == (d + (e * f)))))"},
		{"a * b + c < d and e or f", "(((((a * b) + c) < d) and e) or f)"},
		{"a - b - c / d / e > 1", "(((a - b) - ((c / d) / e)) > 1)"},
		{"not a and not (b or !c)", "((not a) and (not (b or (! c))))"},
		{"not a == b", "((not a) == b)"},
		{"-a * -b + -(c) > -1.5e-3", ""},
		{"a < b <= c > d", ""},
		{"a < b == c", "((a < b) == c)"},
		{"a not in [1, 2,] and b not contains 'x'", ""},
		{"not a not startsWith 'x' or b not endsWith `y`", ""},
		{`a.b["c"].d == labels.in and x["y/z"] matches '\x41\u00e9\'"'`, ""},
		{"len(a.b, [c], nil) == true or f() != false", ""},
		{"(a.b)[c].d(1, 2)(3)", ""},
		{"a && b || c && !d", "((a && b) || (c && (! d)))"},
		{".5 < 1e3 and 5. > 0", ""},
		{"[[], [1]] == []", ""},
	} {
		text, want := c.text, c.want
		ours, err := parseOurs(text)
		theirs, errTheirs := parseTheirs(text)
		if errTheirs != nil {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		assert.Equal(t, writeTheirs(theirs), writeTree(ours), text)
		if want != "" {
			assert.Equal(t, want, writeTree(ours))
		}
	}
}

// TestRandomTreesAreThoseOfExpr does the same with 20,000 sequences of tokens, most of which are no conditions: both
// refuse those.
func TestRandomTreesAreThoseOfExpr(t *testing.T) {
	t.Parallel()
	words := strings.Split("a b.c labels 1 2.5 'x' \"y\" true nil ( ) ( ) [ ] , . + - * / < <= > >= == != in not and or && || ! contains startsWith matches len( a a 1 1", " ")
	random := rand.New(rand.NewPCG(3, 4))
	parsed := 0
	for range 20000 {
		var text []string
		for range 1 + random.IntN(9) {
			text = append(text, words[random.IntN(len(words))])
		}
		parsed += sameTree(t, strings.Join(text, " "))
	}
	assert.Greater(t, parsed, 500, "sequences that are conditions")
}

// sameTree compares both parsers on one text, and counts it where both take it.
func sameTree(t *testing.T, text string) int {
	t.Helper()
	ours, err := parseOurs(text)
	theirs, errTheirs := parseTheirs(text)
	if (err == nil) != (errTheirs == nil) {
		t.Fatalf("%q: ours %v, theirs %v", text, err, errTheirs)
	}
	if err != nil {
		return 0
	}
	if o, th := writeTree(ours), writeTheirs(theirs); o != th {
		t.Fatalf("%q: ours %s, theirs %s", text, o, th)
	}
	return 1
}
