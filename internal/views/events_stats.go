package views

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sbx/internal/agentlog"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// EventStatsItem are the figures of a session of an agent.
type EventStatsItem struct {
	Session           string           `json:"session" table:""`             // What was read.
	Events            int              `json:"events" table:""`              // How many events it has.
	FirstAt           *time.Time       `json:"first_at" table:""`            // The time of the first event; null where none has a time.
	LastAt            *time.Time       `json:"last_at" table:""`             // The time of the last event; null where none has a time.
	DurationSeconds   *float64         `json:"duration_seconds" table:""`    // From the first event to the last one; null where none has a time.
	Turns             int64            `json:"turns" table:""`               // The highest number of a turn; 0 where no event says.
	Runs              int              `json:"runs" table:""`                // How often the agent started.
	Errors            int              `json:"errors" table:""`              // Events that report an error or an end without success.
	Heartbeats        int              `json:"heartbeats" table:""`          // How many came.
	MissedHeartbeats  int              `json:"missed_heartbeats" table:""`   // How many did not, where more than 75 s lie between two of the 30 s beat.
	LongestGapSeconds float64          `json:"longest_gap_seconds" table:""` // The longest time between two heartbeats.
	Success           *bool            `json:"success" table:""`             // What the last completed event says; null where there is none or it does not.
	ExitCode          *int64           `json:"exit_code" table:""`           // Likewise.
	StopReason        *string          `json:"stop_reason" table:""`         // Likewise.
	Cost              *float64         `json:"cost" table:""`                // Likewise, in the currency of the agent's account.
	Types             []EventCountItem `json:"types" table:""`               // Events by type, the most frequent first.
	Tools             []EventCountItem `json:"tools" table:""`               // Uses of tools, the most frequent first.
	Files             []FileChangeItem `json:"files" table:""`               // The files that were changed, by path.
	Usual             bool             `json:"usual" table:""`               // Whether it has the usual shape of a run: 44 to 71 events, 567 to 1,397 s, 18 to 45 heartbeats.
	Unusual           []string         `json:"unusual" table:""`             // What is outside that shape.
	SkippedLines      int              `json:"skipped_lines" table:""`       // How many lines of the file could not be read.
}

// EventCountItem is how often something came.
type EventCountItem struct {
	Name  string `json:"name"`  // The type or the tool.
	Count int    `json:"count"` // How often it came.
}

// FileChangeItem is what was changed in one file.
type FileChangeItem struct {
	File         string `json:"file"`          // Its path; empty where the events do not say.
	Edits        int    `json:"edits"`         // How many changes were reported.
	LinesAdded   *int64 `json:"lines_added"`   // Null where one of them does not say.
	LinesRemoved *int64 `json:"lines_removed"` // Null where one of them does not say.
}

// session is the figures of a result.
type session struct {
	agentlog.Stats

	name string
	lost int
}

func sessionOf(stats agentlog.Stats, r *look.EventsResult) session {
	return session{stats, r.Name, r.Lost()}
}

func (s session) item() EventStatsItem {
	i := EventStatsItem{
		Session: s.name, Events: s.Events, FirstAt: output.Time(s.First), LastAt: output.Time(s.Last), Turns: s.Turns, Runs: s.Runs, Errors: s.Errors,
		Heartbeats: s.Heartbeats.Count, MissedHeartbeats: s.Heartbeats.Missed, LongestGapSeconds: output.Seconds(s.Heartbeats.LongestGap),
		Types: countItems(s.Types), Tools: countItems(s.Tools), Files: []FileChangeItem{}, Unusual: append([]string{}, s.Unusual()...), SkippedLines: s.lost,
	}
	for _, f := range s.Files {
		i.Files = append(i.Files, fileChangeItem(f))
	}
	i.Usual = len(i.Unusual) == 0
	if !s.First.IsZero() {
		i.DurationSeconds = new(output.Seconds(s.Duration()))
	}
	if s.End != nil {
		i.Success, i.ExitCode, i.Cost = s.End.Success, s.End.ExitCode, s.End.Cost
		if s.End.StopReason != "" {
			i.StopReason = &s.End.StopReason
		}
	}
	return i
}

func countItems(counts []agentlog.Count) []EventCountItem {
	items := make([]EventCountItem, len(counts))
	for i, c := range counts {
		items[i] = EventCountItem(c)
	}
	return items
}

func fileChangeItem(f agentlog.FileChange) FileChangeItem {
	return FileChangeItem{f.Path, f.Edits, f.Added, f.Removed}
}

// EventStatsColumns are the columns of an EventStatsItem.
func EventStatsColumns() []output.Column[session] { return output.Columns(session.item) }

// ShowEventStats shows the figures of a session.
func ShowEventStats(ctx context.Context, p *output.Printer, schema string, r *look.EventsResult) error {
	warnOf(p, r)
	var c agentlog.Counter
	if err := r.Each(ctx, false, func(e *agentlog.Event, _ *agentlog.Beats) error { c.Add(e); return nil }); err != nil {
		return err
	}
	return output.ShowItem(p, output.ItemSpec[session]{Schema: schema, Columns: EventStatsColumns(), Human: statsSheet}, sessionOf(c.Stats(), r), r.Errors...)
}

// maxFiles is how many files a page names.
const maxFiles = 50

func statsSheet(s *output.Sheet, of session) {
	s.Field("session", of.name)
	s.Field("events", joinKnown(": ", thousands(of.Events), countText(of.Types)))
	if !of.First.IsZero() {
		s.Field("duration", sandbox.FormatDuration(of.Duration())+", from "+of.First.UTC().Format(time.RFC3339)+" to "+of.Last.UTC().Format(time.RFC3339))
	}
	s.Field("turns", of.Turns)
	s.Field("end", endText(of.End))
	s.Field("tools", noneIfEmpty(countText(of.Tools)))
	s.Field("heartbeats", of.Heartbeats.String())
	s.Field("errors", of.Errors)
	if of.Runs > 1 {
		s.Field("runs", of.Runs)
	}
	shape := "yes: 44 to 71 events, 567 to 1,397 s, 18 to 45 heartbeats"
	if unusual := of.Unusual(); len(unusual) > 0 {
		shape = "no: " + strings.Join(unusual, "; ")
	}
	s.Field("usual shape", shape)
	if of.lost > 0 {
		s.Field("left out", thousands(of.lost)+" lines that could not be read: nothing above counts them")
	}
	fileTable(s, of.Files)
}

func endText(end *agentlog.End) string {
	if end == nil {
		return "none was reported"
	}
	text := end.String()
	if text == "" {
		return "completed"
	}
	return text
}

func noneIfEmpty(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func fileTable(s *output.Sheet, files []agentlog.FileChange) {
	if len(files) == 0 {
		return
	}
	s.Section("Files")
	rows := make([][]any, 0, len(files))
	for _, f := range files[:min(len(files), maxFiles)] {
		rows = append(rows, []any{f.Path, f.Edits, f.Added, f.Removed})
	}
	s.Table([]string{"FILE", "EDITS", "ADDED", "REMOVED"}, rows)
	if more := len(files) - maxFiles; more > 0 {
		s.Text(fmt.Sprintf("and %d more; -o json has all", more))
	}
}
