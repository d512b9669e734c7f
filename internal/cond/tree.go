package cond

// expression is a node of the tree that the parser makes of a condition.
type expression interface{ where() place }

// The nodes. The place of an operator is that of its sign, the place of a member that of its key.
type (
	nameNode struct {
		place
		name string
	}
	memberNode struct { // OF.KEY, or OF[KEY]
		place
		of, key expression
	}
	numberNode struct {
		place
		literal literal
	}
	textNode struct {
		place
		text string
	}
	boolNode struct {
		place
		value bool
	}
	nilNode  struct{ place }
	listNode struct {
		place
		items []expression
	}
	unaryNode struct {
		place
		op      string
		operand expression
	}
	binaryNode struct {
		place
		op          string
		left, right expression
	}
	callNode struct {
		place
		callee    expression
		arguments []expression
	}
)

func (p place) where() place { return p }
