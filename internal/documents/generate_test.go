package documents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/output"
	"sbx/internal/sandbox"
)

var update = flag.Bool("update", false, "write the generated files instead of comparing them")

const folder = "../../docs/schemas"

// TestGeneratedSchemasAreCurrent compares the schemas and their page with the types of this room.
func TestGeneratedSchemasAreCurrent(t *testing.T) {
	t.Parallel()
	g := newGenerator(t)
	want := map[string]string{"README.md": g.page()}
	for name, d := range documented() {
		want["sbx."+name+".v1.json"] = g.schemaFile(name, d)
	}
	if *update {
		for _, file := range g.files(t) {
			require.NoError(t, os.Remove(filepath.Join(folder, file)))
		}
		for name, text := range want {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
		}
		return
	}
	for name, text := range want {
		have, err := os.ReadFile(filepath.Join(folder, name))
		if assert.NoError(t, err, "run `make docs`") {
			assert.Equal(t, text, string(have), "%s is not what the types say: run `make docs`", name)
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), g.files(t), "run `make docs`")
}

// TestEveryKeyIsExplained, in a sentence that a person reads once.
func TestEveryKeyIsExplained(t *testing.T) {
	t.Parallel()
	g := newGenerator(t)
	for name, d := range documented() {
		g.eachKey(name, d, func(path string, k key) {
			assert.NotEmpty(t, k.doc, "%s: %s", name, path)
			assert.True(t, strings.HasSuffix(k.doc, "."), "%s: %s: %s", name, path, k.doc)
		})
	}
}

// generator has the comments of the types, and the closed lists of words, all by ROOM.Type.
type generator struct {
	types  map[string]string
	fields map[string]map[string]string // and by field
	words  map[string][]string
}

func newGenerator(t *testing.T) *generator {
	t.Helper()
	g := &generator{types: map[string]string{}, fields: map[string]map[string]string{}, words: map[string][]string{}}
	for _, room := range []string{"documents", "output", "views", "sandbox", "task", "fault", "fleet", "cleanup", "runs", "ops"} {
		files, err := filepath.Glob("../" + room + "/*.go")
		require.NoError(t, err)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			require.NoError(t, err)
			for _, decl := range parsed.Decls {
				if group, ok := decl.(*ast.GenDecl); ok {
					g.read(room, group)
				}
			}
		}
	}
	return g
}

func (g *generator) read(room string, group *ast.GenDecl) {
	for _, spec := range group.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if body, ok := spec.Type.(*ast.StructType); ok {
				g.readStruct(room+"."+spec.Name.Name, cmp.Or(spec.Doc.Text(), group.Doc.Text()), body)
			}
		case *ast.ValueSpec:
			kind, ok := spec.Type.(*ast.Ident)
			if !ok || group.Tok != token.CONST || len(spec.Values) != 1 {
				continue
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				continue
			}
			if word, err := strconv.Unquote(literal.Value); err == nil && word != "" {
				g.words[room+"."+kind.Name] = append(g.words[room+"."+kind.Name], word)
			}
		}
	}
}

