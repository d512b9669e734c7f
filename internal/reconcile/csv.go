package reconcile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"sbx/internal/store"
)

// readCSV reads what `\copy ... csv header` and others write: any order of columns,
// any ending of lines.
func readCSV(name string, text []byte) ([]store.TaskRow, error) {
	rows := csv.NewReader(bytes.NewReader(text))
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty: not even a header is there")
	}
	if err != nil {
		return nil, csvError(name, err)
	}
	at, err := positions(header)
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
		t, err := task(func(column string) cell { return csvCell(fields[at[column]]) })
		if err != nil {
			line, _ := rows.FieldPos(0)
			return nil, lineError(name, line, err)
		}
		tasks = append(tasks, t)
	}
}

// csvError says at which line the format itself is broken.
func csvError(name string, err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return lineError(name, parse.Line, parse.Err)
	}
	return lineError(name, 1, err)
}

// positions finds the columns in a header.
func positions(header []string) (map[string]int, error) {
	at := map[string]int{}
	var twice error
	for i, word := range header {
		word = strings.ToLower(strings.TrimSpace(word))
		if _, known := at[word]; known {
			twice = fmt.Errorf("the column %q is there twice", word)
		}
		at[word] = i
	}
	if err := missingColumns(func(column string) bool { _, ok := at[column]; return ok }); err != nil {
		return nil, err
	}
	return at, twice
}

// csvCell reads NULL as Postgres writes it: nothing, or \N.
func csvCell(text string) cell {
	text = strings.TrimSpace(text)
	return cell{text, text == "" || text == `\N`}
}
