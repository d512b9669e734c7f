package views

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	"sbx/internal/output"
	"sbx/internal/sandbox"
)

func mdFigure(value *int64, at time.Time) string {
	if value == nil {
		return notKnown
	}
	return fmt.Sprintf("%d at %s", *value, mdTime(at))
}

// metWord says whether a target is met.
func metWord(v sandbox.Verdict) string {
	switch v {
	case sandbox.True:
		return "met"
	case sandbox.False:
		return "missed"
	case sandbox.Unknown:
	}
	return notKnown
}

func mdTime(t time.Time) string {
	if t.IsZero() {
		return notKnown
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func mdEvidence(all []sandbox.Evidence) string {
	var parts []string
	for _, e := range all {
		parts = append(parts, joinKnown(" ", prefixed("", e.What), e.Value, prefixed("by ", e.Source)))
	}
	return mdText(cmp.Or(strings.Join(parts, "; "), "-"))
}

// mdText makes a text plain in Markdown and in a cell of a table: mark-up is escaped, it is one line,
// and nobody is mentioned.
func mdText(text string) string {
	var b strings.Builder
	for _, r := range breakMentions(oneLineOf(text)) {
		if strings.ContainsRune("\\`*_[]<>#|~$&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// mdCode is a text as code, in which nothing is mark-up.
func mdCode(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(oneLineOf(text), "`", "'"), "|", `\|`)
	if text == "" {
		return "-"
	}
	return "`" + text + "`"
}

// oneLineOf is a text in one line without control characters.
func oneLineOf(text string) string {
	return output.EscapeLine(strings.Join(strings.Fields(text), " "))
}

// breakMentions puts an invisible break behind each @ that could mention somebody, in Markdown as in
// Slack.
func breakMentions(text string) string {
	runes := []rune(text)
	var b strings.Builder
	for i, r := range runes {
		b.WriteRune(r)
		if r == '@' && i+1 < len(runes) && (unicode.IsLetter(runes[i+1]) || unicode.IsDigit(runes[i+1])) {
			b.WriteRune('\u200b')
		}
	}
	return b.String()
}
