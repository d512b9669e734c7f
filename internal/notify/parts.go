package notify

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"sbx/internal/sandbox"
)

// Item is one sandbox that a message is about.
type Item struct {
	Ref     string `json:"ref"`
	Task    string `json:"task"`
	Cause   string `json:"cause"`   // what is wrong with it, as a word: "busy_loop"
	Outcome string `json:"outcome"` // what became of it; "" = nothing was tried
	Reason  string `json:"reason"`
}

const (
	mostItems    = 20 // sandboxes that a message names
	mostCommands = 5
)

// sanitizedItems are the first items, printable, and the number of those that were left out.
func sanitizedItems(items []Item) (kept []Item, left int) {
	kept = make([]Item, 0, min(len(items), mostItems))
	for _, i := range items[:min(len(items), mostItems)] {
		kept = append(kept, Item{oneLine(i.Ref), oneLine(i.Task), oneLine(i.Cause), oneLine(i.Outcome), oneLine(i.Reason)})
	}
	return kept, len(items) - len(kept)
}

func sanitizedLines(lines []string, most int) []string {
	kept := make([]string, 0, min(len(lines), most))
	for _, l := range lines[:min(len(lines), most)] {
		kept = append(kept, oneLine(l))
	}
	return kept
}

// line is an item for people: "prod/abc (task T-1, busy_loop): failed, 503".
func (i Item) line() string {
	var about, came []string
	if i.Task != "" {
		about = append(about, "task "+i.Task)
	}
	if i.Cause != "" {
		about = append(about, i.Cause)
	}
	for _, text := range []string{i.Outcome, i.Reason} {
		if text != "" {
			came = append(came, text)
		}
	}
	line := i.Ref
	if len(about) > 0 {
		line += " (" + strings.Join(about, ", ") + ")"
	}
	if len(came) > 0 {
		line += ": " + strings.Join(came, ", ")
	}
	return line
}

// bodyLines are the parts of a message below its title, in the order in which a person needs them;
// the whole fits into most characters. The sandboxes give way to the rest, and their number is told.
func (m Message) bodyLines(most int) []string {
	var head, tail []string
	if m.Text != "" {
		head = append(head, m.Text)
	}
	if len(m.Providers) > 0 {
		head = append(head, "providers: "+strings.Join(m.Providers, ", "))
	}
	if causes := sandbox.FormatCounts(m.Causes); causes != "" {
		head = append(head, "causes: "+causes)
	}
	if list := m.figureLines(); len(list) > 0 {
		tail = append(tail, strings.Join(list, "  "))
	}
	if m.RunID != "" {
		tail = append(tail, "run "+m.RunID)
	}
	for _, command := range m.Next {
		tail = append(tail, "next: "+command)
	}
	room := most - lengthOf(tail) - 40 // for the line that counts what is left out
	if len(head) > 0 {
		head[0] = cutText(head[0], max(room-lengthOf(head[1:])-1, len(more)))
	}
	room -= lengthOf(head)
	left := m.MoreItems
	lines := head
	for n, i := range m.Items {
		if room -= utf8.RuneCountInString(i.line()) + 3; room < 0 {
			left += len(m.Items) - n
			break
		}
		lines = append(lines, "- "+i.line())
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", left))
	}
	return append(lines, tail...)
}

// lengthOf is the length of lines in characters, with their ends.
func lengthOf(lines []string) int {
	n := 0
	for _, l := range lines {
		n += utf8.RuneCountInString(l) + 1
	}
	return n
}

// expandLink puts a message into the address of a page: {run_id}, {verb} and {host}.
func (m Message) expandLink(template string) string {
	return strings.NewReplacer("{run_id}", url.PathEscape(m.RunID), "{verb}", url.PathEscape(m.Verb), "{host}", url.PathEscape(m.Host)).Replace(template)
}
