// Package documentstest holds the documents that tests produce against the JSON Schemas that
// sbx ships. It serves tests alone.
package documentstest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sbx/docs"
)

// Check validates what a verb has printed, if it is one document of sbx: a text that is none
// is nil. A schema lets keys be added later; here a key that it does not describe is an
// error. With --columns keys are missing on purpose, so that is not looked at.
func Check(stdout []byte, args []string) error {
	text := bytes.TrimSpace(stdout)
	var document map[string]any
	if bytes.HasPrefix(text, []byte("{")) && !slices.ContainsFunc(args, isColumns) && json.Valid(text) {
		_ = json.Unmarshal(text, &document) // it is valid, and an object
	}
	name, ok := document["schema"].(string)
	if !ok {
		return nil
	}
	schema, err := compiled()(name)
	if errors.Is(err, fs.ErrNotExist) { // that every verb is described is a test of the command tree
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := schema.Validate(any(document)); err != nil {
		return fmt.Errorf("the document is not as its type in internal/views describes it (then `make docs`): %w", err)
	}
	return nil
}

func isColumns(arg string) bool { return arg == "--columns" || strings.HasPrefix(arg, "--columns=") }

// compiled gives the strict schema of a name, each compiled once.
var compiled = sync.OnceValue(func() func(name string) (*jsonschema.Schema, error) { //nolint:gochecknoglobals // a cache of tests
	var mu sync.Mutex
	done := map[string]*jsonschema.Schema{}
	return func(name string) (*jsonschema.Schema, error) {
		mu.Lock()
		defer mu.Unlock()
		if done[name] != nil {
			return done[name], nil
		}
		s, err := compileStrict(name)
		if err == nil {
			done[name] = s
		}
		return s, err
	}
})

func compileStrict(name string) (*jsonschema.Schema, error) {
	file := strings.ReplaceAll(name, "/", ".") + ".json"
	text, err := docs.Files.ReadFile("schemas/" + file)
	if err != nil {
		return nil, err
	}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(file, closed(schema)); err != nil {
		return nil, err
	}
	return c.Compile(file)
}

// closed forbids keys that an object does not describe.
func closed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = closed(value)
		}
		if _, has := v["properties"].(map[string]any); has && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
	case []any:
		for i := range v {
			v[i] = closed(v[i])
		}
	}
	return v
}
