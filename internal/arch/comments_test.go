package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
)

// TestCommentsNameTheirFunctions: a comment "NAME is ..." or "NAME ends ..." names the function below it, also after
// the function got another name.
func TestCommentsNameTheirFunctions(t *testing.T) {
	t.Parallel()
	eachSource(t, "../..", func(rel string, file *ast.File, set *token.FileSet) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc == nil {
				continue
			}
			if name := namedIn(f.Doc.Text(), f.Name.Name); name != "" {
				assert.Equal(t, f.Name.Name, name, "%s:%d", rel, set.Position(f.Pos()).Line)
			}
		}
	})
}

// namedIn is the identifier that a comment begins with and says something of; "" = it begins with a word of English.
func namedIn(text, function string) string {
	words := strings.Fields(text)
	if len(words) < 2 || !slices.Contains([]string{"is", "are", "has", "ends", "gives", "says", "reports", "returns", "reads", "checks"}, words[1]) {
		return ""
	}
	inner := strings.IndexFunc(words[0], unicode.IsUpper) > 0 // an English word has no upper-case letter inside
	lower := words[0] != "" && unicode.IsLower(rune(words[0][0]))
	if !inner && !lower && !strings.EqualFold(words[0], function) {
		return ""
	}
	return words[0]
}
