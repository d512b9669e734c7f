package incidents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// answerQuestions answers what the runbook asks from what was recorded.
func (r *IncidentReport) answerQuestions() {
	for _, q := range r.Plan.Questions {
		a := ReportAnswer{ReportQuestion: q}
		a.Answer, a.Source = r.saidAnswer(q.ID)
		if a.Answer == "" {
			a.Answer, a.Source = r.recordedAnswer(q.AnsweredBy)
		}
		a.NeedsPerson = a.Answer == ""
		r.Answers = append(r.Answers, a)
	}
}

func (r *IncidentReport) saidAnswer(question string) (answer, source string) {
	for _, e := range r.Said {
		if e.Question == question {
			answer, source = e.Text, e.Actor.Who
		}
	}
	return answer, source
}

// recordedAnswer is what the record has of the results of collectors.
func (r *IncidentReport) recordedAnswer(by []string) (answer, source string) {
	var checks []string
	for _, collector := range by {
		switch collector {
		case "diagnose", "inspect", "stuck", "logs", "resources":
			if answer, source := r.causeAnswer(); answer != "" {
				return answer, source
			}
		case "cleanup", "cron":
			checks = append(checks, "cleanup_recent")
		case "quota", "doctor":
			checks = append(checks, "quota_free")
		case "verify": // beside others it gives what they do not
			if len(by) == 1 {
				checks = append(checks, "active_normal", "none_over_age", "cleanup_recent", "timeouts_low", "quota_free")
			} else {
				checks = append(checks, "active_normal")
			}
		}
	}
	return r.checkAnswer(checks...)
}

func (r *IncidentReport) causeAnswer() (answer, source string) {
	var causes, sources []string
	for _, c := range r.Causes {
		if sureness(c.Confidence) > sureness(sandbox.Probable) {
			break // they are ranked
		}
		causes = append(causes, fmt.Sprintf("%s (%s, score %.2f)", c.Title, c.Confidence, c.Score))
		if from := "sbx " + c.Verb + " at " + c.At.UTC().Format(time.RFC3339); !slices.Contains(sources, from) {
			sources = append(sources, from)
		}
	}
	return strings.Join(causes, "; "), strings.Join(sources, "; ")
}

func (r *IncidentReport) checkAnswer(ids ...string) (answer, source string) {
	var parts []string
	for _, c := range r.Checks {
		if !slices.Contains(ids, c.ID) || c.Verdict == sandbox.Unknown {
			continue
		}
		word := "met"
		if c.Verdict == sandbox.False {
			word = "missed"
		}
		parts = append(parts, fmt.Sprintf("%s: %s, target %s: %s", c.Title, cmp.Or(c.Value, "not known"), c.Target, word))
		source = "sbx " + c.Verb + " at " + c.At.UTC().Format(time.RFC3339)
	}
	return strings.Join(parts, "; "), source
}

// chooseTasks keeps what is to be done whatever the cause, and for the causes that are likely.
func (r *IncidentReport) chooseTasks() {
	for _, t := range r.Plan.Tasks {
		likely := slices.ContainsFunc(r.Causes, func(c SeenCause) bool {
			return c.ID == t.Cause && sureness(c.Confidence) <= sureness(sandbox.Probable)
		})
		if t.Cause == "" || likely {
			r.Tasks = append(r.Tasks, t)
		}
	}
}
