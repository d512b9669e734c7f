package wiretest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// identityKeys are the fields of all APIs that identify a sandbox.
func identityKeys() []string {
	return []string{"id", "Id", "sandboxID", "clientID", "name", "uid", "currentSessionId", "sourceSandboxName"}
}

// identified is the part of a row that has its identity: the row, or its metadata.
func identified(row map[string]any) map[string]any {
	if meta, ok := row["metadata"].(map[string]any); ok && meta["uid"] != nil {
		return meta
	}
	return row
}

// oddDays are answers that another version of an API, or another implementation of it, gives: what is not
// needed is of another type, and the end of a list has no mark.
func oddDays() []BadDay {
	fields := func(name string, edit func(v any) any) BadDay {
		return BadDay{Name: name, Odd: true, Edit: func(_ Subject, body []byte) []byte { return editFields(body, edit) }}
	}
	return []BadDay{
		fields(oddTimes, func(v any) any {
			text, _ := v.(string)
			if at, err := time.Parse(time.RFC3339, text); err == nil {
				return at.Format(time.DateTime)
			}
			return v
		}),
		fields("fields of another type", func(v any) any {
			switch v.(type) {
			case string, map[string]any:
				return 7
			default:
				return "odd"
			}
		}),
		fields("fields that are lists", func(any) any { return []any{"odd", 7} }),
		fields("fields that are objects", func(any) any { return map[string]any{"odd": 7, "at": "noon"} }),
		{Name: "a full page without a mark", Full: true, List: fault.KindUnavailable, Edit: fillPage},
	}
}

// editFields edits the fields of every sandbox in an answer, but for those that identify it.
func editFields(body []byte, edit func(v any) any) []byte {
	var whole any
	if json.Unmarshal(body, &whole) != nil {
		return body
	}
	visitSandboxes(whole, func(row map[string]any) {
		for key, value := range row {
			held, isObject := value.(map[string]any)
			if !slices.Contains(identityKeys(), key) && (!isObject || !isSandbox(held)) {
				row[key] = edit(value)
			}
		}
	})
	text, err := json.Marshal(whole)
	if err != nil {
		return body
	}
	return text
}

func visitSandboxes(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, row := range v {
			visitSandboxes(row, visit)
		}
	case map[string]any:
		for _, held := range v {
			visitSandboxes(held, visit)
		}
		if isSandbox(v) {
			visit(v)
		}
	}
}

func isSandbox(row map[string]any) bool {
	return slices.ContainsFunc(identityKeys(), func(key string) bool { _, has := identified(row)[key]; return has })
}

// fillPage makes a page as long as was asked for, and removes the marks of its end.
func fillPage(s Subject, body []byte) []byte {
	var whole any
	if json.Unmarshal(body, &whole) != nil {
		return body
	}
	rows, _ := whole.([]any)
	held, isObject := whole.(map[string]any)
	list := ""
	if isObject {
		for key, value := range held {
			if found, is := value.([]any); is {
				rows, list = found, key
			}
		}
		for _, mark := range s.Marks {
			delete(held, mark)
		}
	}
	for n := len(rows); n < s.Asked && n > 0; n++ {
		first, _ := rows[0].(map[string]any)
		row := maps.Clone(first)
		for _, key := range identityKeys() {
			if id, is := row[key].(string); is {
				row[key] = fmt.Sprintf("%s%d", id, n)
			}
		}
		rows = append(rows, row)
	}
	if whole = any(rows); isObject {
		held[list] = rows
		whole = held
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return body
	}
	return text
}

// checkFull lists while the first page is full and nothing says whether it is the last.
func (d BadDay) checkFull(ctx context.Context, t T, s Subject) {
	t.Helper()
	if s.Asked == 0 {
		return
	}
	var rows int
	var err error
	d.runDuring(ctx, s, s.List, "", func(ctx context.Context) { rows, err = countRows(ctx, s.P) })
	d.checkError(t, s, "list", d.List, err)
	assert.Equal(t, s.Asked, rows, "the rows of the page are given")
}

// checkOdd reads and terminates while fields are odd: each sandbox is there, what cannot be read is unknown, and it
// can be terminated by its id.
func (d BadDay) checkOdd(ctx context.Context, t T, s Subject) {
	t.Helper()
	ages := map[string]time.Duration{}
	for box, err := range s.P.List(ctx, providers.Query{}) {
		if assert.NoError(t, err) {
			ages[box.ID], _ = box.Age(time.Now())
		}
	}
	var found []sandbox.Sandbox
	d.runDuring(ctx, s, s.List, "", func(ctx context.Context) {
		for box, err := range s.P.List(ctx, providers.Query{}) {
			if assert.NoError(t, err, d.Name) {
				found = append(found, box)
			}
		}
	})
	assert.Len(t, found, s.Rows, "%s: rows are lost", d.Name)
	d.runDuring(ctx, s, s.Get, "", func(ctx context.Context) {
		box, err := s.P.Get(ctx, s.ID)
		if assert.NoError(t, err, d.Name) {
			found = append(found, box)
		}
	})
	for _, box := range found {
		if age, source := box.Age(time.Now()); source != sandbox.AgeUnknown {
			assert.InDelta(t, ages[box.ID], age, float64(time.Minute), "%s: %s gives another age", d.Name, source)
		}
		if d.Name != oddTimes {
			assert.False(t, box.State.Ended(), "%s: ended by a state that nobody can read", d.Name)
		}
	}
	d.runDuring(ctx, s, s.Get, "", func(ctx context.Context) {
		assert.NoError(t, s.P.Terminate(ctx, s.ID, providers.TerminateOptions{}), "%s: it cannot be terminated", d.Name)
	})
}

// oddTimes is the day on which only times are odd.
const oddTimes = "times as a database writes them"
