package runbook

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/yamltext"
)

var update = flag.Bool("update", false, "write the generated file instead of comparing it")

const schemaFile = "../../runbooks/schema.json"

// TestGeneratedSchemaIsCurrent compares the JSON Schema for editors with the types of the document.
func TestGeneratedSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	s := schemas{comments: fieldComments(t), defs: map[string]any{}}
	schema := s.structSchema(reflect.TypeFor[Runbook]())
	schema["$schema"], schema["title"], schema["$defs"] = "https://json-schema.org/draft/2020-12/schema", "Runbook of sbx", s.defs
	text, err := json.MarshalIndent(schema, "", "  ")
	require.NoError(t, err)
	text = append(text, '\n')
	if *update {
		require.NoError(t, os.WriteFile(schemaFile, text, 0o644))
		return
	}
	have, err := os.ReadFile(schemaFile)
	require.NoError(t, err, "run `make docs`")
	assert.True(t, bytes.Equal(text, have), "runbooks/schema.json is not what the types say: run `make docs`")
}

// fieldComments are the comments of the fields of the document's types, as Type.Field.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "document.go", nil, parser.ParseComments)
	require.NoError(t, err)
	comments := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if body, isStruct := spec.Type.(*ast.StructType); isStruct {
			for _, f := range body.Fields.List {
				for _, name := range f.Names {
					comments[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
				}
			}
		}
		return true
	})
	return comments
}

type schemas struct {
	comments map[string]string
	defs     map[string]any
}

func (s schemas) structSchema(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range yamltext.FieldsOf(t) {
		one := s.typeSchema(t.Field(f.Index).Type)
		comment := s.comments[t.Name()+"."+t.Field(f.Index).Name]
		if comment == "" {
			panic(t.Name() + "." + t.Field(f.Index).Name + " has no comment")
		}
		one["description"] = comment
		if f.Words != nil {
			one["enum"] = f.Words
		}
		properties[f.Key] = one
		if f.Required {
			required = append(required, f.Key)
		}
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
	if t == reflect.TypeFor[Step]() {
		var kinds []any
		for _, k := range StepKinds() {
			kinds = append(kinds, map[string]any{"required": []string{string(k)}})
		}
		schema["oneOf"] = kinds
	}
	return schema
}

func (s schemas) typeSchema(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "string", "pattern": `^[0-9].*(ms|s|m|h|d|w)$`}
	case t == reflect.TypeFor[Date]():
		return map[string]any{"type": "string", "format": "date"}
	case t.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case t.Kind() == reflect.Pointer:
		return s.typeSchema(t.Elem())
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": "array", "items": s.typeSchema(t.Elem()), "minItems": 1}
	case t.Kind() == reflect.Struct:
		if s.defs[t.Name()] == nil {
			s.defs[t.Name()] = map[string]any{}
			s.defs[t.Name()] = s.structSchema(t)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case t == reflect.TypeFor[Word]():
		return map[string]any{"type": "string", "pattern": `^\S+$`}
	}
	return map[string]any{"type": "string"}
}
