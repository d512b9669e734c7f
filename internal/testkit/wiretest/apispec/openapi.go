package apispec

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"sbx/internal/testkit/wiretest"
)

// isPlausibleStatus says that real APIs answer with this status although their descriptions do
// not have it; the body of such an answer is compared with the error schema.
func isPlausibleStatus(status int) bool {
	return isGatewayStatus(status) || slices.Contains([]int{400, 401, 403, 404, 405, 409, 410, 422, 429, 500, 501, 503}, status)
}

// isGatewayStatus says that the answer is that of a gateway, which the API's description does
// not cover.
func isGatewayStatus(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusGatewayTimeout
}

// unknownQueryNames reports each name in the query that the operation does not have.
func unknownQueryNames(req *http.Request, known []string) []string {
	var wrong []string
	for name := range req.URL.Query() {
		if !slices.Contains(known, name) {
			wrong = append(wrong, "no parameter is called "+name)
		}
	}
	return wrong
}

func describe(tb testing.TB, folder string, s Spec) wiretest.Description { //nolint:ireturn // one of two kinds
	tb.Helper()
	openapi3filter.RegisterBodyDecoder(jsonLines, firstLine)
	file := filepath.Join(folder, filepath.FromSlash(s.File))
	text, err := os.ReadFile(file)
	require.NoError(tb, err)
	if s.Schemas != "" {
		return readSchemaList(tb, folder, s, text)
	}
	doc := readOpenAPI(tb, file, text)
	doc.Servers = nil
	sealSchemas(doc)
	return &openAPI{doc, s.Server, s.Host}
}

func readOpenAPI(tb testing.TB, file string, text []byte) *openapi3.T {
	tb.Helper()
	if filepath.Ext(file) == ".yaml" && bytes.Contains(text[:min(len(text), 4000)], []byte("\nswagger:")) {
		text = toJSON(tb, text)
	}
	if bytes.Contains(text[:min(len(text), 400)], []byte(`"swagger"`)) {
		var old openapi2.T
		require.NoError(tb, json.Unmarshal(text, &old))
		doc, err := openapi2conv.ToV3(&old)
		require.NoError(tb, err)
		return doc
	}
	doc, err := openapi3.NewLoader().LoadFromFile(file)
	require.NoError(tb, err)
	return doc
}

// toJSON writes YAML as JSON, with the version of Swagger first. Keys may be numbers there: statuses.
func toJSON(tb testing.TB, text []byte) []byte {
	tb.Helper()
	var root yaml.Node
	require.NoError(tb, yaml.Unmarshal(text, &root))
	whole, ok := plain(tb, root.Content[0]).(map[string]any)
	require.True(tb, ok)
	rest, err := json.Marshal(whole)
	require.NoError(tb, err)
	return append([]byte(`{"swagger":"2.0",`), rest[1:]...)
}

func plain(tb testing.TB, n *yaml.Node) any {
	tb.Helper()
	switch n.Kind {
	case yaml.AliasNode:
		return plain(tb, n.Alias)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			list = append(list, plain(tb, item))
		}
		return list
	case yaml.MappingNode:
		object := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			object[n.Content[i].Value] = plain(tb, n.Content[i+1])
		}
		return object
	default:
		var value any
		require.NoError(tb, n.Decode(&value))
		if at, isTime := value.(time.Time); isTime {
			return at.Format(time.RFC3339Nano)
		}
		return value
	}
}

// openAPI is a description in OpenAPI 3, or converted to it.
type openAPI struct {
	doc          *openapi3.T
	prefix, host string
}

func (d *openAPI) HostName() string { return d.host }

func (d *openAPI) FindOperation(method, path string) wiretest.Operation { //nolint:ireturn // one of two kinds
	var best *openAPIOperation
	most := -1
	for template, item := range d.doc.Paths.Map() {
		params, literal, ok := wiretest.MatchPath(d.prefix+template, path)
		op := item.GetOperation(method)
		if ok && op != nil && literal > most {
			most = literal
			best = &openAPIOperation{d, &routers.Route{Spec: d.doc, Path: template, PathItem: item, Method: method, Operation: op}, params}
		}
	}
	if best == nil {
		return nil
	}
	return best
}

type openAPIOperation struct {
	d      *openAPI
	route  *routers.Route
	params map[string]string
}

func (o *openAPIOperation) Name() string { return o.route.Method + " " + o.route.Path }

func (o *openAPIOperation) PathTemplate() string { return o.d.prefix + o.route.Path }

func (o *openAPIOperation) validationInput(req *http.Request) *openapi3filter.RequestValidationInput {
	return &openapi3filter.RequestValidationInput{
		Request: req, PathParams: o.params, Route: o.route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true, MultiError: true},
	}
}