func (g *generator) readStruct(name, doc string, body *ast.StructType) {
	g.types[name], g.fields[name] = oneLine(doc), map[string]string{}
	for _, f := range body.Fields.List {
		for _, ident := range f.Names {
			g.fields[name][ident.Name] = oneLine(cmp.Or(f.Doc.Text(), f.Comment.Text()))
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// roomed is a type as ROOM.Type, without its parameters.
func roomed(t reflect.Type) string {
	return strings.TrimPrefix(t.PkgPath(), "sbx/internal/") + "." + bare(t)
}

// bare is the name of a type without its parameters.
func bare(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// namedBy is the type whose name and comment two types have that are one in a schema.
func namedBy(t reflect.Type) reflect.Type {
	switch bare(t) {
	case "either":
		return t.Field(0).Type
	case "extended":
		return t.Field(1).Type
	}
	return t
}

// about is what the comment of a struct says, beginning with a capital.
func (g *generator) about(t reflect.Type) string {
	t = namedBy(t)
	text := strings.TrimPrefix(g.types[roomed(t)], bare(t)+" is ")
	text = strings.TrimPrefix(text, bare(t)+" ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// key is one field of a struct, embedded ones included.
type key struct {
	name, doc string
	optional  bool
	field     reflect.StructField
}

func (g *generator) keys(t reflect.Type) []key {
	switch bare(t) {
	case "either":
		return g.eitherKeys(t)
	case "extended":
		return g.extendedKeys(t)
	}
	var out []key
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			out = append(out, g.keys(f.Type)...)
			continue
		case name == "-":
			continue
		}
		optional := options == "omitempty" && strings.HasPrefix(roomed(t), "documents.") || options == "omitzero" && strings.HasPrefix(roomed(t), "views.")
		if optional && options == "omitzero" && f.Type.Kind() == reflect.Pointer {
			f.Type = f.Type.Elem() // nil is left out
		}
		out = append(out, key{name, g.fields[roomed(t)][f.Name], optional, f})
	}
	return out
}

// extendedKeys are the keys of the first type, and behind them what the second adds.
func (g *generator) extendedKeys(t reflect.Type) []key {
	keys := g.keys(t.Field(0).Type)
	for _, k := range g.keys(t.Field(1).Type) {
		if !slices.ContainsFunc(keys, func(has key) bool { return has.name == k.name }) {
			k.optional = true
			keys = append(keys, k)
		}
	}
	return keys
}

// eitherKeys are the keys of both types; what one of them lacks is optional.
func (g *generator) eitherKeys(t reflect.Type) []key {
	keys, others := g.keys(t.Field(0).Type), g.keys(t.Field(1).Type)
	has := func(keys []key, name string) bool {
		return slices.ContainsFunc(keys, func(k key) bool { return k.name == name })
	}
	for i := range keys {
		keys[i].optional = !has(others, keys[i].name)
	}
	for _, k := range others {
		if !has(keys, k.name) {
			k.optional = true
			keys = append(keys, k)
		}
	}
	return keys
}

// documentKeys are all keys of a document. Those beside its items are missing where it has failed.
func (g *generator) documentKeys(name string, d document) []key {
	keys := g.keys(d.form)
	t := besideItems()[name]
	if t == nil {
		return keys
	}
	beside := g.keys(t)
	for i := range beside {
		beside[i].optional = true
	}
	return slices.Insert(keys, len(keys)-len(g.keys(reflect.TypeFor[outcome]())), beside...)
}

// object is a JSON object whose keys keep their order.
type object []pair

type pair struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(p.key)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (g *generator) schemaFile(name string, d document) string {
	defs := map[string]object{}
	body := g.objectSchema(g.documentKeys(name, d), defs)
	full := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", schemaName(name)},
		{"description", g.aboutDocument(d)},
	}
	full = append(full, body...)
	for i, p := range full {
		if p.key != "properties" {
			continue
		}
		properties, ok := p.value.(object)
		if !ok {
			panic("properties are no object")
		}
		properties[0] = pair{"schema", object{{"const", schemaName(name)}, {"description", "Name and version of this form."}}}
		full[i].value = properties
	}
	if len(defs) > 0 {
		var sorted object
		for _, def := range slices.Sorted(maps.Keys(defs)) {
			sorted = append(sorted, pair{def, defs[def]})
		}
		full = append(full, pair{"$defs", sorted})
	}
	text, err := json.Marshal(full)
	if err != nil {
		panic(err)
	}
	return layOut(text)
}

// layOut breaks JSON into a line for each key of the two outer levels. The files are part of the
// binary, and blanks would be a third of them; `sbx help json --schema` indents them.
func layOut(text []byte) string {
	const levels = 2
	var b strings.Builder
	depth, quoted := 0, false
	for i, c := range text {
		switch {
		case c == '"' && (i == 0 || text[i-1] != '\\'):
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		b.WriteByte(c)
		if !quoted && depth <= levels && (c == ',' || c == '{') {
			b.WriteByte('\n')
		}
	}
	return b.String() + "\n"
}

func schemaName(name string) string { return "sbx." + name + "/v1" }

// aboutDocument says what prints a document and what it is about.
func (g *generator) aboutDocument(d document) string {
	if d.verb == "" {
		return g.about(d.form)
	}
	about := strings.TrimPrefix(g.about(d.form), "The document of "+d.verb)
	switch bare(d.form) {
	case "listOf":
		items, _ := d.form.FieldByName("Items")
		about = ": a list. An item is " + strings.ToLower(g.about(items.Type.Elem())[:1]) + g.about(items.Type.Elem())[1:]
	case "freeFrame":
		about = "."
	case "plannedListOf", "runFrame":
		about = ": " + strings.ToLower(about[:1]) + about[1:]
	case "itemOf":
		item, _ := d.form.FieldByName("Item")
		about = ": " + strings.ToLower(g.about(item.Type.Elem())[:1]) + g.about(item.Type.Elem())[1:]
	}
	return "What `sbx " + d.verb + " -o json` prints" + about
}

func (g *generator) objectSchema(keys []key, defs map[string]object) object {
	var properties object
	required := []string{}
	for _, k := range keys {
		one := g.typeSchema(k.field.Type, defs)
		if k.doc != "" {
			one = append(one, pair{"description", k.doc})
		}
		properties = append(properties, pair{k.name, one})
		if !k.optional {
			required = append(required, k.name)
		}
	}
	return object{{"type", "object"}, {"properties", properties}, {"required", required}}
}

func (g *generator) typeSchema(t reflect.Type, defs map[string]object) object {
	if words := g.wordsOf(t); words != nil {
		return object{{"type", "string"}, {"enum", words}}
	}
	switch t {
	case reflect.TypeFor[moment](), reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}
	case reflect.TypeFor[sandbox.Ref]():
		return object{{"type", "string"}}
	}
	if elem := orderedElem(t); elem != nil {
		return object{{"type", "object"}, {"additionalProperties", g.typeSchema(elem, defs)}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return orNull(g.typeSchema(t.Elem(), defs))
	case reflect.Struct:
		name := namedBy(t).Name()
		if defs[name] == nil {
			defs[name] = object{} // it may hold itself
			defs[name] = append(object{{"description", g.about(t)}}, g.objectSchema(g.keys(t), defs)...)
		}
		return object{{"$ref", "#/$defs/" + name}}
	case reflect.Slice:
		return object{{"type", "array"}, {"items", g.typeSchema(t.Elem(), defs)}}
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", g.typeSchema(t.Elem(), defs)}}
	case reflect.Int, reflect.Int64:
		return object{{"type", "integer"}}
	case reflect.Float64:
		return object{{"type", "number"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.String:
		return object{{"type", "string"}}
	}
	return object{} // anything
}

func (g *generator) wordsOf(t reflect.Type) []string {
	if t.Kind() != reflect.String {
		return nil
	}
	return g.words[roomed(t)]
}

// orNull allows null beside what a schema allows.
func orNull(o object) object {
	for i, p := range o {
		switch p.key {
		case "type":
			o[i].value = []any{p.value, "null"}
		case "enum":
			o[i].value = []any{p.value, nil}
			if words, ok := p.value.([]string); ok {
				o[i].value = append(anything(words), nil)
			}
		case "$ref":
			return object{{"anyOf", []any{o, object{{"type", "null"}}}}}
		}
	}
	return o
}

func anything(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

// eachKey walks over all keys of a document, those of errors apart.
func (g *generator) eachKey(name string, d document, do func(path string, k key)) {
	g.walk(g.documentKeys(name, d), "", do)
}

func (g *generator) walk(keys []key, at string, do func(path string, k key)) {
	for _, k := range keys {
		path := at + k.name
		do(path, k)
		inner, suffix := innermost(k.field.Type)
		if inner.Kind() == reflect.Struct && g.fields[roomed(inner)] != nil && inner != reflect.TypeFor[sandbox.Ref]() && k.name != "errors" && k.name != "error" {
			g.walk(g.keys(inner), path+suffix+".", do)
		}
	}
}

// orderedElem is the type of the values of an output.Ordered; nil for any other type.
func orderedElem(t reflect.Type) reflect.Type {
	if o, ordered := reflect.TypeAssert[interface{ Elem() reflect.Type }](reflect.Zero(t)); ordered && t.PkgPath() == reflect.TypeFor[output.Fields]().PkgPath() {
		return o.Elem()
	}
	return nil
}

// innermost is the type within lists, maps and pointers, and how a path writes the way to it.
func innermost(t reflect.Type) (inner reflect.Type, suffix string) {
	if elem := orderedElem(t); elem != nil {
		inner, suffix = innermost(elem)
		return inner, ".*" + suffix
	}
	step := map[reflect.Kind]string{reflect.Slice: "[]", reflect.Map: ".*", reflect.Pointer: ""}
	mark, more := step[t.Kind()]
	if !more {
		return t, ""
	}
	inner, suffix = innermost(t.Elem())
	return inner, mark + suffix
}

const pageHead = `# The JSON documents

<!-- Made by ` + "`make docs`" + ` from the types in internal/views. -->

` + "`-o json`" + ` prints one document. Its ` + "`schema`" + ` names the form; within one version
keys are only ever added. Every key is always present unless it is marked
"optional"; what is not known is ` + "`null`" + `, never 0. Times are RFC 3339 in UTC,
` + "`*_seconds`" + ` are seconds, ` + "`*_mb`" + ` are MiB. ` + "`--columns`" + ` leaves out the keys that it
does not name. ` + "`-o yaml`" + ` prints the same; ` + "`-o ndjson`" + ` prints a line for each item,
then errors as lines with ` + "`\"event\":\"error\"`" + ` and a last line with
` + "`\"event\":\"summary\"`" + `.

` + "`sbx help json NAME`" + ` shows one document, ` + "`sbx help json --schema NAME`" + ` its JSON
Schema (draft 2020-12), which is also a file of this folder.

`

func (g *generator) page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	b.WriteString("An error, in `errors[]` and `error`:\n\n")
	g.writeKeys(&b, "", document{form: reflect.TypeFor[output.Failure]()})
	for _, name := range slices.Sorted(maps.Keys(documented())) {
		d := documented()[name]
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", name, wrap(g.aboutDocument(d)+" Its `schema` is `"+schemaName(name)+"`.", ""))
		g.writeKeys(&b, name, d)
	}
	return b.String()
}

func (g *generator) writeKeys(b *strings.Builder, name string, d document) {
	g.eachKey(name, d, func(path string, k key) {
		if path == "schema" {
			return
		}
		kind := g.kindText(k.field.Type)
		if k.optional {
			kind += ", optional"
		}
		b.WriteString(wrap("- `"+path+"` ("+kind+"): "+k.doc, "  ") + "\n")
	})
}

// kindText is the type of a key in words.
func (g *generator) kindText(t reflect.Type) string {
	if words := g.wordsOf(t); words != nil {
		return strings.Join(words, ", ")
	}
	switch t {
	case reflect.TypeFor[moment](), reflect.TypeFor[time.Time]():
		return "time"
	case reflect.TypeFor[sandbox.Ref]():
		return "text"
	}
	if orderedElem(t) != nil {
		return "object"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.kindText(t.Elem()) + ", null"
	case reflect.Slice:
		return "list"
	case reflect.Map, reflect.Struct:
		return "object"
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true, false"
	case reflect.String:
		return "text"
	}
	return "anything"
}

// wrap breaks a paragraph into lines of at most 80 characters.
func wrap(text, indent string) string {
	const width = 80
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines, line = append(lines, line), indent+word
		default:
			line += " " + word
		}
	}
	return strings.Join(append(lines, line), "\n")
}

func (g *generator) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
