package wiretest

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
)

// derived is a list of operations beside JSON Schemas of their answers.
type derived struct {
	prefix     string
	operations []*derivedOperation
}

type derivedOperation struct {
	Operation string   `json:"operation"`
	Method    string   `json:"method"`
	Path      string   `json:"path"`
	Query     []string `json:"query"`
	Success   []int    `json:"success"`
	Errors    []int    `json:"errors"`
	schema    *jsonschema.Schema
}

func readDerived(tb testing.TB, folder string, s Spec, text []byte) *derived {
	tb.Helper()
	var list struct {
		Endpoints []*derivedOperation `json:"endpoints"`
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
	d := &derived{prefix: s.Server, operations: list.Endpoints}
	for _, op := range d.operations {
		if name := s.Answers[op.Operation]; name != "" {
			op.schema, err = compiler.Compile(name + ".json")
			require.NoError(tb, err)
		}
	}
	return d
}

func (d *derived) find(method, path string) operation { //nolint:ireturn // one of two kinds
	path, ok := below(d.prefix, path)
	if !ok {
		return nil
	}
	var best *derivedOperation
	most := -1
	for _, op := range d.operations {
		if _, literal, ok := matched(op.Path, path); ok && op.Method == method && literal > most {
			most, best = literal, op
		}
	}
	if best == nil {
		return nil
	}
	return best
}

func (o *derivedOperation) name() string { return o.Method + " " + o.Path }

func (o *derivedOperation) request(req *http.Request, _ []byte) []string { return names(req, o.Query) }

func (o *derivedOperation) answer(_ *http.Request, status int, _ http.Header, body []byte) []string {
	switch {
	case slices.Contains(o.Errors, status):
		return nil
	case !slices.Contains(o.Success, status):
		if undeclared(status) {
			return nil
		}
		return []string{"the status is not declared"}
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
