package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Ref names one sandbox: profile and id. A Ref without Provider is a bare word that has to be
// looked up.
type Ref struct {
	Provider string
	ID       string
}

// String formats profile/id, or the bare word.
func (r Ref) String() string {
	if r.Provider == "" {
		return r.ID
	}
	return r.Provider + "/" + r.ID
}

// Bare reports whether the profile is not known yet.
func (r Ref) Bare() bool { return r.Provider == "" }

// MinPrefix is the shortest prefix of an id, in characters, that is accepted for it.
const MinPrefix = 4

// TaskIDPrefix begins the id of every task that sbx run launches.
const TaskIDPrefix = "t-"

const maxRefBytes = 512

// ErrRef is wrapped for every refused reference.
var ErrRef = errors.New("not a sandbox reference")

// ParseRef parses `profile/id` or a bare word. It refuses empty parts, white space, control
// characters, path elements and words that are too long.
func ParseRef(word string) (Ref, error) {
	if len(word) > maxRefBytes {
		return Ref{}, fmt.Errorf("%w: longer than %d bytes", ErrRef, maxRefBytes)
	}
	profile, id, qualified := strings.Cut(word, "/")
	if !qualified {
		profile, id = "", word
	}
	if qualified && !wellFormed(profile) {
		return Ref{}, fmt.Errorf("%w: %q has no usable profile name before the slash", ErrRef, word)
	}
	if !wellFormed(id) {
		return Ref{}, fmt.Errorf("%w: %q", ErrRef, word)
	}
	return Ref{Provider: profile, ID: id}, nil
}

func wellFormed(part string) bool {
	if part == "" || part == "." || part == ".." || strings.HasPrefix(part, "-") || !utf8.ValidString(part) {
		return false
	}
	return !strings.ContainsFunc(part, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\?#%*"'<>|`, r) || (r > 0x7e && r < 0xa0)
	})
}

// MarshalText formats profile/id.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// ReadRef reads what String has written, of any id: a provider may list one that ParseRef refuses
// from a user, such as `-rf` or `a/b`, and what sbx has recorded of it must stay readable. A name
// of a profile has no slash.
func ReadRef(text string) Ref {
	profile, id, qualified := strings.Cut(text, "/")
	if !qualified {
		return Ref{ID: text}
	}
	return Ref{Provider: profile, ID: id}
}

// UnmarshalText is ReadRef, for records; what a user types goes through ParseRef.
func (r *Ref) UnmarshalText(text []byte) error {
	*r = ReadRef(string(text))
	return nil
}
