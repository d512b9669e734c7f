package agentlog

import "strings"

const (
	patchBegin = "*** Begin Patch"
	patchEnd   = "*** End Patch"
)

// patchChanges are what a patch in Codex's own form is meant to change. Its hunks have no line numbers.
func patchChanges(text, folder string) []fileChange {
	_, text, _ = strings.Cut(text, patchBegin)
	text, _, _ = strings.Cut(text, patchEnd)
	var all []fileChange
	var path, change string
	var body strings.Builder
	finish := func() {
		if path != "" {
			all = append(all, newChange(within(folder, path), change, body.String()))
		}
		body.Reset()
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "*** Add File: "):
			finish()
			path, change = line[len("*** Add File: "):], changeCreated
		case strings.HasPrefix(line, "*** Update File: "):
			finish()
			path, change = line[len("*** Update File: "):], changeModified
		case strings.HasPrefix(line, "*** Delete File: "):
			finish()
			path, change = line[len("*** Delete File: "):], changeDeleted
		case strings.HasPrefix(line, "*** Move to: "):
			path, change = line[len("*** Move to: "):], changeMoved
		case line != "" && strings.ContainsRune("+- @", rune(line[0])):
			body.WriteString(line + "\n")
		}
	}
	finish()
	return all
}

// patchTitle is the text of a call of a tool; of a patch, which the change of the files tells, its first file.
func patchTitle(text string) string {
	if !strings.Contains(text, patchBegin) {
		return text
	}
	changes := patchChanges(text, "")
	if len(changes) == 0 {
		return "a patch"
	}
	return changes[0].path
}
