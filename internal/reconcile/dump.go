package reconcile

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sbx/internal/fault"
	"sbx/internal/jsontext"
	"sbx/internal/store"
)

// MaxDump is the greatest size of a dump in bytes: some millions of tasks.
const MaxDump = 1 << 29

// dumpColumns are the columns that a dump must have; others are ignored.
func dumpColumns() []string {
	return []string{"id", "status", "sandbox_id", "keep_alive", "max_duration", "created_at", "updated_at", "completed_at", "deleted_at"}
}

func dumpQuery() string {
	return "select " + strings.Join(dumpColumns(), ", ") + " from tasks where sandbox_id is not null"
}

// ReadDump reads a dump of the table `tasks`: CSV with a header, or one JSON object per
// line, by the ending of its name. It returns all rows, or fault.KindUsage that names file
// and line.
func ReadDump(name string, r io.Reader) ([]store.TaskRow, error) {
	var read func(string, []byte) ([]store.TaskRow, error)
	switch strings.ToLower(path.Ext(name)) {
	case ".csv":
		read = readCSV
	case ".jsonl", ".ndjson":
		read = readJSONL
	default:
		return nil, fault.Usage("%s: the name of a dump must end in .csv or .jsonl", name).WithHint("make one with: %s", dumpQuery())
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

func lineError(name string, line int, err error) error {
	return fault.Usage("%s:%d: %w", name, line, err).WithHint("no row of an invalid dump is used; make one with: %s", dumpQuery())
}

// missingColumns names the columns that a header or an object lacks.
func missingColumns(has func(string) bool) error {
	missing := slices.DeleteFunc(dumpColumns(), has)
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("no column %s", strings.Join(missing, ", "))
}

// cell is one value of a dump; absent = NULL.
type cell struct {
	text   string
	absent bool
}

// parseTaskRow parses one row; of returns the cell of a column.
func parseTaskRow(of func(string) cell) (store.TaskRow, error) {
	var t store.TaskRow
	var errs []error
	try := func(column string, read func(cell) error) {
		if err := read(of(column)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", column, err))
		}
	}
	try("id", parseWord(&t.ID))
	try("status", parseWord(&t.Status))
	try("sandbox_id", nullable(parseWord(&t.SandboxID)))
	try("keep_alive", nullable(parseBool(&t.KeepAlive))) // the application treats NULL as false
	try("max_duration", nullable(parseMinutes(&t.MaxDurationMinutes)))
	try("created_at", parseTimestamp(&t.CreatedAt))
	try("updated_at", parseTimestamp(&t.UpdatedAt))
	try("completed_at", nullable(parseTimestamp(&t.CompletedAt)))
	try("deleted_at", nullable(parseTimestamp(&t.DeletedAt)))
	if len(errs) > 0 {
		return store.TaskRow{}, errs[0]
	}
	return t, nil
}

var errNull = errors.New("it must not be empty")

// readCSV reads the output of `\copy ... csv header` and similar: any order of columns, any
// line end.
func readCSV(name string, text []byte) ([]store.TaskRow, error) {
	rows := csv.NewReader(bytes.NewReader(text))
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty: even the header is missing")
	}
	if err != nil {
		return nil, csvError(name, err)
	}
	at, err := columnPositions(header)
	if err != nil {
		return nil, lineError(name, 1, err)
	}
	tasks := []store.TaskRow{}
	for {
		fields, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return tasks, nil
		}
		if err != nil {
			return nil, csvError(name, err)
		}
		t, err := parseTaskRow(func(column string) cell { return csvCell(fields[at[column]]) })
		if err != nil {
			line, _ := rows.FieldPos(0)
			return nil, lineError(name, line, err)
		}
		tasks = append(tasks, t)
	}
}

// csvError names the line at which the format is broken.
func csvError(name string, err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return lineError(name, parse.Line, parse.Err)
	}
	return lineError(name, 1, err)
}

