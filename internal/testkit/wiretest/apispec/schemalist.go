package apispec

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/wiretest"
)

// schemaList is a list of operations with JSON Schemas of their answers.
type schemaList struct {
	operations []*schemaOperation
	host       string
}

func (d *schemaList) HostName() string { return d.host }

type schemaOperation struct {
	Operation string   `json:"operation"`
	Method    string   `json:"method"`
	Path      string   `json:"path"`
	Query     []string `json:"query"`
	Success   []int    `json:"success"`
	Errors    []int    `json:"errors"`

	template string
	named    bool // it is in Spec.Answers
	schema   *jsonschema.Schema
}

func readSchemaList(tb testing.TB, folder string, s Spec, text []byte) *schemaList {
	tb.Helper()
	var list struct {
		Endpoints []*schemaOperation `json:"endpoints"`
	}
	require.NoError(tb, json.Unmarshal(text, &list))
	schemas, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(s.Schemas)))
	require.NoError(tb, err)
	var byName map[string]any
	require.NoError(tb, json.Unmarshal(schemas, &byName))
	compiler := jsonschema.NewCompiler()
	for name, schema := range byName {
		require.NoError(tb, compiler.AddResource(name+".json", schema))
	}
	found := 0
	for _, op := range list.Endpoints {
		op.template = s.Server + op.Path
		name, named := s.Answers[op.Operation]
		if op.named = named; named {
			found++
		}
		if name != "" {
			op.schema, err = compiler.Compile(name + ".json")
			require.NoError(tb, err)
		}
	}
	require.Len(tb, s.Answers, found, "%s has no operation of a name in Spec.Answers", s.File)
	return &schemaList{list.Endpoints, s.Host}
}

func (d *schemaList) FindOperation(method, path string) wiretest.Operation { //nolint:ireturn // one of two kinds
	var best *schemaOperation
	most := -1
	for _, op := range d.operations {
		if _, literal, ok := wiretest.MatchPath(op.template, path); ok && op.Method == method && literal > most {
			most, best = literal, op
		}
	}
	if best == nil {
		return nil
	}
	return best
}

func (o *schemaOperation) Name() string { return o.Method + " " + o.Path }

func (o *schemaOperation) PathTemplate() string { return o.template }

func (o *schemaOperation) CheckRequest(req *http.Request, _ []byte) []string {
	return unknownQueryNames(req, o.Query)
}

func (o *schemaOperation) CheckAnswer(_ *http.Request, status int, _ http.Header, body []byte) []string {
	switch {
	case slices.Contains(o.Errors, status):
		return nil
	case !slices.Contains(o.Success, status):
		if isPlausibleStatus(status) {
			return nil
		}
		return []string{"the status is not declared"}
	case !o.named:
		return []string{"no schema is named for the answer of " + o.Operation}
	case o.schema == nil:
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return []string{err.Error()}
	}
	if err := o.schema.Validate(value); err != nil {
		return []string{strings.Join(strings.Fields(err.Error()), " ")}
	}
	return nil
}
