package cron

import (
	"fmt"
	"strings"

	"al.essio.dev/pkg/shellescape"
)

// isBareRune says that neither a shell nor systemd gives a character any meaning.
func isBareRune(r rune) bool {
	return (r >= '0' && r <= '9') || (r >= 'A' && r <= 'Z') || (r >= 'a' && r <= 'z') || strings.ContainsRune("_-+=:,./@", r)
}

func needsQuotes(word string) bool {
	return word == "" || strings.ContainsFunc(word, func(r rune) bool { return !isBareRune(r) })
}

// crontabWord quotes a word for the shell of a crontab, where a % ends the command unless a
// backslash precedes it. The pair is outside quotes: whether cron or the shell removes the
// backslash, a % is left.
func crontabWord(word string) string {
	parts := strings.Split(word, "%")
	if len(parts) == 1 {
		return shellescape.Quote(word)
	}
	for i, part := range parts {
		if part != "" {
			parts[i] = shellescape.Quote(part)
		}
	}
	return strings.Join(parts, `\%`)
}

// shellAssignment is NAME=word for a shell.
func shellAssignment(pair string, quote func(string) string) string {
	name, value, _ := strings.Cut(pair, "=")
	return name + "=" + quote(value)
}

// unitWord writes one word of a command line in a unit; dollars says that systemd
// would put a variable there.
func unitWord(word string, dollars bool) string {
	quoted := needsQuotes(word)
	word = strings.ReplaceAll(word, "%", "%%")
	if dollars {
		word = strings.ReplaceAll(word, "$", "$$")
	}
	if !quoted {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// unitPath writes a text for a setting that takes the whole line and no quotes.
func unitPath(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// CheckWord refuses what neither a crontab nor a unit can hold in one line.
func CheckWord(word string) error {
	if i := strings.IndexFunc(word, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }); i >= 0 {
		return fmt.Errorf("%q holds a line end or another character that no cron line can hold", word)
	}
	return nil
}
