package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// page shows an investigation on one screen; full adds every question and every flag.
func (d Investigation) page(s *output.Sheet, full bool) {
	if d.one != nil {
		d.one.page(s, full)
		return
	}
	s.Text(d.headline())
	addNext(s, d.Program, d.next())
	d.pageGroups(s, "Stuck", d.Stuck, groupCommand)
	d.pageGroups(s, "Suspected", d.Suspected, suspectCommand)
	causes, hints := d.chooseCauses(full)
	if len(causes) > 0 {
		s.Section("Causes")
		addCauses(s, causes, true)
	}
	if full {
		s.Section("Flags")
		addFlags(s, d.Flags, true)
		addSteps(s, d.Steps)
		return
	}
	d.pageFindings(s, hints)
}

// chooseCauses are the causes that are explained, and those that are only hints. The groups stand above
// with their causes. Full explains all.
func (d Investigation) chooseCauses(full bool) (causes, hints []triage.Finding) {
	for _, c := range d.Causes {
		switch {
		case full:
			causes = append(causes, c)
		case look.OfGroup(c):
		case c.Confidence == sandbox.Hint:
			hints = append(hints, c)
		default:
			causes = append(causes, c)
		}
	}
	return causes, hints
}

// pageGroups has for each cause how many there are, the evidence of one, the beginnings of their ids,
// which commands take, and the command.
func (d Investigation) pageGroups(s *output.Sheet, title string, groups []ops.CauseGroup, command func(ops.CauseGroup) string) {
	if len(groups) == 0 {
		return
	}
	s.Section(title)
	for i := 0; i < len(groups); {
		all, ids := groups[i], []string{groups[i].Provider + " " + strings.Join(groups[i].Short, " ")}
		for i++; i < len(groups) && groups[i].Cause == all.Cause; i++ {
			all.Provider, all.Refs = "", slices.Concat(all.Refs, groups[i].Refs)
			ids = append(ids, groups[i].Provider+" "+strings.Join(groups[i].Short, " "))
		}
		s.Field(strconv.Itoa(len(all.Refs)), causeWord(all.Cause)+d.groupEvidence(all.Cause)+": "+strings.Join(ids, "; "))
		s.FieldTone("", d.Program+" "+command(all), output.Good)
	}
}

// groupEvidence is what the sandbox shows of which most is known.
func (d Investigation) groupEvidence(cause sandbox.Cause) string {
	for _, c := range d.Causes {
		if c.Cause == cause && look.OfGroup(c) {
			return ", " + ops.WithDetail(string(c.Confidence), briefEvidence(c))
		}
	}
	return ""
}

// briefEvidence are the first figures, without the counts.
func briefEvidence(c triage.Finding) string {
	figures := slices.DeleteFunc(slices.Clone(c.Evidence), func(e sandbox.Evidence) bool { return look.IsCountEvidence(e) || e.What == look.ExampleEvidence })
	return joinEvidence(figures[:min(2, len(figures))])
}

func causeWord(c sandbox.Cause) string {
	if c == sandbox.CauseUnknown {
		return "unknown cause"
	}
	return causeLabel(c)
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

// pageFindings has a line for each hint, each raised flag, and each step with its first answers.
func (d Investigation) pageFindings(s *output.Sheet, hints []triage.Finding) {
	took, eta := time.Duration(0), time.Duration(0)
	for _, one := range d.Steps {
		took, eta = max(took, one.Took), eta+one.ETA
	}
	s.Section(fmt.Sprintf("Findings (%ss; by hand %s)", Decimal(took.Seconds(), 1), sandbox.FormatDuration(eta)))
	for _, c := range hints {
		s.FieldTone(string(c.Confidence), c.Title+": "+joinEvidence(c.Evidence), ConfidenceTone(c.Confidence))
	}
	for _, f := range d.Flags {
		if f.Verdict == sandbox.True && f.Severity != triage.Info {
			s.FieldTone(string(f.Severity), f.Say+": "+joinEvidence(f.Evidence), SeverityTone(f.Severity))
		}
	}
	for _, one := range d.Steps {
		if text := briefAnswers(one.Answers); text != "" {
			s.Field(one.ID, text)
		}
	}
}

// joinEvidence are the figures of evidence without their sources.
func joinEvidence(evidence []sandbox.Evidence) string {
	var parts []string
	for _, e := range evidence {
		parts = append(parts, strings.TrimSpace(e.What+" "+e.Value))
	}
	return strings.Join(parts, ", ")
}

// addSteps has every question with its answer.
func addSteps(s *output.Sheet, steps []look.DiagnoseStep) {
	s.Section("Steps")
	for _, one := range steps {
		s.Field(fmt.Sprintf("%s, %ss of %s", one.ID, Decimal(one.Took.Seconds(), 1), sandbox.FormatDuration(one.ETA)), one.Title)
		for _, a := range one.Answers {
			s.Field("  "+a.ID, a.Question+" "+a.Text)
		}
	}
}

// briefRoom is the room for the answers of a step on one line.
const briefRoom = 66

// briefAnswers are the first answers that fit a line; a step without any says why once. What the first
// line of the page says is left out.
func briefAnswers(answers []look.Answer) string {
	var known []string
	unknown, room := "", briefRoom
	for _, a := range answers {
		switch {
		case isAside(a):
		case !a.Known:
			unknown = cmp.Or(unknown, a.Text)
		default:
			part := shortQuestion(a) + ": " + a.Text
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

// isAside says that an answer about all sandboxes is a detail, stands above, or counts none.
func isAside(a look.Answer) bool {
	return a.Known && (slices.Contains([]string{"R26", "R27", "R28", "R29"}, a.ID) || a.Text == "0" || strings.HasPrefix(a.Text, "0 of "))
}

// shortQuestion is the question of an answer in a word or two.
func shortQuestion(a look.Answer) string {
	return map[string]string{
		"R19": "active", "R20": "provisioning", "R21": "ages", "R22": "trend", "R30": "timeouts",
		"R34": "activity", "R35": "errors", "R36": "repetition", "R37": "warnings", "R47": "busy", "R48": "idle", "R49": "memory grows", "R50": "no operations",
		"R53": "runs", "R54": "did", "R56": "fails", "R57": "leaves",
	}[a.ID]
}
