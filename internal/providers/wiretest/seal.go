package wiretest

import "github.com/getkin/kin-openapi/openapi3"

// seal makes unknown fields of objects a mistake, in every schema of a
// description, named or not. The parts of a composition know only their own
// fields and stay open.
func seal(doc *openapi3.T) {
	s := sealer{seen: map[*openapi3.Schema]bool{}, parts: map[*openapi3.Schema]bool{}}
	if doc.Components != nil {
		for _, ref := range doc.Components.Schemas {
			s.visit(ref)
		}
	}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody != nil && op.RequestBody.Value != nil {
				s.contents(op.RequestBody.Value.Content)
			}
			for _, answer := range op.Responses.Map() {
				s.contents(answer.Value.Content)
			}
		}
	}
	for schema := range s.seen {
		if !s.parts[schema] && len(schema.Properties) > 0 && !composed(schema) && !additional(schema) {
			no := false
			schema.AdditionalProperties.Has = &no
		}
	}
}

// sealer walks through schemas, which may refer to themselves.
type sealer struct {
	seen  map[*openapi3.Schema]bool
	parts map[*openapi3.Schema]bool // of a composition
}

func (s sealer) contents(content openapi3.Content) {
	for _, media := range content {
		s.visit(media.Schema)
	}
}

func (s sealer) visit(ref *openapi3.SchemaRef) {
	if ref == nil || ref.Value == nil || s.seen[ref.Value] {
		return
	}
	v := ref.Value
	s.seen[v] = true
	for _, property := range v.Properties {
		s.visit(property)
	}
	s.visit(v.Items)
	s.visit(v.Not)
	s.visit(v.AdditionalProperties.Schema)
	for _, part := range members(v) {
		s.visit(part)
		// Of one alternative, all fields are known; of several parts, or beside
		// fields of the whole, only its own.
		if len(v.AllOf) > 1 || len(v.Properties) > 0 || s.parts[v] {
			s.open(part.Value)
		}
	}
}

// open marks a part of a composition, and the parts of that.
func (s sealer) open(v *openapi3.Schema) {
	if v == nil || s.parts[v] {
		return
	}
	s.parts[v] = true
	for _, part := range members(v) {
		s.open(part.Value)
	}
}

func members(v *openapi3.Schema) openapi3.SchemaRefs {
	var all openapi3.SchemaRefs
	all = append(all, v.AllOf...)
	all = append(all, v.OneOf...)
	return append(all, v.AnyOf...)
}

func composed(v *openapi3.Schema) bool { return len(members(v)) > 0 }

func additional(v *openapi3.Schema) bool {
	return v.AdditionalProperties.Has != nil || v.AdditionalProperties.Schema != nil
}
