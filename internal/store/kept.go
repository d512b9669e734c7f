package store

import (
	"maps"
	"strings"
	"time"
)

// kept is a time as a store keeps it: UTC, whole microseconds.
func kept(at time.Time) time.Time { return read(micros(at)) }

// micros is a time as a column: microseconds since 1970, 0 for none.
func micros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

// read is the time in a column.
func read(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// text is a text as every store can keep it. Names come from APIs; Postgres takes
// neither NUL nor broken UTF-8, and no sandbox may stay unrecorded for its name.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// textOf is text for a body: empty = nil, and it shares nothing with the original.
func textOf(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	return []byte(text(string(body)))
}

func (r Record) kept() Record {
	for _, field := range []*string{&r.Provider, &r.ID, &r.TaskID, &r.AgentType, &r.Owner, &r.Host, &r.Reason} {
		*field = text(*field)
	}
	r.CreatedAt, r.UpdatedAt, r.EndedAt = kept(r.CreatedAt), kept(r.UpdatedAt), kept(r.EndedAt)
	return r
}

// kept shares nothing with the original; what was nil is empty.
func (r Run) kept() Run {
	for _, field := range []*string{&r.ID, &r.Verb, &r.Layer, &r.Host, &r.Who} {
		*field = text(*field)
	}
	r.StartedAt, r.EndedAt = kept(r.StartedAt), kept(r.EndedAt)
	counts := make(map[string]int, len(r.Counts))
	maps.Copy(counts, r.Counts)
	r.Counts = counts
	r.Profiles = append([]string{}, r.Profiles...)
	return r
}

func (t Task) kept() Task {
	for _, field := range []*string{&t.ID, &t.Key, &t.Spec, &t.State, &t.Owner, &t.Budget} {
		*field = text(*field)
	}
	for _, at := range []*time.Time{&t.LeaseUntil, &t.CreatedAt, &t.UpdatedAt, &t.ReadAt} {
		*at = kept(*at)
	}
	t.Body = textOf(t.Body)
	return t
}

func (d Doc) kept() Doc {
	d.Kind, d.Key, d.Body = text(d.Kind), text(d.Key), textOf(d.Body)
	d.UpdatedAt, d.ReadAt = kept(d.UpdatedAt), kept(d.ReadAt)
	return d
}
