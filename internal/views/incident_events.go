package views

import (
	"cmp"
	"fmt"
	"strings"

	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/ops/incidents"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// EventText is one line about an event.
func EventText(e incidents.IncidentEvent) string {
	switch {
	case e.Said != nil:
		return saidText(*e.Said)
	case e.Step != nil:
		return stepText(*e.Step)
	case e.Told != nil:
		return joinKnown("; ", e.Told.Why, toldText(*e.Told))
	case e.Seen != nil:
		return joinKnown("; ", e.Verb, figuresText(e.Seen.Figures), causeText(e.Seen.Causes), flagsText(*e.Seen), e.Seen.Text, errorsText(e.Seen.Errors))
	}
	return joinKnown("; ", e.Verb, actsText(e.Acts))
}

func saidText(e incident.Event) string {
	switch e.Kind {
	case incident.Started:
		if e.Start != nil {
			return joinKnown("; ", e.Start.Title, prefixed("alert ", e.Start.Alert), prefixed("runbook ", e.Start.Runbook))
		}
	case incident.Closed:
		return joinKnown(": ", "as "+e.As, e.Text)
	case incident.Noted, incident.Acknowledged:
	}
	return joinKnown(": ", prefixed("it was ", string(e.Milestone)), prefixed("answer to ", e.Question), e.Text)
}

// toldText says who was told, or who is to be called: "told" is only what was sent.
func toldText(e incidents.Escalation) string {
	to := strings.Join(e.To, ", ")
	if e.Call {
		return "to be called: " + to
	}
	return joinKnown("; ", prefixed("told ", to), prefixed("not sent: ", e.Error))
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func figuresText(figures []history.Figure) string {
	var parts []string
	for _, f := range figures {
		if f.Value != nil {
			parts = append(parts, fmt.Sprintf("%s %d", f.Name, *f.Value))
		}
	}
	return strings.Join(parts, ", ")
}

// actsText counts the outcomes of acts.
func actsText(acts []runs.Act) string {
	counts := map[string]int{}
	var words []string
	for _, a := range acts {
		word := a.Action + " " + cmp.Or(string(a.Outcome), "outcome unknown")
		if counts[word]++; counts[word] == 1 {
			words = append(words, word)
		}
	}
	if len(acts) == 1 {
		return acts[0].Ref.String() + " " + words[0]
	}
	for i, word := range words {
		words[i] = fmt.Sprintf("%s %d", word, counts[word])
	}
	return strings.Join(words, ", ")
}

func causeText(causes []history.Cause) string {
	if len(causes) == 0 {
		return ""
	}
	return fmt.Sprintf("cause: %s (%s)", causes[0].Title, causes[0].Confidence)
}

// flagsText counts flags, and names the targets that are missed.
func flagsText(e history.Event) string {
	var parts, missed []string
	if n := len(e.Flags); n > 0 {
		parts = append(parts, fmt.Sprintf("%d flags", n))
	}
	for _, c := range e.Targets {
		if c.Verdict == sandbox.False {
			missed = append(missed, c.Title)
		}
	}
	if len(e.Targets) > 0 {
		parts = append(parts, joinKnown(": ", fmt.Sprintf("%d of %d targets missed", len(missed), len(e.Targets)), strings.Join(missed, ", ")))
	}
	return strings.Join(parts, ", ")
}

func errorsText(errs []string) string {
	if len(errs) > 1 {
		return fmt.Sprintf("%s (and %d more errors)", errs[0], len(errs)-1)
	}
	return strings.Join(errs, "")
}

func stepText(s incidents.Step) string {
	text := fmt.Sprintf("%s: %s: %s", stepLabel(s.Number, s.Word, s.ID), s.Title, strings.ReplaceAll(s.State, "_", " "))
	if s.Verdict != "" {
		text += ", " + s.Verdict
	}
	return joinKnown("; ", text, s.Text, prefixed("answer: ", s.Answer))
}
