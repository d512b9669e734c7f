package runbook

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/yamltext"
)

// MaxFile is the most bytes that a document may have.
const MaxFile = 1 << 20

// oldRows is the key that listed requirements before questions, figures and alerts had names.
const oldRows = "rows"

// Parse reads one document strictly. Beside findings the runbook holds what was understood; it is
// nil where the content is no document at all.
func Parse(file string, content []byte) (*Runbook, []Finding) {
	src := source{file: file, text: string(content)}
	if len(content) > MaxFile {
		return nil, []Finding{src.finding(firstPlace(), Error, RuleSyntax, "larger than 1 MiB", "")}
	}
	r, root, some := yamltext.Read(content)
	var book *Runbook
	switch {
	case some:
		book = &Runbook{Origin: Origin{File: file}}
		r.Struct(root, book)
		src.places, src.unread = r.Places, r.Unread
		book.source = src
	case len(r.Mistakes) == 0:
		return nil, []Finding{src.finding(firstPlace(), Error, RuleSyntax, "the document is empty", "`sbx runbook new ID` writes one")}
	}
	var found []Finding
	for _, m := range r.Mistakes {
		if m.Word == oldRows && strings.HasPrefix(m.Message, "unknown key ") {
			found = append(found, src.finding(m.Place, Warning, RuleOldName, "rows is not read any more: names say what a step answers", "remove rows"))
			continue
		}
		if len(m.Allowed) > 0 {
			m.Hint = fault.Meant(m.Word, m.Allowed)
		}
		found = append(found, src.finding(m.Place, Error, RuleSyntax, m.Message, m.Hint))
	}
	return book, found
}

// ReadText reads a word.
func (w *Word) ReadText(text string) error {
	if strings.ContainsAny(text, " \t\n") {
		return errors.New("must be one word")
	}
	*w = Word(text)
	return nil
}

// ReadText reads a day.
func (d *Date) ReadText(text string) error {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return fmt.Errorf("%q is not a day like 2026-11-23", text)
	}
	*d = Date(day)
	return nil
}
