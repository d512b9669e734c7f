package config

import (
	"slices"
	"strings"

	"sbx/internal/providers"
)

// Mask stands for every secret, whatever its length; an option without a value
// is shown empty.
const Mask = "********"

func (l *loader) keepSecret(o providers.Option, text string) {
	if !o.Secret {
		text = passwordOf(text)
	}
	if text != "" && !slices.Contains(l.config.secrets, text) {
		l.config.secrets = append(l.config.secrets, text)
	}
}

// passwordOf gives the password that stands in a URL, as it is written there.
func passwordOf(text string) string {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return ""
	}
	authority, _, _ := strings.Cut(rest, "/")
	i := strings.LastIndex(authority, "@")
	if i < 0 {
		return ""
	}
	_, secret, _ := strings.Cut(authority[:i], ":")
	return secret
}

func withoutPassword(text string) string {
	if secret := passwordOf(text); secret != "" {
		return strings.Replace(text, ":"+secret+"@", ":"+Mask+"@", 1)
	}
	return text
}

// withoutQuery masks what follows the ? of an address: a token often stands
// there.
func withoutQuery(text string) string {
	if before, query, ok := strings.Cut(text, "?"); ok && query != "" {
		return before + "?" + Mask
	}
	return text
}

// keepAddress keeps the secrets that an address can hold.
func (l *loader) keepAddress(text string) {
	l.keepSecret(providers.Option{}, text)
	if _, query, ok := strings.Cut(text, "?"); ok {
		l.keepSecret(providers.Option{Secret: true}, query)
	}
}
