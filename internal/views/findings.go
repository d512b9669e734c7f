package views

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// briefProofs is how many observations of a cause its page shows.
const briefProofs = 4

// addCauses ranks causes; of each after the first it says why not. Full adds the source of each observation,
// and what is not known.
func addCauses(s *output.Sheet, causes []triage.Finding, full bool) {
	for n, c := range causes {
		if n > 0 && c.WhyNot != "" && !look.OfGroup(c) {
			if !full {
				c.WhyNot, _, _ = strings.Cut(c.WhyNot, "; not known: ")
			}
			s.FieldTone("why not", whyNotText(c), output.Plain)
			continue
		}
		text := c.Title
		if c.ID != "exit" {
			text += fmt.Sprintf(" (score %s, coverage %s)", Decimal(c.Score, 2), Decimal(c.Coverage, 2))
		}
		if full || c.ID == "exit" {
			text = ClaimWithEvidence(text, c.Evidence)
		} else {
			text = joinKnown(": ", text, joinEvidence(c.Evidence[:min(briefProofs, len(c.Evidence))]))
		}
		s.FieldTone(string(c.Confidence), text, ConfidenceTone(c.Confidence))
		if c.WhyNot != "" {
			s.Field("", c.WhyNot)
		}
	}
}

// WhyNotSecond says what speaks against the second of the ranked causes: "out of memory: ..."; "" = there is none,
// or nothing is known against it.
func WhyNotSecond(causes []triage.Finding) string {
	if len(causes) < 2 || causes[1].WhyNot == "" {
		return ""
	}
	return whyNotText(causes[1])
}

func whyNotText(c triage.Finding) string { return c.Title + ": " + c.WhyNot }

// addFlags has the flags that hold, and those that are not known. Those of age and silence, whose
// figures stand in the verdict, share a line unless full.
func addFlags(s *output.Sheet, flags []triage.Flag, full bool) {
	var weighed, unknown []string
	worst := triage.Warning
	for _, f := range flags {
		switch {
		case f.Verdict == sandbox.Unknown:
			unknown = append(unknown, f.Say)
		case f.Verdict != sandbox.True:
		case full || f.IsProblem():
			s.FieldTone(string(f.Severity), ClaimWithEvidence(f.Say, f.Evidence), SeverityTone(f.Severity))
		default:
			weighed = append(weighed, f.Say)
			if f.Severity == triage.Critical {
				worst = f.Severity
			}
		}
	}
	if len(weighed) > 0 {
		s.FieldTone(string(worst), strings.Join(weighed, "; "), SeverityTone(worst))
	}
	addKnown(s, "not known", strings.Join(unknown, "; "))
}

// addSteps has every question with its answer.
func addSteps(s *output.Sheet, steps []look.DiagnoseStep) {
	s.Section("Steps")
	for _, one := range steps {
		s.Field(fmt.Sprintf("%s, %ss of %s", one.Label(), Decimal(one.Took.Seconds(), 1), sandbox.FormatDuration(one.ETA)), one.Title)
		for _, a := range one.Answers {
			s.Field("  "+shortQuestion(a), a.Question+" "+a.Text)
		}
	}
}

// briefRoom is the room for the answers of a step on one line.
const briefRoom = 66

// briefAnswers are the first answers that fit a line; a step without any says why once. Answers that count none, and
// asides, are left out.
func briefAnswers(answers []look.Answer, isAside func(look.Answer) bool) string {
	var known []string
	unknown, room := "", briefRoom
	for _, a := range answers {
		switch {
		case isAside(a), countsNone(a):
		case !a.Known:
			unknown = cmp.Or(unknown, a.Text)
		default:
			part := cmp.Or(shortQuestion(a), strings.TrimSuffix(a.Question, "?")) + ": " + a.Text
			if len(known) > 0 && len(part)+2 > room {
				continue
			}
			known, room = append(known, part), room-len(part)-2
		}
	}
	if len(known) == 0 && !slices.ContainsFunc(answers, func(a look.Answer) bool { return a.Known }) {
		return unknown
	}
	return strings.Join(known, "; ")
}

// standsAbove says that the first line of the page of a diagnosis has an answer, or that it is a detail.
func standsAbove(a look.Answer) bool {
	return a.Known && slices.Contains([]string{"stuck", "over_age", "provisioning_long", "no_task"}, a.ID)
}

func countsNone(a look.Answer) bool {
	return a.Known && (a.Text == "0" || strings.HasPrefix(a.Text, "0 of "))
}

// shortQuestion is the question of an answer in a word or two.
func shortQuestion(a look.Answer) string {
	return map[string]string{
		"active": "active", "provisioning": "provisioning", "ages": "ages", "trend": "trend", "stuck": "stuck", "over_age": "old", "provisioning_long": "not started", "no_task": "nobody's", "repeated_timeouts": "timeouts",
		"last_activity": "activity", "log_errors": "errors", "log_repeats": "repetition", "log_warnings": "warnings", "cpu_at_limit": "busy", "cpu_idle": "idle", "memory_grows": "memory grows", "no_operations": "no operations",
		"cleanup_on_time": "runs", "cleanup_results": "did", "cleanup_failures": "fails", "cleanup_leaves": "leaves",
	}[a.ID]
}

// CauseItem is one possible cause with what speaks for it.
type CauseItem struct {
	ID         string             `json:"id"`         // The rule that found it: a cause of the runbook, exit for what an exit proves, or the cause.
	Title      string             `json:"title"`      // The cause in words.
	Cause      sandbox.Cause      `json:"cause"`      // The cause; unknown where it is not one of a sandbox.
	Confidence sandbox.Confidence `json:"confidence"` // How sure it is; unknown for one that the symptoms exclude.
	Score      float64            `json:"score"`      // The weight of the symptoms seen, of those known, from 0 to 1.
	Coverage   float64            `json:"coverage"`   // The weight of the symptoms known, of all, from 0 to 1.
	Evidence   []EvidenceItem     `json:"evidence"`   // What speaks for it.
	WhyNot     *string            `json:"why_not"`    // What speaks against it, or against the next one; null for nothing.
}

// causeItems are ranked causes as data.
func causeItems(causes []triage.Finding) []CauseItem {
	items := make([]CauseItem, len(causes))
	for i, c := range causes {
		items[i] = CauseItem{c.ID, c.Title, c.Cause, c.Confidence, hundredths(c.Score), hundredths(c.Coverage), EvidenceList(c.Evidence), orNil(c.WhyNot)}
	}
	return items
}

func hundredths(share float64) float64 { return math.Round(share*100) / 100 }
