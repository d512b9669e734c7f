package commands

import (
	"strings"

	"sbx/docs"
	"sbx/internal/views"
)

const idsHelp = "R125, S1-28 and the like are requirements of operators. An answer names the one that it\n" +
	"serves: a limit, a question, a symptom, a step. `sbx help R125` says what R125 is, and whose.\n\n" +
	"docs/REQUIREMENTS.md lists all of them. Checks of `sbx verify` are\n" +
	"named by their requirement, so their ids never change.\n"

// requirementPage says what the id of a requirement refers to; "" = it is no such id. On the page
// of requirements a row has five cells, and a group of them, such as R or S1, two.
func requirementPage(word string) string {
	page, err := docs.Files.ReadFile("REQUIREMENTS.md")
	if err != nil {
		return ""
	}
	id := strings.ToUpper(word)
	group, _, _ := strings.Cut(id, "-")
	if group == id {
		group = strings.TrimRight(id, "0123456789")
	}
	text, source := "", ""
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") // some are empty
		switch first := strings.TrimSpace(cells[0]); {
		case first == group && len(cells) == 2:
			source = strings.TrimSpace(cells[1])
		case first == id && len(cells) == 5:
			text = strings.TrimSpace(cells[3])
		}
	}
	if text == "" {
		return ""
	}
	return views.PlainPage(id + ": " + text + "\n\nIt is of the " + source + ".\n")
}
