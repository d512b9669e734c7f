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
	Usual             *bool            `json:"usual" table:""`               // Whether it has the usual shape of a run: 44 to 71 events, 567 to 1,397 s, 18 to 45 heartbeats; null for a transcript.
	Unusual           []string         `json:"unusual" table:""`             // What is outside that shape.
	SkippedLines      int              `json:"skipped_lines" table:""`       // How many lines of the file could not be read, or are of a type that is not known.
	Form              agentlog.Form    `json:"form" table:""`                // What the lines are: events, claude-code or codex; empty where none tells, and for a sandbox.
	Tokens            *TokensItem      `json:"tokens" table:""`              // What the model used, of a transcript; null where no line tells.
	CopiedLines       int              `json:"copied_lines" table:""`        // Lines that are left out as history of the session that this one was forked from.
	RepeatedLines     int              `json:"repeated_lines" table:""`      // Lines that are left out since they came before.
}

// TokensItem is what the calls of a model used. The figures do not overlap.
type TokensItem struct {
	Calls      int    `json:"calls"`       // Answers of the model; of Codex how often its figure grew.
	Input      int64  `json:"input"`       // Tokens that were read and not cached.
	CacheRead  int64  `json:"cache_read"`  // Tokens that were read from the cache.
	CacheWrite int64  `json:"cache_write"` // Tokens that were written into the cache; 0 at Codex, which does not tell it.
	Output     int64  `json:"output"`      // Tokens that were written, with what the model thought.
	Rule       string `json:"rule"`        // How they were counted.
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

	*agentlog.Session

	name string
}

func sessionOf(stats agentlog.Stats, r *look.EventsResult) session {
	return session{stats, r.Session, r.Name}
}

// isTranscript says that an agent wrote the session for itself: it has no heartbeats, and its events are not those of OmoiOS.
func (s session) isTranscript() bool {
	return s.Form == agentlog.FormClaudeCode || s.Form == agentlog.FormCodex
}

func (s session) item() EventStatsItem {
	i := EventStatsItem{
		Session: s.name, Events: s.Stats.Events, FirstAt: output.Time(s.First), LastAt: output.Time(s.Last), Turns: s.Turns, Runs: s.Runs, Errors: s.Errors,
		Heartbeats: s.Heartbeats.Count, MissedHeartbeats: s.Heartbeats.Missed, LongestGapSeconds: output.Seconds(s.Heartbeats.LongestGap),
		Types: countItems(s.Types), Tools: countItems(s.Tools), Files: []FileChangeItem{}, Unusual: []string{}, SkippedLines: s.Lost(),
		Form: s.Form, CopiedLines: s.Copied.Count, RepeatedLines: s.Repeated.Count,
	}
	if s.Tokens != nil {
		i.Tokens = new(TokensItem(*s.Tokens))
	}
	for _, f := range s.Files {
		i.Files = append(i.Files, fileChangeItem(f))
	}
	if !s.isTranscript() {
		i.Unusual = append(i.Unusual, s.Unusual()...)
		i.Usual = new(len(i.Unusual) == 0)
	}
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
	if of.isTranscript() {
		s.Field("form", of.Form.Title())
	}
	s.Field("events", joinKnown(": ", thousands(of.Stats.Events), countText(of.Types)))
	if !of.First.IsZero() {
		s.Field("duration", sandbox.FormatDuration(of.Duration())+", from "+of.First.UTC().Format(time.RFC3339)+" to "+of.Last.UTC().Format(time.RFC3339))
	}
	s.Field("turns", turnsText(of))
	s.Field("end", endText(of.End))
	s.Field("tools", noneIfEmpty(countText(of.Tools)))
	s.Field("errors", of.Errors)
	if of.isTranscript() {
		s.Field("tokens", tokensText(of.Tokens))
		if of.Tokens != nil {
			s.Field("counted by", of.Tokens.Rule)
		}
	} else {
		s.Field("heartbeats", of.Heartbeats.String())
	}
	if of.Runs > 1 {
		s.Field("runs", of.Runs)
	}
	if !of.isTranscript() {
		s.Field("usual shape", shapeText(of.Unusual()))
	}
	if left := leftOutText(of); left != "" {
		s.Field("left out", left+": nothing above counts them")
	}
	fileTable(s, of.Files)
}

func shapeText(unusual []string) string {
	if len(unusual) > 0 {
		return "no: " + strings.Join(unusual, "; ")
	}
	return "yes: 44 to 71 events, 567 to 1,397 s, 18 to 45 heartbeats"
}

// leftOutText is "2 lines that could not be read, 12 copied ones".
func leftOutText(of session) string {
	number := func(n int, what string) string {
		switch n {
		case 0:
			return ""
		case 1:
			return "1 line " + what
		}
		return thousands(n) + " lines " + what
	}
	return joinKnown(", ", number(of.Lost(), "that could not be read"), number(of.Copied.Count, "copied from another session"), number(of.Repeated.Count, "that came before"))
}

// turnsText is the number of turns. A transcript numbers none.
func turnsText(of session) string {
	if of.Turns == 0 && of.isTranscript() {
		return notKnown
	}
	return thousands(int(of.Turns))
}

// tokensText is "1,200 read, 90,000 from the cache, 300 into the cache, 4,000 written in 12 calls".
func tokensText(t *agentlog.Tokens) string {
	if t == nil {
		return notKnown
	}
	written := ""
	if t.CacheWrite > 0 {
		written = thousands(int(t.CacheWrite)) + " into the cache, "
	}
	calls := "1 call"
	if t.Calls != 1 {
		calls = thousands(t.Calls) + " calls"
	}
	return fmt.Sprintf("%s read, %s from the cache, %s%s written in %s", thousands(int(t.Input)), thousands(int(t.CacheRead)), written, thousands(int(t.Output)), calls)
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
