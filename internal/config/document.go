package config

import (
	"strconv"

	"sbx/internal/sandbox"
)

// document is what one file says, checked by itself: nothing in it has been
// compared with other files, with the environment or with the list of profiles.
type document struct {
	path       string
	scalars    map[string]entry
	places     map[string]position // of scalars
	use        *names              // nil = not in the file
	production []word
	labels     []placed[Label]
	ids        []placed[sandbox.Ref]
	profiles   []block
	named      []string // the names of all profiles, also of broken ones
}

// word is one text with its place.
type word struct {
	text string
	at   position
}

type placed[T any] struct {
	value T
	at    position
}

// names is a list of profile names.
type names struct {
	words []word
	at    position
}

// block is one profile as a file writes it; its options are among the scalars.
type block struct {
	name  word
	kind  string // "" = said by a weaker file
	owned *Owned
	at    position // of owned
}

func newDocument(path string) *document {
	return &document{path: path, scalars: map[string]entry{}, places: map[string]position{}}
}

// originAt names a place of the file as `config explain` shows it.
func (d *document) originAt(at position) string { return d.path + ":" + strconv.Itoa(at.line) }

func (d *document) setValue(key, text string, at position) {
	d.scalars[key] = entry{text: text, origin: d.originAt(at)}
	d.places[key] = at
}

func (d *document) setVariable(key, variable string, at position) {
	d.scalars[key] = entry{variable: variable, origin: d.originAt(at)}
	d.places[key] = at
}

func (d *document) setCommand(key string, command []string, at position) {
	d.scalars[key] = entry{command: command, origin: "command " + command[0] + " by " + d.originAt(at)}
	d.places[key] = at
}

func wordTexts(words []word) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.text
	}
	return out
}

func optionKey(profile, option string) string { return "providers." + profile + "." + option }
