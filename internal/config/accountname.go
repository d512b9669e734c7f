package config

import (
	"encoding/hex"
	"net/url"
	"strings"

	"sbx/internal/providers"
)

// nameAccount says which account a profile is, without its secret: the host, what
// else names the account, and the start of the credential's hash, by which two
// profiles can be compared. "" for a type without an account.
func nameAccount(p providers.Profile, t providers.Type) string {
	id, known := accountOf(p, t)
	var parts []string
	secret := false
	for _, o := range t.Options {
		text := p.Settings[o.Name]
		switch {
		case o.Secret:
			secret = true
		case o.Name == optionURL && text != "":
			if u, err := url.Parse(text); err == nil && u.Host != "" {
				parts = append(parts, u.Host)
			}
		case o.Account && text != "":
			parts = append(parts, text)
		}
	}
	if !secret {
		return ""
	}
	if known && hasCredential(p, t) {
		parts = append(parts, "key #"+hex.EncodeToString(id.credential[:4]))
	}
	return strings.Join(parts, " ")
}

func hasCredential(p providers.Profile, t providers.Type) bool {
	for _, o := range t.Options {
		if o.Secret && p.Settings[o.Name] != "" {
			return true
		}
	}
	return false
}
