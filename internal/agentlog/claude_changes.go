package agentlog

import (
	"strconv"
	"strings"

	"sbx/internal/jsontext"
)

// changes are what a tool changed, by its result. A string says that it failed or was denied.
func (l *claudeLine) changes(result fields) []fileChange {
	path := within(l.folder, result.text("filePath"))
	if path == "" {
		return nil
	}
	content := result.value("content")
	switch {
	case result.text("type") == "create" || content != nil && string(result.value("originalFile")) == "null":
		return []fileChange{newChange(path, changeCreated, wholeFile('+', scalar(content)))}
	case result.first("structuredPatch") != nil:
		return []fileChange{newChange(path, changeModified, claudeHunks(result.value("structuredPatch")))}
	case result.first("oldString", "newString") != nil:
		body := "@@ @@\n" + signed('-', result.text("oldString")) + signed('+', result.text("newString"))
		return []fileChange{newChange(path, changeModified, body)}
	}
	return nil
}

// signed is each line of a text behind a sign.
func signed(sign byte, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteByte(sign)
		b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// claudeHunks writes a structured patch as a unified diff.
func claudeHunks(patch []byte) string {
	var hunks []struct {
		OldStart, OldLines, NewStart, NewLines int
		Lines                                  []string
	}
	if jsontext.Unmarshal(patch, &hunks) != nil {
		return ""
	}
	var b strings.Builder
	for _, h := range hunks {
		b.WriteString("@@ -" + strconv.Itoa(h.OldStart) + "," + strconv.Itoa(h.OldLines) + " +" + strconv.Itoa(h.NewStart) + "," + strconv.Itoa(h.NewLines) + " @@\n")
		for _, line := range h.Lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
