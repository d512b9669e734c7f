package runbook

import (
	"slices"
	"strings"
	"time"

	"sbx/internal/ops/look"
	"sbx/internal/requirement"
)

// Without is how a person does it who has no sbx; "" = not at all.
func (a Act) Without() string {
	switch {
	case a.Action == "terminate":
		return "end each one in the console of the provider, and look that it is gone; MonoTask: `DELETE /api/sandbox/{id}`, then `GET` of the same until it answers 404"
	case a.Emergency:
		return "MonoTask: `POST /api/sandbox/cleanup/emergency` with the admin token"
	case a.Action == "cleanup":
		return "end each one that the rule selects, and go on after a failure; MonoTask: `POST /api/sandbox/cleanup` with the admin token"
	case a.Action == "reconcile":
		return "compare the list of records with the list of sandboxes, twice; then correct the records and end the orphans by hand"
	}
	return ""
}

// Command is the line that a person types for a step, with placeholders in it; "" = none.
func (a Act) Command() string {
	words := []string{"sbx", string(a.Action)}
	switch a.Action {
	case "terminate":
		words = append(words, "REF...")
	case "stop":
		words = append(words, "TASK...")
	case "reconcile":
		words = append(words, "--fix")
	}
	add := func(given bool, more ...string) {
		if given {
			words = append(words, more...)
		}
	}
	add(a.Stuck, "--stuck")
	add(a.OlderThan != "", "--older-than", a.OlderThan)
	add(a.IncludeFailed, "--include-failed")
	add(a.IdleFor != "", "--idle-for", a.IdleFor)
	add(a.Where != "", "--where", "'"+string(a.Where)+"'")
	add(a.IfUsageAbove != "", "--if-usage-above", a.IfUsageAbove)
	add(a.Emergency, "--emergency")
	add(a.Records != "", "--records", string(a.Records))
	return strings.Join(words, " ")
}

// options are the keys that an action takes.
func (a Act) options() []string {
	switch a.Action {
	case "terminate", "stop":
		return []string{"targets"}
	case "cleanup":
		return []string{"stuck", "older_than", "include_failed", "idle_for", "where", "if_usage_above", "emergency"}
	}
	return []string{"records"}
}

// Lines are the command lines of a step, with placeholders in them.
func (s Step) Lines() []string {
	var lines []string
	for _, id := range s.Collect {
		if c, ok := findCollector(id); ok {
			lines = append(lines, "sbx "+c.Command)
		}
	}
	if s.Act != nil {
		lines = append(lines, s.Act.Command())
	}
	return append(lines, s.Commands...)
}

// Heading is the title of a step, its own or that of what it names.
func (s Step) Heading() string {
	if s.Title != "" {
		return s.Title
	}
	if len(s.Collect) == 1 {
		c, _ := findCollector(s.Collect[0])
		return c.Title
	}
	if f, ok := s.figure(); ok {
		return capitalize(f.Title)
	}
	if r, ok := s.CheckedAlert(); ok {
		return capitalize(r.Title)
	}
	return ""
}

func capitalize(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// Duration is how long a step takes a person.
func (s Step) Duration() time.Duration {
	if s.ETA == 0 && len(s.Collect) == 1 {
		c, _ := findCollector(s.Collect[0])
		return c.ETA
	}
	return s.ETA
}

// Requirements are those that what a step names answers.
func (s Step) Requirements() []string {
	var rows []string
	for _, q := range look.InvestigationQuestions() {
		if slices.Contains(s.Collect, Word(q.Step)) {
			rows = append(rows, requirement.Of(q.ID))
		}
	}
	if f, ok := s.figure(); ok {
		rows = append(rows, requirement.Of(f.ID))
	}
	if r, ok := s.CheckedAlert(); ok {
		rows = append(rows, requirement.Of(r.ID))
	}
	return rows
}

// Questions are the questions of the investigation that a step answers.
func (s Step) Questions() []look.InvestigationQuestion {
	return slices.DeleteFunc(look.InvestigationQuestions(), func(q look.InvestigationQuestion) bool { return !slices.Contains(s.Collect, Word(q.Step)) })
}
