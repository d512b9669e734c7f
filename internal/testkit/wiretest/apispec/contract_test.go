package apispec_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
	"sbx/internal/testkit/wiretest/apispec"
)

// described is a small description: one list, one create, one delete.
const described = `
openapi: 3.0.3
info: {title: boxes, version: "1"}
paths:
  /boxes:
    get:
      parameters:
        - {name: limit, in: query, schema: {type: integer}}
      responses:
        "200":
          description: ok
          content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Box'}}}}
    post:
      requestBody:
        content: {application/json: {schema: {$ref: '#/components/schemas/NewBox'}}}
      responses:
        "201":
          description: made
          content: {application/json: {schema: {$ref: '#/components/schemas/Box'}}}
  /boxes/{id}:
    delete:
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
      responses: {"204": {description: gone}}
components:
  schemas:
    Box:
      required: [id]
      properties: {id: {type: string}, size: {type: integer}}
    NewBox:
      required: [name]
      properties: {name: {type: string}, size: {type: integer}}
    Error:
      required: [message]
      properties: {message: {type: string}}
`

// derivedList and derivedSchemas are the same list, as operations beside schemas.
const (
	derivedList    = `{"endpoints":[{"operation":"list","method":"GET","path":"/boxes","query":["limit"],"success":[200],"errors":[400]}]}`
	derivedSchemas = `{"Boxes":{"type":"array","items":{"type":"object","required":["id"]}}}`
)

// folder has the files of a contract.
func folder(t *testing.T, exemptions string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"api.yml": described, "list.json": derivedList, "schemas.json": derivedSchemas, "exemptions.txt": exemptions} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// exchange is one request with its answer.
type exchange struct {
	r      httpx.Request
	status int
	answer string
}

// contracted makes an exchange under a contract and returns the failures.
func contracted(t *testing.T, exemptions string, x exchange, specs ...apispec.Spec) []string {
	t.Helper()
	dir := folder(t, exemptions)
	v := providertest.Record(t.Context(), func(r providertest.T) {
		tb := &verdict{TB: t, r: r}
		c := apispec.LoadFrom(tb, dir, filepath.Join(dir, "exemptions.txt"), specs...)
		s := wiretest.New(r, wiretest.Options{Contract: c})
		serve := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(x.status)
			_, _ = w.Write([]byte(x.answer))
		}
		s.Handle(
			wiretest.Route{Method: "GET", Path: "/boxes", Query: []string{"limit", "colour"}, Serve: serve},
			wiretest.Route{Method: "POST", Path: "/boxes", Raw: true, Serve: serve},
			wiretest.Route{Method: "DELETE", Path: "/boxes/{id}", Serve: serve},
			wiretest.Route{Method: "GET", Path: "/stats", Serve: serve},
		)
		client, err := httpx.New(httpx.Net{Dial: s.Dial}, httpx.Options{Base: "http://boxes", Tries: 1})
		require.NoError(r, err)
		r.Cleanup(client.Close)
		_, _ = client.Do(r.Context(), x.r) // what is said of it counts
	})
	return v.Messages
}

// verdict is a testing.TB whose failures and end are those of a recorded check.
type verdict struct {
	testing.TB

	r providertest.T
}

func (v *verdict) Helper()                           {}
func (v *verdict) Logf(string, ...any)               {}
func (v *verdict) Errorf(format string, args ...any) { v.r.Errorf(format, args...) }
func (v *verdict) FailNow()                          { v.r.FailNow() }
func (v *verdict) Cleanup(f func())                  { v.r.Cleanup(f) }

func openAPI() apispec.Spec { return apispec.Spec{File: "api.yml"} }

func derived(schema string) apispec.Spec {
	return apispec.Spec{File: "list.json", Schemas: "schemas.json", Answers: map[string]string{"list": schema}}
}

func list() httpx.Request { return httpx.Request{Path: "/boxes"} }

func create(body any) httpx.Request {
	return httpx.Request{Method: http.MethodPost, Path: "/boxes", JSON: body}
}

