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
	schema, err := readSchema(name)
	if errors.Is(err, fs.ErrNotExist) { // that every verb is described is a test of the command tree
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := schema.check("", document, schema.Defs); err != nil {
		return fmt.Errorf("the document is not as its type in internal/views describes it (then `make docs`): %w", err)
	}
	return nil
}

func isColumns(arg string) bool { return arg == "--columns" || strings.HasPrefix(arg, "--columns=") }

// schemas are those that were read, by their names.
var schemas sync.Map //nolint:gochecknoglobals // a cache of tests

// readSchema reads a schema of docs/schemas; fs.ErrNotExist where there is none.
func readSchema(name string) (*schema, error) {
	if s, found := schemas.Load(name); found {
		return s.(*schema), nil //nolint:forcetypeassert,errcheck // it holds nothing else
	}
	text, err := docs.Files.ReadFile("schemas/" + strings.ReplaceAll(name, "/", ".") + ".json")
	if err != nil {
		return nil, err
	}
	s, err := parseSchema(text)
	if err == nil {
		schemas.Store(name, s)
	}
	return s, err
}
