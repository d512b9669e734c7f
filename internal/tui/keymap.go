package tui

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"sbx/internal/fault"
)

// Actions are the words of `keys:`, sorted.
func Actions() []string {
	var words []string
	for _, b := range bindings() {
		words = append(words, b.action)
	}
	slices.Sort(words)
	return words
}

// quitAlways is the key that no configuration takes away.
const quitAlways = "ctrl+c"

// namedKeys are the keys that have names, beside ctrl+a to ctrl+z.
func namedKeys() []string {
	return []string{
		"up", "down", "left", "right", "pgup", "pgdown", "home", "end", "tab", "shift+tab", "enter", "esc", "space", "backspace", "delete", "insert",
		"f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11", "f12",
	}
}

func knownKey(key string) bool {
	if r, size := utf8.DecodeRuneInString(key); size == len(key) && unicode.IsGraphic(r) && r != ' ' && r != utf8.RuneError {
		return true
	}
	letter, control := strings.CutPrefix(key, "ctrl+")
	return slices.Contains(namedKeys(), key) || control && len(letter) == 1 && letter[0] >= 'a' && letter[0] <= 'z'
}

// rebound are bindings with other keys for some actions. The error, of fault.KindUsage, names an action that
// there is not, a key that there is not, or two actions that have one key.
func rebound(all []binding, keys map[string]string) ([]binding, error) {
	if err := checkActions(all, keys); err != nil {
		return nil, err
	}
	taken := map[string]string{}
	out := slices.Clone(all)
	for i, b := range out {
		action := b.action
		if key, is := keys[action]; !is { // a configured key is taken from the action that has it by default
			out[i] = b.without(keys)
		} else {
			out[i].keys, out[i].name = []string{key}, key
			out[i].bar = barOf(b.bar, key)
		}
		for _, key := range out[i].keys {
			if other, is := taken[key]; is {
				return nil, fault.Usage("keys: %q is the key of %s and of %s", key, other, action).WithHint("give one of them another key")
			}
			taken[key] = action
		}
	}
	for i, b := range out {
		if b.action == "quit" && !slices.Contains(b.keys, quitAlways) {
			out[i].keys = append(out[i].keys, quitAlways)
		}
	}
	return out, nil
}

// checkActions refuses actions and keys that there are not.
func checkActions(all []binding, keys map[string]string) error {
	for _, action := range slices.Sorted(maps.Keys(keys)) {
		key := keys[action]
		i := slices.IndexFunc(all, func(b binding) bool { return b.action == action })
		switch {
		case i < 0:
			return fault.Usage("keys: no action %q, for which %q is to be the key", action, key).WithHint("%s", fault.Meant(action, Actions()))
		case key == quitAlways:
			return fault.Usage("keys: %s cannot be %s, which always quits", action, key)
		case !knownKey(key):
			return fault.Usage("keys: %s: no key %q", action, key).WithHint("a key is one character, ctrl+a to ctrl+z, or one of %s", strings.Join(namedKeys(), ", "))
		}
	}
	return nil
}

// barOf are the words of a bar with another key; "" stays.
func barOf(bar, key string) string {
	switch _, about, has := strings.Cut(bar, " "); {
	case bar == "":
		return ""
	case has:
		return key + " " + about
	}
	return key
}

// without is a binding that has lost the keys that other actions were given.
func (b binding) without(given map[string]string) binding {
	left := slices.DeleteFunc(slices.Clone(b.keys), func(key string) bool {
		return slices.Contains(slices.Collect(maps.Values(given)), key)
	})
	if len(left) == len(b.keys) {
		return b
	}
	b.keys = left
	b.name = strings.Join(b.keys, " ")
	if len(left) == 0 {
		b.bar = ""
	} else {
		b.bar = barOf(b.bar, left[0])
	}
	return b
}

// CheckKeys refuses keys of the configuration, by their actions, that the dashboard cannot bind.
func CheckKeys(keys map[string]string) error {
	_, err := rebound(bindings(), keys)
	return err
}

// keymap are the bindings that hold.
func (m *Model) keymap() []binding {
	if m.bound == nil {
		m.bound = bindings()
	}
	return m.bound
}

// means reports whether a key is one of an action's.
func (m *Model) means(key, action string) bool {
	return slices.ContainsFunc(m.keymap(), func(b binding) bool { return b.action == action && slices.Contains(b.keys, key) })
}

// keyOf is the key of an action as the last line has it.
func (m *Model) keyOf(action string) string {
	for _, b := range m.keymap() {
		if b.action == action {
			word, _, _ := strings.Cut(cmp.Or(b.bar, b.name), " ")
			return word
		}
	}
	return ""
}

// pressed does what a key means. One that means nothing on the page of an act leaves the page of an act that is over.
func (m *Model) pressed(key string) tea.Cmd {
	for _, b := range m.keymap() {
		if !slices.Contains(b.keys, key) {
			continue
		}
		if m.act != nil && !b.ofPage() {
			if m.act.step != actOver {
				return nil
			}
			m.closeAct("")
		}
		return b.do(m)
	}
	return nil
}
