package documentstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// schema is the part of JSON Schema that `make docs` writes. A library of all of it spends 15 ms of each
// start of a program on its own schemas, and tests start thousands; the stage `schemas` of the gate has such a
// library judge the same documents.
type schema struct {
	Draft       string             `json:"$schema"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Format      string             `json:"format"` // an annotation
	Type        oneOrMore          `json:"type"`
	Const       any                `json:"const"`
	Enum        []any              `json:"enum"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Others      *schema            `json:"additionalProperties"`
	Items       *schema            `json:"items"`
	AnyOf       []*schema          `json:"anyOf"`
	Ref         string             `json:"$ref"`
	Defs        map[string]*schema `json:"$defs"`
}

type oneOrMore []string

// UnmarshalJSON takes a text for a list of one.
func (o *oneOrMore) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(o))
}

// parseSchema reads a schema; a keyword that check does not know is an error.
func parseSchema(text []byte) (*schema, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	s := new(schema)
	return s, decoder.Decode(s)
}

// check holds a value against the schema, strictly: a key that is not described is an error.
func (s *schema) check(at string, value any, defs map[string]*schema) error {
	if s.Ref != "" {
		named := defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
		if named == nil {
			return fmt.Errorf("%s: the schema has no %s", at, s.Ref)
		}
		return named.check(at, value, defs)
	}
	if len(s.AnyOf) > 0 {
		var err error
		if !slices.ContainsFunc(s.AnyOf, func(one *schema) bool { err = one.check(at, value, defs); return err == nil }) {
			return fmt.Errorf("%s: it is none of %d forms; the last: %w", at, len(s.AnyOf), err)
		}
	}
	if s.Type != nil && !slices.ContainsFunc(s.Type, func(kind string) bool { return isOf(kind, value) }) {
		return fmt.Errorf("%s: %v is not of type %s", at, value, strings.Join(s.Type, " or "))
	}
	if s.Const != nil && value != s.Const || s.Enum != nil && !slices.Contains(s.Enum, value) {
		return fmt.Errorf("%s: %v is not %v", at, value, append(s.Enum, s.Const))
	}
	switch value := value.(type) {
	case map[string]any:
		return s.checkObject(at, value, defs)
	case []any:
		return s.checkItems(at, value, defs)
	}
	return nil
}

func (s *schema) checkItems(at string, items []any, defs map[string]*schema) error {
	for i, item := range items {
		if s.Items == nil {
			break
		}
		if err := s.Items.check(fmt.Sprintf("%s[%d]", at, i), item, defs); err != nil {
			return err
		}
	}
	return nil
}

func (s *schema) checkObject(at string, object map[string]any, defs map[string]*schema) error {
	for _, key := range s.Required {
		if _, has := object[key]; !has {
			return fmt.Errorf("%s: %s is missing", at, key)
		}
	}
	for key, value := range object {
		of := s.Properties[key]
		if of == nil {
			of = s.Others
		}
		if of == nil {
			if s.Properties != nil {
				return fmt.Errorf("%s: %s is not described", at, key)
			}
			continue
		}
		if err := of.check(at+"."+key, value, defs); err != nil {
			return err
		}
	}
	return nil
}

func isOf(kind string, value any) bool {
	switch v := value.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array"
	}
	return kind == "object"
}
