package agentlog

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// fileChange is what a tool changed in a file.
type fileChange struct {
	path, change   string // change is created, modified, deleted or moved
	added, removed int64
	known          bool   // the lines are counted
	diff           string // unified; "" = it is not told
}

// newChange is a change whose body, the lines of its hunks, is told.
func newChange(path, change, body string) fileChange {
	c := fileChange{path: path, change: change, known: body != "" || change == changeCreated}
	for line := range strings.Lines(body) {
		switch line[0] {
		case '+':
			c.added++
		case '-':
			c.removed++
		}
	}
	name := strings.TrimPrefix(path, "/")
	from, to := "a/"+name, "b/"+name
	switch change {
	case changeCreated:
		from = "/dev/null"
	case changeDeleted:
		to = "/dev/null"
	}
	if body != "" {
		c.diff = "--- " + from + "\n+++ " + to + "\n" + body
	}
	return c
}

const (
	changeCreated  = "created"
	changeModified = "modified"
	changeDeleted  = "deleted"
	changeMoved    = "moved"
)

// wholeFile are the hunks that add all lines of a file with the sign +, or remove them with -.
func wholeFile(sign byte, content string) string {
	if content == "" {
		return ""
	}
	lines := strings.Count(content, "\n")
	if !strings.HasSuffix(content, "\n") {
		lines++
	}
	span := "0,0 +1," + strconv.Itoa(lines)
	if sign == '-' {
		span = "1," + strconv.Itoa(lines) + " +0,0"
	}
	var b strings.Builder
	b.Grow(len(content) + lines + 64)
	b.WriteString("@@ -" + span + " @@\n")
	for line := range strings.Lines(content) {
		b.WriteByte(sign)
		b.WriteString(line)
	}
	if !strings.HasSuffix(content, "\n") {
		b.WriteString("\n\\ No newline at end of file\n")
	}
	return b.String()
}

// changeSteps are the events of changes of files.
func changeSteps(changes []fileChange, id, source string, at time.Time, from origin) []step {
	steps := make([]step, 0, len(changes))
	for _, c := range changes {
		var d data
		d.text("file_path", c.path)
		d.text("change_type", c.change)
		if c.known {
			d.number("lines_added", c.added)
			d.number("lines_removed", c.removed)
		}
		d.text("full_diff", c.diff)
		steps = append(steps, step{Raw: Raw{ID: joinID(id, c.path), Type: FileEdited, Source: source, At: at, Data: d.end()}, echo: "change\x00" + c.path, origin: from})
	}
	return steps
}

// within is a path as seen from the folder in which the session began; one outside it is as it was.
func within(folder, path string) string {
	if folder == "" || !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
