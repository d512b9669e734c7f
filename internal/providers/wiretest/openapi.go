package wiretest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"
)

// describe reads one description, by what it is.
func describe(tb testing.TB, folder string, s Spec) description { //nolint:ireturn // one of two kinds
	tb.Helper()
	file := filepath.Join(folder, filepath.FromSlash(s.File))
	text, err := os.ReadFile(file)
	require.NoError(tb, err)
	if s.Schemas != "" {
		return readDerived(tb, folder, s, text)
	}
	doc := readOpenAPI(tb, file, text)
	doc.Servers = nil
	seal(doc)
	return &openAPI{doc, s.Server}
}

func readOpenAPI(tb testing.TB, file string, text []byte) *openapi3.T {
	tb.Helper()
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

// openAPI is a description in OpenAPI 3, or converted to it.
type openAPI struct {
	doc    *openapi3.T
	prefix string
}

func (d *openAPI) find(method, path string) operation { //nolint:ireturn // one of two kinds
	var best *openAPIOperation
	most := -1
	for template, item := range d.doc.Paths.Map() {
		params, literal, ok := matched(d.prefix+template, path)
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

func (o *openAPIOperation) name() string { return o.route.Method + " " + o.route.Path }

func (o *openAPIOperation) path() string { return o.d.prefix + o.route.Path }

func (o *openAPIOperation) input(req *http.Request) *openapi3filter.RequestValidationInput {
	return &openapi3filter.RequestValidationInput{
		Request: req, PathParams: o.params, Route: o.route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true, MultiError: true},
	}
}

func (o *openAPIOperation) request(req *http.Request, body []byte) []string {
	var known []string
	for _, list := range []openapi3.Parameters{o.route.PathItem.Parameters, o.route.Operation.Parameters} {
		for _, p := range list {
			if p.Value.In == openapi3.ParameterInQuery {
				known = append(known, p.Value.Name)
			}
		}
	}
	wrong := names(req, known)
	sent := req.Clone(req.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	if err := openapi3filter.ValidateRequest(req.Context(), o.input(sent)); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

func (o *openAPIOperation) answer(req *http.Request, status int, header http.Header, body []byte) []string {
	if known := o.route.Operation.Responses; known.Status(status) == nil && known.Default() == nil {
		switch {
		case !undeclared(status):
			return []string{"the status is not declared"}
		case ahead(status):
			return nil
		}
		return o.failure(header, body)
	}
	err := openapi3filter.ValidateResponse(req.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: o.input(req), Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{MultiError: true},
	})
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}

// failure holds an undeclared error answer against the description's own schema
// of errors, where it has one.
func (o *openAPIOperation) failure(header http.Header, body []byte) []string {
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