func (o *openAPIOperation) CheckRequest(req *http.Request, body []byte) []string {
	var known []string
	for _, list := range []openapi3.Parameters{o.route.PathItem.Parameters, o.route.Operation.Parameters} {
		for _, p := range list {
			if p.Value.In == openapi3.ParameterInQuery {
				known = append(known, p.Value.Name)
			}
		}
	}
	wrong := unknownQueryNames(req, known)
	sent := req.Clone(req.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	if err := openapi3filter.ValidateRequest(req.Context(), o.validationInput(sent)); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

func (o *openAPIOperation) CheckAnswer(req *http.Request, status int, header http.Header, body []byte) []string {
	if known := o.route.Operation.Responses; known.Status(status) == nil && known.Default() == nil {
		switch {
		case !isPlausibleStatus(status):
			return []string{"the status is not declared"}
		case isGatewayStatus(status):
			return nil
		}
		return o.checkErrorSchema(header, body)
	}
	if header.Get("Content-Type") == jsonLines && len(body) == 0 {
		return nil
	}
	err := openapi3filter.ValidateResponse(req.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: o.validationInput(req), Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{MultiError: true},
	})
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

// jsonLines is a stream of JSON values, of which the first is compared with the schema.
const jsonLines = "application/jsonl"

func firstLine(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
	var first any
	dec := json.NewDecoder(body)
	dec.UseNumber()
	err := dec.Decode(&first)
	return first, err
}

// checkErrorSchema compares an undeclared error answer with the description's schema of errors,
// where it has one.
func (o *openAPIOperation) checkErrorSchema(header http.Header, body []byte) []string {
	if o.d.doc.Components == nil || !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
		return nil
	}
	for _, name := range []string{"Error", "ErrorResponse"} {
		schema := o.d.doc.Components.Schemas[name]
		if schema == nil {
			continue
		}
		var value any
		if err := json.Unmarshal(body, &value); err != nil {
			return []string{err.Error()}
		}
		if err := schema.Value.VisitJSON(value); err != nil {
			return []string{err.Error()}
		}
	}
	return nil
}

// sealSchemas forbids unknown fields of objects in every schema of a description. The parts of a
// composition list only their own fields and stay open.
func sealSchemas(doc *openapi3.T) {
	s := schemaSealer{seen: map[*openapi3.Schema]bool{}, parts: map[*openapi3.Schema]bool{}}
	if doc.Components != nil {
		for _, ref := range doc.Components.Schemas {
			s.visitSchema(ref)
		}
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody != nil && op.RequestBody.Value != nil {
				s.visitContents(op.RequestBody.Value.Content)
			}
			for _, answer := range op.Responses.Map() {
				s.visitContents(answer.Value.Content)
			}
		}
	}
	for schema := range s.seen {
		if !s.parts[schema] && len(schema.Properties) > 0 && len(compositionParts(schema)) == 0 && schema.AdditionalProperties.Has == nil && schema.AdditionalProperties.Schema == nil {
			no := false
			schema.AdditionalProperties.Has = &no
		}
	}
}

// schemaSealer visits schemas, which may refer to themselves.
type schemaSealer struct {
	seen  map[*openapi3.Schema]bool
	parts map[*openapi3.Schema]bool // of a composition
}

func (s schemaSealer) visitContents(content openapi3.Content) {
	for _, media := range content {
		s.visitSchema(media.Schema)
	}
}

func (s schemaSealer) visitSchema(ref *openapi3.SchemaRef) {
	if ref == nil || ref.Value == nil || s.seen[ref.Value] {
		return
	}
	v := ref.Value
	s.seen[v] = true
	for _, property := range v.Properties {
		s.visitSchema(property)
	}
	s.visitSchema(v.Items)
	s.visitSchema(v.Not)
	s.visitSchema(v.AdditionalProperties.Schema)
	for _, part := range compositionParts(v) {
		s.visitSchema(part)
		// A single alternative lists all fields; one of several parts, or one beside fields
		// of the whole, lists only its own.
		if len(v.AllOf) > 1 || len(v.Properties) > 0 || s.parts[v] {
			s.markOpen(part.Value)
		}
	}
}

func (s schemaSealer) markOpen(v *openapi3.Schema) {
	if v == nil || s.parts[v] {
		return
	}
	s.parts[v] = true
	for _, part := range compositionParts(v) {
		s.markOpen(part.Value)
	}
}

func compositionParts(v *openapi3.Schema) openapi3.SchemaRefs {
	var all openapi3.SchemaRefs
	all = append(all, v.AllOf...)
	all = append(all, v.OneOf...)
	return append(all, v.AnyOf...)
}