func TestAContractIsKept(t *testing.T) {
	t.Parallel()
	const stats = "# a comment\nGET /stats nobody describes it\n"
	for name, x := range map[string]exchange{
		"a list":                {r: list(), status: 200, answer: `[{"id":"a","size":1}]`},
		"a known parameter":     {r: httpx.Request{Path: "/boxes", Query: map[string][]string{"limit": {"1"}}}, status: 200, answer: `[]`},
		"a create":              {r: create(map[string]any{"name": "a", "size": 1}), status: 201, answer: `{"id":"a"}`},
		"an undeclared failure": {r: list(), status: 500, answer: `{"message":"planted"}`},
		"a gateway's failure":   {r: list(), status: 502, answer: `{"sandboxId":"a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Empty(t, contracted(t, "", x, openAPI()))
		})
	}
	t.Run("an exemption", func(t *testing.T) {
		t.Parallel()
		said := contracted(t, stats, exchange{r: httpx.Request{Path: "/stats"}, status: 200, answer: `7`}, openAPI())
		assert.Equal(t, []string{"no exchange was held against a description"}, said)
	})
	t.Run("a derived description", func(t *testing.T) {
		t.Parallel()
		assert.Empty(t, contracted(t, "", exchange{r: list(), status: 200, answer: `[{"id":"a"}]`}, derived("Boxes")))
		assert.Empty(t, contracted(t, "", exchange{r: list(), status: 200, answer: `{}`}, derived("")), "no schema of it is published")
	})
}

func TestABrokenContractFailsTheTest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		x    exchange
		said string
	}{
		"an unknown field":             {exchange{r: create(map[string]any{"name": "a", "colour": "x"}), status: 201, answer: `{"id":"a"}`}, `property "colour" is unsupported`},
		"a wrong type":                 {exchange{r: create(map[string]any{"name": 7}), status: 201, answer: `{"id":"a"}`}, "must be a string"},
		"a missing field":              {exchange{r: create(map[string]any{"size": 1}), status: 201, answer: `{"id":"a"}`}, `property "name" is missing`},
		"an unknown parameter":         {exchange{r: httpx.Request{Path: "/boxes", Query: map[string][]string{"colour": {"x"}}}, status: 200, answer: `[]`}, "no parameter is called colour"},
		"a parameter of a wrong type":  {exchange{r: httpx.Request{Path: "/boxes", Query: map[string][]string{"limit": {"x"}}}, status: 200, answer: `[]`}, "limit"},
		"an unknown field that comes":  {exchange{r: list(), status: 200, answer: `[{"id":"a","colour":"x"}]`}, `property "colour" is unsupported`},
		"a wrong type that comes":      {exchange{r: list(), status: 200, answer: `[{"id":7}]`}, "must be a string"},
		"a missing field that comes":   {exchange{r: list(), status: 200, answer: `[{}]`}, `property "id" is missing`},
		"a status that is none of its": {exchange{r: list(), status: 206, answer: `[]`}, "the status is not declared"},
		"a failure of another shape":   {exchange{r: list(), status: 500, answer: `{"colour":"x"}`}, "is unsupported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, strings.Join(contracted(t, "", tc.x, openAPI()), "\n"), tc.said)
		})
	}
}

// A route may return when its client disconnects; otherwise no answer is an empty answer.
func TestARouteThatSaysNothing(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]bool{"the client left": true, "the client waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, "")
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			v := providertest.Record(t.Context(), func(r providertest.T) {
				c := apispec.LoadFrom(&verdict{TB: t, r: r}, dir, filepath.Join(dir, "exemptions.txt"), openAPI())
				s := wiretest.New(r, wiretest.Options{Contract: c})
				s.Handle(wiretest.Route{Method: "GET", Path: "/boxes", Serve: func(http.ResponseWriter, *http.Request) {
					if left {
						leave()
					}
				}})
				s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://boxes/boxes", nil))
			})
			assert.Equal(t, left, len(v.Messages) == 0, "%q", v.Messages)
		})
	}
}

func TestAnUnlistedOperationFailsTheTest(t *testing.T) {
	t.Parallel()
	said := strings.Join(contracted(t, "", exchange{r: httpx.Request{Path: "/stats"}, status: 200, answer: `7`}, openAPI()), "\n")
	assert.Contains(t, said, "GET /stats is in no description and in no exemption")
	said = strings.Join(contracted(t, "", exchange{r: httpx.Request{Method: http.MethodDelete, Path: "/boxes/a"}, status: 204}, derived("Boxes")), "\n")
	assert.Contains(t, said, "DELETE /boxes/{id} is in no description and in no exemption")
}

func TestExemptionsThatAreNoneFailTheTest(t *testing.T) {
	t.Parallel()
	well := exchange{r: list(), status: 200, answer: `[]`}
	for exemptions, said := range map[string]string{
		"GET /stats nobody describes it\n":    `the exemption "GET /stats" is not needed`,
		"DELETE /boxes/{id} nobody does so\n": "DELETE /boxes/{id} is described as DELETE /boxes/{id}, so it needs no exemption (nobody does so)",
	} {
		assert.Contains(t, strings.Join(contracted(t, exemptions, well, openAPI()), "\n"), said)
	}
}

func TestADerivedContractFailsTheTest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		x    exchange
		spec apispec.Spec
		said string
	}{
		"an unknown parameter": {exchange{r: httpx.Request{Path: "/boxes", Query: map[string][]string{"colour": {"x"}}}, status: 200, answer: `[]`}, derived("Boxes"), "no parameter is called colour"},
		"a wrong answer":       {exchange{r: list(), status: 200, answer: `[{}]`}, derived("Boxes"), "id"},
		"no JSON":              {exchange{r: list(), status: 200, answer: `[`}, derived("Boxes"), "unexpected EOF"},
		"a status":             {exchange{r: list(), status: 206, answer: `[]`}, derived("Boxes"), "the status is not declared"},
		"an unnamed schema":    {exchange{r: list(), status: 200, answer: `[]`}, apispec.Spec{File: "list.json", Schemas: "schemas.json"}, "no schema is named for the answer of list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, strings.Join(contracted(t, "", tc.x, tc.spec), "\n"), tc.said)
		})
	}
}

func TestAContractWithoutAnExchangeFailsTheTest(t *testing.T) {
	t.Parallel()
	dir := folder(t, "")
	v := providertest.Record(t.Context(), func(r providertest.T) {
		apispec.LoadFrom(&verdict{TB: t, r: r}, dir, filepath.Join(dir, "exemptions.txt"), openAPI())
	})
	assert.Equal(t, []string{"no exchange was held against a description"}, v.Messages)
}
