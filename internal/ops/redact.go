package ops

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// redactedText replaces a secret.
const redactedText = "[redacted]"

// minSecret is the least length of a secret of the configuration that is looked for, in bytes: shorter
// words are in every text.
const minSecret = 4

// secretPatterns are secrets by their place: user and password in an address, and the value of a parameter or
// variable with the name of one, or behind "bearer", of which the second group is replaced; and by their form: the
// value of a flag, keys of well-known services, a private key, whole or cut off.
type secretPatterns struct{ inURL, byName, flag, form *regexp.Regexp }

// secrets are compiled when they are first looked for: most runs record no text.
var secrets = sync.OnceValue(func() secretPatterns { //nolint:gochecknoglobals // compiled once, never changed
	return secretPatterns{
		inURL: regexp.MustCompile(`(://)([^\s/?#"'@\[]+)(@)`),
		byName: regexp.MustCompile(
			`(?i)(\b[\w.-]*(?:token|secret|password|passwd|api[_-]?key|access[_-]?key|private[_-]?key|credential)["']?\s*[=:]\s*["']?|\bbearer\s+|[?&](?:sig|signature|key)=)` +
				`([^\s"'&@\[]{3,})(["'&@]|\s|$)`),
		flag: regexp.MustCompile(`(?i)(--?[\w-]*(?:token|secret|password|passwd|api-?key|access-?key|private-?key|credentials?)\s+)("[^"]+"|'[^']+'|[^\s"'\[-][^\s]*)`),
		form: regexp.MustCompile(`\b(?:A[KS]IA[0-9A-Z]{16}|gh[opusr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|xox[a-z]-[A-Za-z0-9-]{10,}|sk-[\w-]{16,}|AIza[\w-]{35}|` +
			`eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+)|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)`),
	}
})

// RedactText is a text that people typed or a sandbox wrote, without secrets, for a record: without those
// of the configuration, and without what is one by its form or its place.
func (e *Env) RedactText(text string) string {
	var known []string
	if c, err := e.Config(); err == nil {
		known = c.Secrets()
	}
	return redactText(text, known)
}

func redactText(text string, known []string) string {
	known = slices.DeleteFunc(slices.Clone(known), func(s string) bool { return len(s) < minSecret })
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) }) // one may contain another
	for _, s := range known {
		text = strings.ReplaceAll(text, s, redactedText)
	}
	text = secrets().form.ReplaceAllString(text, redactedText)
	text = secrets().flag.ReplaceAllString(text, "${1}"+redactedText)
	text = secrets().inURL.ReplaceAllString(text, "${1}"+redactedText+"${3}")
	return secrets().byName.ReplaceAllString(text, "${1}"+redactedText+"${3}")
}
