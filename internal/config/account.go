package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"

	"sbx/internal/providers"
)

// optionURL is the option that names a provider's address.
const optionURL = "url"

// account tells two accounts apart without holding a secret: type, address and
// a hash of the credential and of what else names the account.
type account struct {
	kind       string
	url        string
	credential [sha256.Size]byte
}

// accountOf gives the account of a profile; false where the type has
// credentials and the profile has none: nothing can then be said.
func accountOf(p providers.Profile, t providers.Type) (account, bool) {
	var credential strings.Builder
	secrets, given := 0, 0
	for _, o := range t.Options {
		if o.Account {
			credential.WriteString(o.Name + "\x00" + p.Settings[o.Name] + "\x00")
		}
		if !o.Secret {
			continue
		}
		secrets++
		if text := p.Settings[o.Name]; text != "" {
			given++
			credential.WriteString(o.Name + "\x00" + text + "\x00")
		}
	}
	id := account{kind: p.Type, url: normalizeURL(p.Settings[optionURL]), credential: sha256.Sum256([]byte(credential.String()))}
	return id, secrets == 0 || given > 0
}

// normalizeURL makes two spellings of one URL equal: scheme and host in lower case,
// no slash at the end.
func normalizeURL(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return strings.TrimRight(url, "/")
	}
	host, path, _ := strings.Cut(rest, "/")
	return strings.TrimRight(strings.ToLower(scheme+"://"+host)+"/"+path, "/")
}

// refuseDuplicateAccounts refuses two configured profiles of one account: one sandbox would be
// listed, counted and ended twice.
func (l *loader) refuseDuplicateAccounts() {
	first := map[account]string{}
	for _, p := range l.config.Profiles {
		t, _ := findType(l.in.Types, p.Type)
		id, known := accountOf(p.Profile, t)
		if !known {
			continue
		}
		if other, twice := first[id]; twice {
			l.addError("%s: profile %s is the same account as profile %s; keep one", l.whereIs(p.Name), p.Name, other)
		}
		first[id] = p.Name
	}
}

// whereIs names the place of a profile in the file.
func (l *loader) whereIs(profile string) string {
	if b, ok := l.doc.block(profile); ok {
		return l.doc.originAt(b.name.at)
	}
	return originDefault
}

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
