package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Ref names one sandbox: profile and id. A Ref without Provider is a bare word
// that still has to be looked up.
type Ref struct {
	Provider string
	ID       string
}

// String writes profile/id, or the bare word.
func (r Ref) String() string {
	if r.Provider == "" {
		return r.ID
	}
	return r.Provider + "/" + r.ID
}

// Bare says that the profile is not known yet.
func (r Ref) Bare() bool { return r.Provider == "" }

// MinPrefix is the shortest id prefix, in characters, that may stand for an id.
const MinPrefix = 4

const maxRefBytes = 512

// ErrRef is what every refused reference wraps.
var ErrRef = errors.New("not a sandbox reference")

// ParseRef reads `profile/id` or a bare word. It refuses what cannot be one:
// empty parts, white space, control characters, path tricks, over-long words.
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

// MarshalText writes profile/id, so that files and JSON hold one word.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote; the error wraps ErrRef.
func (r *Ref) UnmarshalText(text []byte) error {
	parsed, err := ParseRef(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
