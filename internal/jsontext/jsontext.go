// Package jsontext says in plain words why a text is not the JSON that was expected: Go's own errors
// name Go types. What a document means stays where it is known.
package jsontext

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Unmarshal is encoding/json's, with its errors, for texts of which there are many: it reads the text
// once, where encoding/json checks the whole text before it decodes it.
func Unmarshal(text []byte, out any) error {
	if jsonv2.Unmarshal(text, out, jsonv1.DefaultOptionsV1()) == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// Describe says why a text is not the JSON that was expected, without names of Go types.
func Describe(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return strings.TrimSpace(fmt.Sprintf("%s must not be of type %s", wrong.Field, wrong.Value))
	}
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		if bad.Error() == "unexpected end of JSON input" {
			return "it ends too early"
		}
		return fmt.Sprintf("invalid JSON at byte %d", bad.Offset)
	}
	if at, ok := errors.AsType[*time.ParseError](err); ok {
		return strings.Trim(at.Value, `"`) + " is not a time"
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "it ends too early"
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	return strings.Replace(text, "unknown field", "unknown key", 1)
}
