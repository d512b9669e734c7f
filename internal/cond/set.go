package cond

import (
	"errors"
	"slices"
	"strings"
)

// Definition is a condition with a name, which other conditions of its set may use.
type Definition struct{ Name, Text string }

// CompileSet compiles conditions that may use each other by name. A name of the schema cannot
// be defined again, and conditions that use each other in a circle are a mistake. All mistakes
// are joined.
func CompileSet[T any](definitions []Definition, s Schema[T]) (map[string]*Condition[T], error) {
	all := &set[T]{schema: s, texts: map[string]string{}, done: map[string]*Condition[T]{}, failed: map[string]error{}}
	var errs []error
	for _, d := range definitions {
		at := source{name: d.Name, text: d.Text}
		_, twice := all.texts[d.Name]
		switch {
		case !plainWord(d.Name) || reserved(d.Name):
			errs = append(errs, at.mistake(place{0, 1}, "write letters, digits and _", "%q is not a name", d.Name))
		case s.find(d.Name) != nil:
			errs = append(errs, at.mistake(place{0, 1}, "", "%s is a value already", d.Name))
		case twice:
			errs = append(errs, at.mistake(place{0, 1}, "", "%s is defined twice", d.Name))
		default:
			all.texts[d.Name] = d.Text
			all.order = append(all.order, d.Name)
		}
	}
	for _, name := range all.order {
		if _, err := all.condition(name, nil); err != nil && !slices.Contains(errs, err) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return all.done, nil
}

// reserved are the words of the grammar.
func reserved(word string) bool {
	return slices.Contains([]string{"and", "or", "not", "in", "contains", "startsWith", "endsWith", "matches", "true", "false", "nil", "len", "let", "if", "else"}, word)
}

// set is a set of conditions during its compilation. A nil set is empty.
type set[T any] struct {
	schema Schema[T]
	order  []string
	texts  map[string]string
	done   map[string]*Condition[T]
	failed map[string]error
	stack  []string // the conditions under way, the outermost first
}

func (s *set[T]) has(name string) bool {
	if s == nil {
		return false
	}
	_, has := s.texts[name]
	return has
}

func (s *set[T]) names() []string {
	if s == nil {
		return nil
	}
	return s.order
}

// current is the condition that is compiled now.
func (s *set[T]) current() string { return s.stack[len(s.stack)-1] }

// condition compiles a condition once. The error of a circle is placed by its user.
func (s *set[T]) condition(name string, place func(cycle string) error) (*Condition[T], error) {
	if done, has := s.done[name]; has {
		return done, nil
	}
	if err, has := s.failed[name]; has {
		return nil, err
	}
	if i := slices.Index(s.stack, name); i >= 0 {
		return nil, place(strings.Join(append(slices.Clone(s.stack[i:]), name), " -> "))
	}
	s.stack = append(s.stack, name)
	compiled, err := compile(s.texts[name], s.schema, s)
	s.stack = s.stack[:len(s.stack)-1]
	if err != nil {
		s.failed[name] = err
		return nil, err
	}
	s.done[name] = compiled
	return compiled, nil
}
