package notify

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// mostLine and mostText are in characters; services cut longer ones without a
	// word, or refuse them.
	mostLine = 300
	mostText = 3000
	more     = "..."
)

// oneLine makes a foreign text fit for one line.
func oneLine(text string) string {
	return cutText(printableText(strings.Join(strings.Fields(text), " ")), mostLine)
}

// printableLines keeps line ends and makes each line printable.
func printableLines(text string) string {
	list := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range list {
		list[i] = printableText(strings.ReplaceAll(line, "\t", "    "))
	}
	return strings.TrimSpace(strings.Join(list, "\n"))
}

// printableText shows what a terminal or a chat would obey: escapes, and marks that
// turn the direction of a text.
func printableText(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "?") {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// cutText shortens to a number of characters, and says so.
func cutText(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-len(more)]) + more
}

// webLink keeps an address that a reader may click, and nothing else.
func webLink(text string) string {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || printableText(text) != text {
		return ""
	}
	return u.String()
}

// figures are "name: value" by name.
func (m Message) figureLines() []string {
	list := make([]string, 0, len(m.Figures))
	for name, value := range m.Figures {
		list = append(list, name+": "+value)
	}
	slices.Sort(list)
	return list
}
