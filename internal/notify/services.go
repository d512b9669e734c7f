package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"sbx/internal/httpx"
)

// Schema is the form of what a webhook gets.
const Schema = "sbx.notify/v1"

// webhookRequest posts the message unchanged, once: its effect is unknown.
func (t Targets) webhookRequest(m Message) httpx.Request {
	return httpx.Request{URL: t.WebhookURL, JSON: webhookBody{Schema, m}}
}

// slackRequest is a message for an incoming webhook. Mattermost and compatible services
// understand the same text. It is sent once, since a repetition would appear twice in the
// channel.
func (t Targets) slackRequest(m Message) httpx.Request {
	text := "*" + escapeSlack(m.Title) + "*"
	if m.Text != "" {
		text += "\n" + escapeSlack(m.Text)
	}
	if list := m.figureLines(); len(list) > 0 {
		text += "\n" + escapeSlack(strings.Join(list, "  "))
	}
	if m.RunID != "" {
		text += "\n" + escapeSlack("run "+m.RunID)
	}
	if m.Link != "" {
		text += "\n<" + strings.NewReplacer("|", "%7C", "&", "&amp;", "<", "%3C", ">", "%3E").Replace(m.Link) + ">"
	}
	return httpx.Request{URL: t.SlackURL, JSON: slackBody{Text: text}}
}

// escapeSlack escapes the three characters that Slack interprets, so that a sandbox named
// <!channel> notifies nobody.
func escapeSlack(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// alertLife is how long an alert lives without being renewed or resolved: more than two periods
// of the rarest cron line.
const alertLife = 150 * time.Minute

// alertmanagerRequest posts an alert. Its labels say what is wrong and where, and never
// how: they are its identity, by which a second post is the first one again and a
// recovery finds it. Only the severity is among them, because routes go by it, so
// a recovery ends both.
func (t Targets) alertmanagerRequest(m Message) httpx.Request {
	alerts := []alert{m.toAlert(m.Kind.severityWord(), m.At.Add(alertLife))}
	if m.Kind == KindRecovered {
		alerts = []alert{m.toAlert(severityCritical, m.At), m.toAlert(severityWarning, m.At)}
	}
	base := strings.TrimSuffix(strings.TrimRight(t.AlertmanagerURL, "/"), "/api/v2/alerts")
	return httpx.Request{URL: base + "/api/v2/alerts", JSON: alerts, Again: true}
}

func (m Message) toAlert(severity string, ends time.Time) alert {
	labels := map[string]string{"alertname": "sbx", "verb": m.Verb, "key": m.Key, "instance": m.Host, "severity": severity}
	for name, value := range labels {
		if value == "" {
			delete(labels, name)
		}
	}
	notes := map[string]string{"summary": m.Title, "description": m.Text, "kind": string(m.Kind), "run_id": m.RunID}
	for name, value := range m.Figures {
		notes["figure_"+labelName(name)] = value
	}
	return alert{Labels: labels, Annotations: notes, StartsAt: m.At, EndsAt: ends, GeneratorURL: m.Link}
}

// labelName is a name that Alertmanager takes behind a prefix.
func labelName(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || (r >= '0' && r <= '9') || (r >= 'A' && r <= 'Z') || (r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, text)
}

const (
	pagerDutyURL = "https://events.pagerduty.com"
	// mostSummary and mostDedup are PagerDuty's limits, in characters.
	mostSummary = 1024
	mostDedup   = 255
)

func (t Targets) pagerDutyBase() string {
	return strings.TrimRight(cmp.Or(t.PagerDutyURL, pagerDutyURL), "/")
}

// pagerDuty triggers an incident, or resolves the one of the same key and host.
// The key makes a second event the first one again, so it may be repeated.
func (t Targets) pagerDuty(m Message) httpx.Request {
	event := pagerEvent{RoutingKey: t.PagerDutyKey, EventAction: "resolve", DedupKey: dedupKey(m)}
	if m.Kind != KindRecovered {
		event.EventAction, event.Client = "trigger", "sbx"
		event.Payload = &pagerPayload{
			Summary: cutText(m.Title, mostSummary), Source: cmp.Or(m.Host, "unknown host"), Severity: m.Kind.severityWord(), Timestamp: m.At,
			Component: "sbx " + m.Verb, Class: string(m.Kind), CustomDetails: messageDetails(m),
		}
		if m.Link != "" {
			event.Links = []pagerLink{{m.Link, "more"}}
		}
	}
	return httpx.Request{URL: t.pagerDutyBase() + "/v2/enqueue", JSON: event, Again: true}
}

// dedupKey is the same for one trouble on one host until it is over.
func dedupKey(m Message) string {
	key := "sbx/" + m.Host + "/" + m.Key
	if utf8.RuneCountInString(key) <= mostDedup {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sbx/" + hex.EncodeToString(sum[:])
}

func messageDetails(m Message) map[string]string {
	all := map[string]string{"run_id": m.RunID, "text": m.Text}
	maps.Copy(all, m.Figures)
	return all
}
