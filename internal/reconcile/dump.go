package reconcile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// MaxDump is how many bytes a dump may have: some millions of tasks.
const MaxDump = 1 << 29

// columns are what a dump must hold; others are ignored.
func columns() []string {
	return []string{"id", "status", "sandbox_id", "keep_alive", "max_duration", "created_at", "updated_at", "completed_at", "deleted_at"}
}

// query makes a dump, for hints.
func query() string {
	return "select " + strings.Join(columns(), ", ") + " from tasks where sandbox_id is not null"
}

// ReadDump reads a dump of the table `tasks`: CSV with a header, or one JSON object
// a line, by the ending of its name. It gives every row or an error, which is
// fault.KindUsage and names file and line; a part of a dump is never given.
func ReadDump(name string, r io.Reader) ([]store.TaskRow, error) {
	var read func(string, []byte) ([]store.TaskRow, error)
	switch strings.ToLower(path.Ext(name)) {
	case ".csv":
		read = readCSV
	case ".jsonl", ".ndjson":
		read = readJSONL
	default:
		return nil, fault.Usage("%s: a dump is called .csv or .jsonl", name).WithHint("make one with: %s", query())
	}
	text, err := io.ReadAll(io.LimitReader(r, MaxDump+1))
	switch {
	case err != nil:
		return nil, fault.Usage("%s: %w", name, err)
	case len(text) > MaxDump:
		return nil, fault.Usage("%s: larger than %d MiB", name, MaxDump>>20)
	}
	return read(name, bytes.TrimPrefix(text, []byte("\ufeff")))
}

// lineError is what is wrong with one line of a dump.
func lineError(name string, line int, err error) error {
	return fault.Usage("%s:%d: %w", name, line, err).WithHint("nothing of a broken dump is used; make one with: %s", query())
}

// missingColumns names what a header or an object lacks.
func missingColumns(has func(string) bool) error {
	missing := slices.DeleteFunc(columns(), has)
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("no column %s", strings.Join(missing, ", "))
}

// cell is one value as its format has it; absent = NULL.
type cell struct {
	text   string
	absent bool
}

// task reads one row; the function gives the cell of a column.
func task(of func(string) cell) (store.TaskRow, error) {
	var t store.TaskRow
	var errs []error
	try := func(column string, read func(cell) error) {
		if err := read(of(column)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", column, err))
		}
	}
	try("id", word(&t.ID))
	try("status", word(&t.Status))
	try("sandbox_id", optional(word(&t.SandboxID)))
	try("keep_alive", optional(boolean(&t.KeepAlive))) // the application takes NULL for false
	try("max_duration", optional(minutes(&t.MaxDurationMinutes)))
	try("created_at", stamp(&t.CreatedAt))
	try("updated_at", stamp(&t.UpdatedAt))
	try("completed_at", optional(stamp(&t.CompletedAt)))
	try("deleted_at", optional(stamp(&t.DeletedAt)))
	if len(errs) > 0 {
		return store.TaskRow{}, errs[0]
	}
	return t, nil
}

var errNull = errors.New("it must not be empty")
