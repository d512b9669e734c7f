package incidents

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sbx/internal/alert"
	"sbx/internal/fault"
	"sbx/internal/incident"
	"sbx/internal/ops"
)

// IncidentStart says how an incident begins.
type IncidentStart struct {
	Title, Runbook, Alert, Severity string
	Providers                       []string
	DetectedAt                      time.Time // zero = when the alert began to hold, else now
	Acknowledge                     bool      // somebody works on it
	OneOf                           []string  // the alerts that it may be about; empty = any
}

// maxTitle bounds a title, in characters: it is a line of every list, page and message.
const maxTitle = 200

// StartIncident begins an incident. While one is open it is fault.KindRefused.
func StartIncident(ctx context.Context, env *ops.Env, req IncidentStart) (*incident.Incident, error) {
	if n := utf8.RuneCountInString(req.Title); n > maxTitle {
		return nil, fault.Usage("the title has %d characters, and %d is the most", n, maxTitle).WithHint("`sbx incident note` takes the rest")
	}
	folder, err := env.IncidentFolder()
	if err != nil {
		return nil, err
	}
	start := incident.Start{
		Title: req.Title, Runbook: req.Runbook, Alert: req.Alert, Severity: req.Severity, Providers: req.Providers,
		DetectedAt: req.DetectedAt, DetectedBy: "given by " + env.Process.User(),
	}
	if start.DetectedAt.IsZero() {
		addAlert(ctx, env, &start, req.OneOf)
	}
	if start.Severity == "" && start.Alert != "" {
		start.Severity = severityOf(start.Alert)
	}
	start.Title = env.RedactText(start.Title)
	event := incidentEvent(env, incident.Started)
	event.Start = &start
	i, err := folder.Start(ctx, incidentID(env), event)
	if err != nil || !req.Acknowledge {
		return i, err
	}
	if err := folder.Append(ctx, i.ID, incidentEvent(env, incident.Acknowledged)); err != nil {
		return i, err
	}
	return folder.Read(i.ID)
}

// addAlert takes from the alerts on record what the incident is about, and since when: from the one
// that was named, else from the one that fires for the longest time.
func addAlert(ctx context.Context, e *ops.Env, start *incident.Start, oneOf []string) {
	start.DetectedBy = ""
	firing := slices.DeleteFunc(e.OpenAlerts(ctx, namesOr(e, start.Providers)), func(a alert.Alert) bool {
		return a.State.Phase != alert.Firing || start.Alert != "" && a.Rule.ID != start.Alert ||
			len(oneOf) > 0 && !slices.Contains(oneOf, a.Rule.ID)
	})
	if len(firing) == 0 {
		return
	}
	first := slices.MinFunc(firing, func(a, b alert.Alert) int { return a.State.Since.Compare(b.State.Since) })
	start.DetectedAt, start.DetectedBy = first.State.Since, "alert "+first.Rule.ID+" at "+first.Provider
	start.Alert = first.Rule.ID
	start.Severity = cmp.Or(start.Severity, string(first.Rule.Severity))
}

func incidentID(e *ops.Env) string {
	at := strings.ReplaceAll(e.Now().UTC().Format("20060102t150405.000"), ".", "") // ids are in the order of their times
	return incident.Prefix + at + "-" + strings.ToLower(rand.Text()[:6])
}

func incidentEvent(e *ops.Env, kind incident.Kind) incident.Event {
	a := e.Actor()
	return incident.Event{Kind: kind, At: e.Now(), Actor: incident.Actor{Who: a.Who, Host: a.Host, PID: a.PID, Version: a.Version}}
}

// cutTitle shortens a title that is too long: a runbook's must not fail the incident.
func cutTitle(title string) string {
	if all := []rune(title); len(all) > maxTitle {
		return string(all[:maxTitle-1]) + "…"
	}
	return title
}

// JoinIncident starts an incident where none is open, and gives its id. The open one is acknowledged where
// req says so and nobody has; then the id is "".
func JoinIncident(ctx context.Context, e *ops.Env, req IncidentStart) (started string, err error) {
	folder, err := e.IncidentFolder()
	if err != nil {
		return "", err
	}
	id, err := folder.Current()
	if err == nil && id == "" {
		req.Title = cutTitle(req.Title)
		i, startErr := StartIncident(ctx, e, req)
		if startErr == nil {
			return i.ID, nil
		}
		if id, err = folder.Current(); id == "" { // no other process was faster
			return "", startErr
		}
	}
	if err != nil || !req.Acknowledge {
		return "", err
	}
	i, err := folder.Read(id)
	if err != nil || i.Has(incident.Acknowledged) {
		return "", err
	}
	return "", folder.Append(ctx, id, incidentEvent(e, incident.Acknowledged))
}

// IncidentNote is what a person says of an incident.
type IncidentNote struct {
	Word      string // the incident; "" = the open one
	Text      string
	At        time.Time          // when it was; zero = now
	Milestone incident.Milestone // that it is; "" = none
	Question  string             // of the runbook, that it answers; "" = none
	Runs      RunFinder          // as of a report
	Plan      PlanFinder         // has the questions
}

// NoteIncident adds what a person says, or, with only a milestone, that it was reached.
func NoteIncident(ctx context.Context, env *ops.Env, req IncidentNote) (*incident.Incident, error) {
	folder, i, err := findIncident(env, req.Word, false)
	if err != nil {
		return nil, err
	}
	if req.Question != "" {
		if err := checkQuestion(ctx, env, req); err != nil {
			return nil, err
		}
	}
	event := incidentEvent(env, incident.Noted)
	if req.Milestone == incident.MilestoneAcknowledged {
		event.Kind = incident.Acknowledged
	}
	if !req.At.IsZero() {
		event.At = req.At
	}
	event.Text, event.Milestone, event.Question = env.RedactText(req.Text), req.Milestone, req.Question
	if err := folder.Append(ctx, i.ID, event); err != nil {
		return nil, err
	}
	return folder.Read(i.ID)
}

// IncidentClose says how an incident ended.
type IncidentClose struct {
	Word string
	As   incident.Resolution
	Text string
}

// CloseIncident ends an incident. Left says why its record was left as it is; "" = it says that it was
// closed.
func CloseIncident(ctx context.Context, env *ops.Env, req IncidentClose) (_ *incident.Incident, left string, err error) {
	folder, i, err := findIncident(env, req.Word, false)
	if err != nil {
		return nil, "", err
	}
	event := incidentEvent(env, incident.Closed)
	event.As, event.Text = req.As, env.RedactText(req.Text)
	if left, err = folder.Close(ctx, i.ID, event); err != nil {
		return nil, left, err
	}
	i, err = folder.Read(i.ID)
	return i, left, err
}
