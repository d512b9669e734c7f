package views

import (
	"strings"

	"sbx/internal/output"
)

// PageWidth is the width of a help page, in cells: that of the narrowest terminal in common use.
const PageWidth = 80

// PlainPage is a page of Markdown as a terminal shows it: headings without their marks, the rows
// of a table as a word and its meaning, at most 80 characters wide.
func PlainPage(markdown string) string {
	var b strings.Builder
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			b.WriteString(wrapLines(strings.Join(lines, " "), "") + "\n")
		}
		lines = nil
	}
	table, fenced := 0, false // rows of the table so far; within a block of code
	for line := range strings.SplitSeq(strings.TrimSpace(markdown), "\n") {
		cells, isRow := strings.CutPrefix(line, "|")
		if !isRow {
			table = 0
		}
		switch {
		case strings.HasPrefix(line, "```"):
			flush()
			fenced = !fenced
		case fenced:
			b.WriteString("  " + line + "\n")
		case strings.HasPrefix(line, "<!--"), strings.HasPrefix(line, "</details>"):
		case strings.HasPrefix(line, "<details>"):
			title, _, _ := strings.Cut(strings.TrimPrefix(line, "<details><summary>"), "<")
			b.WriteString(title + "\n")
		case isRow:
			if table++; table > 2 { // beneath the heading and its line
				b.WriteString(tableRow(cells))
			}
		case strings.HasPrefix(line, "#"):
			flush()
			number, title := "", strings.TrimLeft(line, "# ")
			if title[0] >= '0' && title[0] <= '9' {
				number, title, _ = strings.Cut(title, " ")
				number += " "
			}
			b.WriteString(number + strings.ToUpper(title) + "\n")
		case line == "":
			flush()
			b.WriteString("\n")
		case strings.HasPrefix(line, "- "):
			flush()
			lines = []string{strings.ReplaceAll(line, "**", "")}
		default:
			lines = append(lines, strings.ReplaceAll(strings.TrimSpace(line), "**", ""))
		}
	}
	flush()
	return b.String()
}

func tableRow(cells string) string {
	parts := strings.Split(strings.TrimSuffix(cells, "|"), " | ")
	for i, p := range parts {
		parts[i] = strings.TrimSpace(p)
	}
	return wrapLines("  "+parts[0]+": "+strings.Join(parts[1:], "; "), "      ") + "\n"
}

// wrapLines is output.WrapText within the page, with further lines indented.
func wrapLines(text, indent string) string {
	return strings.Join(output.WrapText(text, PageWidth, indent), "\n")
}

// Definition is a term and its meaning in two columns of a help page, the meaning wrapped.
func Definition(term, meaning string, column int) string {
	pad := strings.Repeat(" ", column)
	lines := strings.Join(output.WrapText(meaning, PageWidth-column, ""), "\n"+pad)
	if len(term)+4 > column {
		return "  " + term + "\n" + pad + lines + "\n"
	}
	return "  " + term + strings.Repeat(" ", column-2-len(term)) + lines + "\n"
}
