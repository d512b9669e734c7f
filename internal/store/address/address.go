package address

import (
	"net/url"
	"slices"
	"strings"

	"sbx/internal/fault"
)

// mask stands for every secret, whatever its length.
const mask = "********"

// Postgres is the URL of a database. Its text forms never show a secret.
type Postgres struct {
	raw   string
	spans []span // of the secrets in raw, from left to right
}

// span is a secret, as it is written from one byte of the URL to another.
type span struct{ from, to int }

// Parse takes a URL apart. Errors are fault.KindUsage and quote nothing of the URL: after a
// slash, the rest of a password looks like a database name.
func Parse(raw string) (Postgres, error) {
	const escape = "write special characters of a user name or password as %XX: @ is %40, / is %2F, ? is %3F, # is %23"
	scheme, rest, _ := strings.Cut(raw, "://")
	if scheme != "postgres" && scheme != "postgresql" {
		return Postgres{}, fault.Usage("it is not a postgres:// or postgresql:// URL").WithHint("postgres://USER:PASSWORD@HOST/DATABASE; %s", escape)
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && strings.Contains(rest[i:], "@") {
		return Postgres{}, fault.Usage("it has an @ after the host").WithHint("%s", escape)
	}
	u, err := url.Parse(raw)
	if err != nil || strings.Contains(raw, "#") {
		return Postgres{}, fault.Usage("it cannot be read as a URL").WithHint("%s", escape)
	}
	if _, err := url.ParseQuery(u.RawQuery); err != nil {
		return Postgres{}, fault.Usage("its parameters cannot be read").WithHint("write them as ?name=value&name=value; %s", escape)
	}
	return Postgres{raw: raw, spans: spans(raw)}, nil
}

// spans finds the password and every parameter whose name ends in "password".
func spans(raw string) []span {
	var found []span
	add := func(from, to int) {
		if from < to {
			found = append(found, span{from, to})
		}
	}
	authority := strings.Index(raw, "://") + len("://")
	if end := strings.LastIndex(raw, "@"); end >= 0 { // Parse allows none behind the host
		if colon := strings.Index(raw[authority:end], ":"); colon >= 0 {
			add(authority+colon+1, end)
		}
	}
	mark := strings.Index(raw, "?")
	if mark < 0 {
		return found
	}
	from := mark + 1
	for pair := range strings.SplitSeq(raw[from:], "&") {
		key, _, ok := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		if ok && (err != nil || strings.HasSuffix(name, "password")) {
			add(from+len(key)+1, from+len(pair))
		}
		from += len(pair) + 1
	}
	return found
}

// Secrets are the parts that no text may show, each as written and as decoded.
func (p Postgres) Secrets() []string {
	var found []string
	for _, s := range p.spans {
		written := p.raw[s.from:s.to]
		found = append(found, written)
		for _, meant := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
			if text, err := meant(written); err == nil && text != "" && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	return found
}

// String is the URL with every secret masked.
func (p Postgres) String() string {
	var b strings.Builder
	from := 0
	for _, s := range p.spans {
		b.WriteString(p.raw[from:s.from] + mask)
		from = s.to
	}
	b.WriteString(p.raw[from:])
	return b.String()
}

// GoString is String.
func (p Postgres) GoString() string { return p.String() }

// Scrub puts a text on one line and masks secrets in it.
func Scrub(text string, secrets []string) string {
	longestFirst := slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range longestFirst {
		text = strings.ReplaceAll(text, secret, mask)
	}
	return strings.Join(strings.Fields(text), " ")
}
