package incident

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sbx/internal/sandbox"
)

// place says what a string of a document is.
type place int

const (
	placeFixed place = iota // a word of a closed list, a name in the configuration, a time, a path: never replaced
	placeText
	placeID  // of a sandbox or task
	placeRef // of a sandbox: profile/id
)

// eventPlace is what the string at a path of an event is. A path has the keys down to it, with dots.
func eventPlace(path string) place {
	switch path {
	case "acts.ref":
		return placeRef
	case "text", "line", "errors", "actor.who", "actor.host", "start.title", "start.detected_by",
		"acts.name", "acts.reason", "causes.title", "causes.why_not",
		"step.title", "step.answer", "step.text", "message.error":
		return placeText
	}
	list, key, _ := strings.Cut(path, ".")
	if list == "flags" || list == "checks" || list == "causes" {
		switch key {
		case "title", "value", "target", "evidence.what", "evidence.value":
			return placeText
		}
	}
	return placeFixed
}

// snapshotPlace is what the string at a path of a recorded look is.
func snapshotPlace(path string) place {
	switch path {
	case "concluded.stuck.ref", "concluded.suspected.ref", "concluded.unjudged", "concluded.plan":
		return placeRef
	case "providers.sandboxes.id", "providers.sandboxes.task_id":
		return placeID
	case "about", "providers.failed.message", "providers.list_failed.message", "providers.quota_failed.message",
		"providers.sandboxes.name", "providers.sandboxes.template", "providers.sandboxes.protected",
		"providers.sandboxes.exit.raw", "providers.sandboxes.look.finished_by.what", "providers.sandboxes.look.finished_by.value",
		"providers.sandboxes.look.source_failed.message", "providers.sandboxes.look.look_failed.message":
		return placeText
	}
	return placeFixed
}

// otherPlace is what a string of a document is of which nothing is known.
func otherPlace(path string) place {
	if path == "schema" {
		return placeFixed
	}
	return placeText
}

// rewriter takes secrets out of documents.
type rewriter struct {
	replace func(string) (string, int)
	// aliases are what ids became, so that the same id is the same everywhere; nil = ids stay.
	aliases map[string]string
}

// ReplaceInEvent replaces in the texts of an event, in JSON. Everything else stays as it is.
func ReplaceInEvent(text []byte, replace func(string) (string, int)) ([]byte, int) {
	return rewriter{replace: replace}.rewrite(text, eventPlace)
}

// ReplaceInSnapshot replaces in the texts of a snapshot. One that would not have its structure then is
// an error.
func ReplaceInSnapshot(text []byte, replace func(string) (string, int)) ([]byte, error) {
	clean, _, err := rewriter{replace: replace}.rewriteSnapshot(text)
	return clean, err
}

// lookSchema begins the schema of a recorded look.
const lookSchema = "sbx.snapshot/v"

// rewriteSnapshot rewrites a recorded look, another JSON document, or a text.
func (w rewriter) rewriteSnapshot(content []byte) ([]byte, int, error) {
	if !json.Valid(content) {
		text, n := w.replace(string(content))
		return []byte(text), n, nil
	}
	var head struct {
		Schema string `json:"schema"`
	}
	at := otherPlace
	if json.Unmarshal(content, &head) == nil && strings.HasPrefix(head.Schema, lookSchema) {
		at = snapshotPlace
	}
	clean, n := w.rewrite(content, at)
	if n == 0 {
		return content, 0, nil
	}
	return clean, n, sameStructure(content, clean, at)
}

// value is what a string becomes, and how many places were replaced in it.
func (w rewriter) value(value string, is place) (string, int) {
	switch is {
	case placeText:
		return w.replace(value)
	case placeID:
		return w.alias(value)
	case placeRef:
		profile, id, found := strings.Cut(value, "/")
		if !found {
			return w.alias(value)
		}
		id, n := w.alias(id)
		return profile + "/" + id, n
	case placeFixed:
	}
	return value, 0
}

var isAlias = regexp.MustCompile(`^(?:` + sandbox.TaskIDPrefix + `)?redacted-[a-z2-7]{8}$`)

