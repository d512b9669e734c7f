package views

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"sbx/internal/incident"
	"sbx/internal/ops/incidents"
	"sbx/internal/sandbox"
)

// slackItems is the most of each list in the text for Slack, which is a summary.
const slackItems = 5

// IncidentSlack is the report as a message for Slack: what happened, what was done, what is open. No
// text of others is mark-up in it, and nobody is mentioned.
func IncidentSlack(r *incidents.IncidentReport) string {
	w := &slackText{}
	what, title := reportHeading(r)
	w.line("*Incident %s: %s*", what, slackPlain(title))
	w.line("%s", slackPlain(doneText(r)))
	w.line("%s, severity %s, alert %s", spanText(r.Scope), slackPlain(cmp.Or(r.Severity, notKnown)), slackPlain(cmp.Or(r.Alert, notKnown)))
	for _, p := range r.Problems {
		w.line(":warning: %s", slackPlain(p))
	}
	w.writeMoments(r)
	w.writeCauses(r)
	w.writeActs(r)
	w.writeChecks(r)
	w.writeOpen(r)
	return w.b.String()
}

type slackText struct{ b strings.Builder }

func (w *slackText) line(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

// list writes the first items of a list under a title.
func (w *slackText) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	w.line("*%s*", title)
	for n, item := range items {
		if n == slackItems {
			w.line("• and %d more", len(items)-n)
			return
		}
		w.line("• %s", item)
	}
}

func (w *slackText) writeMoments(r *incidents.IncidentReport) {
	detected := r.Moment(incident.MilestoneDetected).At
	var items []string
	for _, m := range r.Moments {
		text := string(m.Milestone) + ": " + notKnown
		if !m.At.IsZero() {
			text = string(m.Milestone) + ": " + mdTime(m.At)
			if m.Milestone != incident.MilestoneDetected && !detected.IsZero() {
				text += " (+" + sandbox.FormatDuration(m.At.Sub(detected).Round(time.Second)) + ")"
			}
		}
		items = append(items, text)
	}
	w.list("Times", items)
}

func (w *slackText) writeCauses(r *incidents.IncidentReport) {
	var items []string
	for _, c := range r.Causes {
		if c.Confidence == sandbox.Certain || c.Confidence == sandbox.Probable {
			items = append(items, fmt.Sprintf("%s (%s, score %.2f)", slackPlain(c.Title), c.Confidence, c.Score))
		}
	}
	if len(items) == 0 {
		items = []string{notKnown}
	}
	w.list("Cause", items)
}

func (w *slackText) writeActs(r *incidents.IncidentReport) {
	counts := map[string]int{}
	var words []string
	for _, a := range r.Acts {
		word := fmt.Sprintf("%s by %s: %s", slackPlain(verbText(a)), slackPlain(a.Actor.Who), cmp.Or(string(a.Outcome), "outcome "+notKnown))
		if counts[word]++; counts[word] == 1 {
			words = append(words, word)
		}
	}
	for i, word := range words {
		words[i] = fmt.Sprintf("%d × %s", counts[word], word)
	}
	for _, f := range r.Figures {
		if f.Before != nil && f.After != nil {
			words = append(words, fmt.Sprintf("%s: %d before, %d after", slackPlain(f.Name), *f.Before, *f.After))
		}
	}
	if len(words) == 0 {
		words = []string{"nothing was terminated, deleted or repaired"}
	}
	w.list("Done", words)
}

func (w *slackText) writeChecks(r *incidents.IncidentReport) {
	var items []string
	for _, c := range r.Checks {
		items = append(
			items, fmt.Sprintf("%s: %s, target %s: %s", slackPlain(c.Title), slackPlain(cmp.Or(c.Value, notKnown)), slackPlain(c.Target), metWord(c.Verdict)),
		)
	}
	w.list("Verification", items)
	items = nil
	if !slices.ContainsFunc(r.Escalations, incidents.Escalation.WasTold) {
		items = append(items, nobodyTold)
	}
	for _, e := range r.Escalations {
		items = append(items, slackPlain(joinKnown(": ", mdTime(e.At)+" "+toldText(e), e.Why)))
	}
	w.list("Escalations", items)
}

// writeOpen lists what a person has to do.
func (w *slackText) writeOpen(r *incidents.IncidentReport) {
	var questions, tasks []string
	for _, a := range r.Answers {
		if a.NeedsPerson {
			questions = append(questions, slackPlain(a.Ask)+" _"+needsPerson+"_")
		}
	}
	for _, t := range r.Tasks {
		if t.Where == "" {
			tasks = append(tasks, slackPlain(t.Title))
		}
	}
	w.list("Open questions", questions)
	w.list("Action items", tasks)
}

// slackPlain makes a text plain in Slack, which knows no escape but those of & < >: signs of mark-up
// are replaced by ones that look alike.
func slackPlain(text string) string {
	text = breakMentions(oneLineOf(text))
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "*", "\u2217", "~", "\u223c", "`", "'").Replace(text)
	runes := []rune(text)
	for i, r := range runes {
		inside := i > 0 && i+1 < len(runes) && isWordRune(runes[i-1]) && isWordRune(runes[i+1])
		if r == '_' && !inside {
			runes[i] = '\uff3f'
		}
	}
	return string(runes)
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