func columnPositions(header []string) (map[string]int, error) {
	at := map[string]int{}
	var twice error
	for i, word := range header {
		word = strings.ToLower(strings.TrimSpace(word))
		if _, known := at[word]; known {
			twice = fmt.Errorf("the column %q occurs twice", word)
		}
		at[word] = i
	}
	if err := missingColumns(func(column string) bool { _, ok := at[column]; return ok }); err != nil {
		return nil, err
	}
	return at, twice
}

// csvCell treats NULL as Postgres writes it: nothing, or \N.
func csvCell(text string) cell {
	text = strings.TrimSpace(text)
	return cell{text, text == "" || text == `\N`}
}

// readJSONL reads one object per line, as `row_to_json` and jq -c write them. Empty lines
// are ignored.
func readJSONL(name string, text []byte) ([]store.TaskRow, error) {
	tasks := []store.TaskRow{}
	for n := 1; len(text) > 0; n++ {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		t, err := jsonTask(line)
		if err != nil {
			return nil, lineError(name, n, err)
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

func jsonTask(line []byte) (store.TaskRow, error) {
	if line[0] != '{' {
		return store.TaskRow{}, errors.New("not a JSON object; each line must be one")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return store.TaskRow{}, fmt.Errorf("not a JSON object: %s", jsontext.Describe(err))
	}
	if err := missingColumns(func(column string) bool { _, ok := fields[column]; return ok }); err != nil {
		return store.TaskRow{}, err
	}
	cells := map[string]cell{}
	for _, column := range dumpColumns() {
		c, err := jsonCell(fields[column])
		if err != nil {
			return store.TaskRow{}, fmt.Errorf("%s: %w", column, err)
		}
		cells[column] = c
	}
	return parseTaskRow(func(column string) cell { return cells[column] })
}

// jsonCell accepts a string, a number, a boolean or null.
func jsonCell(raw json.RawMessage) (cell, error) {
	switch raw[0] {
	case '{', '[':
		return cell{}, errors.New("not a text, a number or a boolean")
	case 'n':
		return cell{absent: true}, nil
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return cell{}, err
		}
		text = strings.TrimSpace(text)
		return cell{text, text == ""}, nil
	}
	return cell{text: string(raw)}, nil
}

// maxMinutes keeps a duration inside the calendar: ten years.
const maxMinutes = 10 * 366 * 24 * 60

// nullable keeps the zero value for NULL.
func nullable(read func(cell) error) func(cell) error {
	return func(c cell) error {
		if c.absent {
			return nil
		}
		return read(c)
	}
}

// parseWord parses a text without white space or control characters: an id, a status.
func parseWord(to *string) func(cell) error {
	return func(c cell) error {
		switch {
		case c.absent:
			return errNull
		case !utf8.ValidString(c.text) || strings.ContainsFunc(c.text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
			return fmt.Errorf("%q is not one word", c.text)
		}
		*to = c.text
		return nil
	}
}

func parseBool(to *bool) func(cell) error {
	return func(c cell) error {
		switch strings.ToLower(c.text) {
		case "t", "true":
			*to = true
		case "f", "false":
			*to = false
		default:
			return fmt.Errorf("%q is neither t nor f", c.text)
		}
		return nil
	}
}

func parseMinutes(to *int) func(cell) error {
	return func(c cell) error {
		n, err := strconv.Atoi(c.text)
		if err != nil || n < 0 || n > maxMinutes {
			return fmt.Errorf("%q is not a number of minutes", c.text)
		}
		*to = n
		return nil
	}
}

// parseTimestamp parses a timestamp of Postgres or of RFC 3339. One without a zone is UTC,
// as in the application's columns.
func parseTimestamp(to *time.Time) func(cell) error {
	return func(c cell) error {
		if c.absent {
			return errNull
		}
		text := c.text
		if len(text) > len("2006-01-02") && text[len("2006-01-02")] == 'T' {
			text = text[:len("2006-01-02")] + " " + text[len("2006-01-02T"):]
		}
		for _, layout := range []string{"", "Z07:00", "Z0700", "-07"} {
			at, err := time.Parse("2006-01-02 15:04:05"+layout, text)
			if err == nil && at.Year() > 1 {
				*to = at.UTC()
				return nil
			}
		}
		return errors.New("not a time: " + strconv.Quote(c.text))
	}
}
