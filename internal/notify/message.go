package notify

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sbx/internal/fault"
)

// Kind is what a message is about.
type Kind string

// The closed list. A run that went well has no kind: nobody is notified.
const (
	KindFailed     Kind = "failed"     // the run failed as a whole
	KindPartial    Kind = "partial"    // some sandboxes or providers failed, the rest is done
	KindUnverified Kind = "unverified" // asked to end and not seen to
	KindRefused    Kind = "refused"    // a guard said no, and nothing was done
	KindFound      Kind = "found"      // a check found something wrong
	KindOverdue    Kind = "overdue"    // a run that should have been was not
	KindAlert      Kind = "alert"      // the condition of an alert holds
	KindRecovered  Kind = "recovered"  // the reported trouble is over
)

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{KindFailed, KindPartial, KindUnverified, KindRefused, KindFound, KindOverdue, KindAlert, KindRecovered}
}

// KindFor is the message kind for a run that ended with this kind of fault; false where nobody
// is notified: success, a run delayed by another one, and an interrupted run.
func KindFor(kind fault.Kind) (Kind, bool) {
	switch kind {
	case fault.KindNone, fault.KindLocked, fault.KindCanceled:
		return "", false
	case fault.KindPartial:
		return KindPartial, true
	case fault.KindUnverified:
		return KindUnverified, true
	case fault.KindRefused:
		return KindRefused, true
	case fault.KindFound:
		return KindFound, true
	default:
		return KindFailed, true
	}
}

// Message is one notification. Its texts may quote names from sandboxes: control and invisible
// characters are escaped before anything is sent.
type Message struct {
	Verb    string             `json:"verb"` // "cleanup"
	RunID   string             `json:"run_id"`
	Host    string             `json:"host"`
	Kind    Kind               `json:"kind"`
	Key     string             `json:"key"`     // what goes on failing: "cleanup stuck"; a recovery names the same. Empty = Verb
	Title   string             `json:"title"`   // one line; empty = made of verb, kind and host
	Text    string             `json:"text"`    // some lines, plain
	Figures map[string]float64 `json:"figures"` // "selected": 37
	At      time.Time          `json:"at"`
	Link    string             `json:"link"` // http or https; anything else is left out; "" = Targets.Link

	// Alert is the rule of an alert; "" = the message is about a run. An alert is of no host: any
	// host may find that it is over.
	Alert string `json:"alert"`
	// Severity is critical or warning; "" = that of Kind. The recovery of a run has none, since
	// its messages had different ones.
	Severity string `json:"severity"`
	Level    string `json:"level"` // of an alert: who acts first

	Items     []Item         `json:"items"`      // the sandboxes it is about, the most important first
	MoreItems int            `json:"more_items"` // that do not fit
	Providers []string       `json:"providers"`  // the profiles it is about
	Causes    map[string]int `json:"causes"`     // how many sandboxes have which cause
	Next      []string       `json:"next"`       // commands to type
}

// sanitized makes a message fit to be sent anywhere: complete, printable and short.
func (m Message) sanitized(link string) Message {
	m.Verb, m.RunID, m.Host, m.Key = oneLine(m.Verb), oneLine(m.RunID), oneLine(m.Host), oneLine(m.Key)
	m.Key = cmp.Or(m.Key, m.Verb)
	if m.Alert, m.Level = oneLine(m.Alert), oneLine(m.Level); m.Severity == "" && m.Kind != KindRecovered {
		m.Severity = m.Kind.severityWord()
	}
	if m.Title = oneLine(m.Title); m.Title == "" {
		m.Title = "sbx " + m.Verb + " " + string(m.Kind)
		if m.Host != "" {
			m.Title += " on " + m.Host
		}
	}
	m.Text = cutText(printableLines(m.Text), mostText)
	figures := make(map[string]float64, len(m.Figures))
	for name, value := range m.Figures {
		figures[oneLine(name)] = value
	}
	var left int
	m.Items, left = sanitizedItems(m.Items)
	m.MoreItems += left
	m.Providers, m.Next = sanitizedLines(m.Providers, mostItems), sanitizedLines(m.Next, mostCommands)
	causes := make(map[string]int, len(m.Causes))
	for name, n := range m.Causes {
		causes[oneLine(name)] = n
	}
	m.Figures, m.Causes, m.At = figures, causes, m.At.UTC()
	m.Link = webLink(cmp.Or(m.Link, m.expandLink(link)))
	return m
}

// severityWord is how loud a kind is, in PagerDuty's words.
func (k Kind) severityWord() string {
	switch k {
	case KindFailed, KindRefused, KindOverdue:
		return severityCritical
	default:
		return severityWarning
	}
}

const (
	severityCritical = "critical"
	severityWarning  = "warning"
)

// Severities lists every severity of a message.
func Severities() []string { return []string{severityCritical, severityWarning} }

const (
	// mostLine and mostText are in characters; services cut longer ones without a
	// word, or refuse them.
	mostLine = 300
	mostText = 3000
	more     = "..."
)

func oneLine(text string) string {
	return cutText(printableText(strings.Join(strings.Fields(text), " ")), mostLine)
}

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

// figureLines are "name: value", sorted by name.
func (m Message) figureLines() []string {
	list := make([]string, 0, len(m.Figures))
	for name, value := range m.Figures {
		list = append(list, name+": "+formatFigure(value))
	}
	slices.Sort(list)
	return list
}

func formatFigure(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
