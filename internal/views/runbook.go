package views

import (
	"fmt"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

func wordTone(severity string) output.Tone {
	switch severity {
	case string(runbook.Error):
		return output.Bad
	case string(runbook.Warning):
		return output.Warn
	}
	return output.Plain
}

// RunbookColumns are the columns of a RunbookListItem.
func RunbookColumns() []output.Column[*runbook.Runbook] {
	return output.Columns(
		runbookListItem,
		output.Column[*runbook.Runbook]{Name: "eta_seconds", Text: func(r *runbook.Runbook) string { return sandbox.FormatDuration(r.Metadata.ETA) }},
	)
}

// RunbookDocumentColumns are the columns of a RunbookItem.
func RunbookDocumentColumns() []output.Column[*runbook.Runbook] { return output.Columns(runbookItem) }

// LintColumns are the columns of a LintItem.
func LintColumns() []output.Column[runbook.Finding] {
	return output.Columns(
		lintItem, output.Column[runbook.Finding]{Name: "severity", Tone: func(f runbook.Finding) output.Tone { return wordTone(string(f.Severity)) }},
	)
}

func lintItem(f runbook.Finding) LintItem {
	return LintItem{f.File, f.Line, f.Column, string(f.Severity), string(f.Rule), f.Message, orNil(f.Hint), f.Excerpt}
}

// ShowRunbooks lists runbooks. Errs are of those that cannot be read.
func ShowRunbooks(p *output.Printer, schema string, books []*runbook.Runbook, errs []error) error {
	return ShowRows(p, output.ListSpec[*runbook.Runbook]{Schema: schema, Columns: RunbookColumns(), Empty: "no runbooks"}, books, errs...)
}

// ShowRunbook shows one runbook, to people as its page.
func ShowRunbook(p *output.Printer, schema string, r *runbook.Runbook) error {
	page := func(s *output.Sheet, r *runbook.Runbook) { s.Text(PlainPage(RunbookMarkdown(r))) }
	return output.ShowItem(p, output.ItemSpec[*runbook.Runbook]{Schema: schema, Columns: RunbookDocumentColumns(), Human: page}, r)
}

// ShowLint shows findings. Each error among them is an error of the document too.
func ShowLint(p *output.Printer, schema string, found []runbook.Finding, books int) error {
	list, err := output.NewList(p, output.ListSpec[runbook.Finding]{
		Schema: schema, Columns: LintColumns(), Human: lintPage, Empty: "nothing is wrong with " + sandbox.FormatCount(books, "runbook", "runbooks"),
	})
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Severity == runbook.Error {
			_ = list.AddFailed(f, f.AsError(fault.KindFound)) // Close gives the error of stdout
			continue
		}
		_ = list.Add(f) // Close gives the error of stdout
	}
	return list.Close()
}

// lintPage shows each warning with its line and a caret below the place. Errors are on stderr in the
// same form, with every format.
func lintPage(s *output.Sheet, found []runbook.Finding) {
	var b strings.Builder
	for _, f := range found {
		if f.Severity == runbook.Error {
			continue
		}
		fmt.Fprintf(&b, "%s: %s: %s (%s)\n", f.Place(), f.Severity, f.Message, f.Rule)
		for _, line := range f.Excerpt {
			b.WriteString("  " + line + "\n")
		}
		if f.Hint != "" {
			b.WriteString("  " + f.Hint + "\n")
		}
	}
	s.Text(b.String())
}

// DraftColumns are the columns of a DraftItem.
func DraftColumns() []output.Column[DraftItem] {
	return output.Columns(func(d DraftItem) DraftItem { return d })
}

// ShowDraft shows a new document, to people where it was written; path "" = nowhere.
func ShowDraft(p *output.Printer, schema, id, path, text string) error {
	spec := output.ItemSpec[DraftItem]{Schema: schema, Columns: DraftColumns(), Line: func(DraftItem) string { return "wrote " + path }}
	return output.ShowItem(p, spec, DraftItem{id, orNil(path), text})
}
