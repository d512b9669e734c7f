package store

import (
	"net/url"
	"slices"
	"strings"

	"sbx/internal/fault"
)

// postgresURL takes a URL apart. What is wrong with it is said without a word of
// it: a password with a slash in it makes half of it look like something else.
func postgresURL(raw string) (*url.URL, error) {
	const escape = "what is special in a user's name or a password is written %XX: @ is %40, / is %2F, # is %23"
	scheme, rest, _ := strings.Cut(raw, "://")
	if scheme != "postgres" && scheme != "postgresql" {
		return nil, fault.Usage("it is no postgres:// or postgresql:// URL").WithHint("%s", escape)
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && strings.Contains(rest[i:], "@") {
		return nil, fault.Usage("it has an @ after the host").WithHint("%s", escape)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Fragment != "" || strings.Contains(raw, "#") {
		return nil, fault.Usage("it cannot be read as a URL").WithHint("%s", escape)
	}
	return u, nil
}

// secrets are the parts of a URL that no text may show, as they are written and as
// they are meant.
func secrets(raw string, u *url.URL) []string {
	var found []string
	add := func(text string) {
		if text != "" {
			found = append(found, text)
		}
	}
	if meant, ok := u.User.Password(); ok {
		add(meant)
		_, rest, _ := strings.Cut(raw, "://")
		_, written, _ := strings.Cut(rest[:strings.LastIndex(rest, "@")], ":") // the last @ ends it: postgresURL allows none behind the host
		add(written)
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		key, written, _ := strings.Cut(pair, "=")
		if key, err := url.QueryUnescape(key); err != nil || !strings.HasSuffix(key, "password") {
			continue
		}
		add(written)
		if meant, err := url.QueryUnescape(written); err == nil {
			add(meant)
		}
	}
	return found
}

// scrubbed is a text on one line, without secrets.
func scrubbed(text string, secrets []string) string {
	longestFirst := slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range longestFirst {
		text = strings.ReplaceAll(text, secret, "********")
	}
	return strings.Join(strings.Fields(text), " ")
}
