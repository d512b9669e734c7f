package reconcile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sbx/internal/store"
)

// readJSONL reads one object a line, as `row_to_json` and jq -c write them. Empty
// lines are nothing.
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
		return store.TaskRow{}, errors.New("it is no JSON object; each line must be one")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return store.TaskRow{}, fmt.Errorf("it is no JSON object: %w", err)
	}
	if err := missingColumns(func(column string) bool { _, ok := fields[column]; return ok }); err != nil {
		return store.TaskRow{}, err
	}
	cells := map[string]cell{}
	for _, column := range columns() {
		c, err := jsonCell(fields[column])
		if err != nil {
			return store.TaskRow{}, fmt.Errorf("%s: %w", column, err)
		}
		cells[column] = c
	}
	return task(func(column string) cell { return cells[column] })
}

// jsonCell takes a string, a number, a truth or null.
func jsonCell(raw json.RawMessage) (cell, error) {
	switch raw[0] {
	case '{', '[':
		return cell{}, errors.New("it is neither text nor number nor truth")
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