// alias is another id for one that has a secret in it. That of a task keeps its prefix, by which it
// is judged.
func (w rewriter) alias(id string) (string, int) {
	if w.aliases == nil || isAlias.MatchString(id) {
		return id, 0
	}
	if known, has := w.aliases[id]; has {
		return known, 1
	}
	if _, n := w.replace(id); n == 0 {
		return id, 0
	}
	other := "redacted-" + strings.ToLower(rand.Text()[:8])
	if strings.HasPrefix(id, sandbox.TaskIDPrefix) {
		other = sandbox.TaskIDPrefix + other
	}
	w.aliases[id] = other
	return other, 1
}

// level is an object or a list around a place in a document.
type level struct {
	object bool
	path   string // of what is inside
	outer  string // of the object itself
	value  bool   // the next string of the object is no key
}

// rewrite replaces the strings of a JSON text by what they are, and leaves every other byte.
func (w rewriter) rewrite(text []byte, at func(path string) place) ([]byte, int) {
	var out bytes.Buffer
	levels := []level{{}}
	places, written := 0, 0
	for i := 0; i < len(text); {
		in := &levels[len(levels)-1]
		from := i
		i++
		switch text[from] {
		case '{', '[':
			levels = append(levels, level{object: text[from] == '{', path: in.path, outer: in.path})
		case '}', ']':
			levels = levels[:max(1, len(levels)-1)]
		case ':':
			in.value = true
		case ',':
			in.value = false
		case '"':
			i = endOfString(text, from)
			if literal, n := w.literal(text[from:i], in, at); n > 0 {
				out.Write(text[written:from])
				out.Write(literal)
				places, written = places+n, i
			}
		}
	}
	out.Write(text[written:])
	return out.Bytes(), places
}

// literal is what a string of a JSON text becomes. A key only says where the next value is.
func (w rewriter) literal(literal []byte, in *level, at func(path string) place) ([]byte, int) {
	var value string
	if json.Unmarshal(literal, &value) != nil {
		return literal, 0
	}
	if in.object && !in.value {
		in.path = joinPath(in.outer, value)
		return literal, 0
	}
	clean, n := w.value(value, at(in.path))
	if n == 0 || clean == value {
		return literal, 0
	}
	literal, _ = json.Marshal(clean) // a string never fails
	return literal, n
}

func joinPath(outer, key string) string {
	if outer == "" {
		return key
	}
	return outer + "." + key
}

// endOfString is the place behind the string that begins at from.
func endOfString(text []byte, from int) int {
	for i := from + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// sameStructure is why two documents differ in more than in their texts and ids.
func sameStructure(a, b []byte, at func(path string) place) error {
	var was, is any
	for text, to := range map[*[]byte]*any{&a: &was, &b: &is} {
		from := json.NewDecoder(bytes.NewReader(*text))
		from.UseNumber()
		if err := from.Decode(to); err != nil {
			return errors.New("it would be no JSON")
		}
	}
	return sameValue(was, is, "", at)
}

func sameValue(was, is any, path string, at func(path string) place) error {
	var same bool
	switch was := was.(type) {
	case map[string]any:
		now, _ := is.(map[string]any)
		if same = len(was) == len(now); same {
			return sameMembers(was, now, path, at)
		}
	case []any:
		now, _ := is.([]any)
		if same = len(was) == len(now); same {
			for i := range was {
				if err := sameValue(was[i], now[i], path, at); err != nil {
					return err
				}
			}
		}
	case string:
		now, isText := is.(string)
		same = isText && (was == now || now != "" && at(path) != placeFixed)
	default:
		same = was == is
	}
	if !same {
		return fmt.Errorf("%s would change", path)
	}
	return nil
}

func sameMembers(was, is map[string]any, path string, at func(path string) place) error {
	for _, key := range slices.Sorted(maps.Keys(was)) {
		now, has := is[key]
		if !has {
			return fmt.Errorf("%s would be lost", joinPath(path, key))
		}
		if err := sameValue(was[key], now, joinPath(path, key), at); err != nil {
			return err
		}
	}
	return nil
}
