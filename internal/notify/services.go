package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
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
	lines := []string{"*" + escapeSlack(m.Title) + "*"}
	for _, line := range m.bodyLines(mostSlack) {
		lines = append(lines, escapeSlack(line))
	}
	if m.Link != "" {
		lines = append(lines, "<"+strings.NewReplacer("|", "%7C", "&", "&amp;", "<", "%3C", ">", "%3E").Replace(m.Link)+">")
	}
	return httpx.Request{URL: t.SlackURL, JSON: slackBody{Text: strings.Join(lines, "\n")}}
}

// mostSlack is the length of a text in characters: Slack splits a longer one than 4,000 into two
// messages. Escapes and the link come on top.
const mostSlack = 3000

// escapeSlack escapes the three characters that Slack interprets, so that a sandbox named
// <!channel> notifies nobody.
func escapeSlack(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
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
		event.EventAction, event.Client, event.ClientURL = "trigger", "sbx", m.Link
		event.Payload = &pagerPayload{
			Summary: cutText(m.Title, mostSummary), Source: cmp.Or(m.Host, "unknown host"), Severity: m.Severity, Timestamp: m.At,
			Component: "sbx " + m.Verb, Class: string(m.Kind), CustomDetails: messageDetails(m),
		}
		if m.Link != "" {
			event.Links = []pagerLink{{m.Link, "what to do"}}
		}
	}
	return httpx.Request{URL: t.pagerDutyBase() + "/v2/enqueue", JSON: event, Again: true}
}

// dedupKey is the same for one trouble until it is over: of a run on one host, of an alert on all.
func dedupKey(m Message) string {
	key := "sbx/" + m.Host + "/" + m.Key
	if m.Alert != "" {
		key = "sbx/" + m.Key
	}
	if utf8.RuneCountInString(key) <= mostDedup {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sbx/" + hex.EncodeToString(sum[:])
}

// messageDetails are the details of an incident; figures are numbers.
func messageDetails(m Message) map[string]any {
	all := map[string]any{"run_id": m.RunID, "text": m.Text}
	if m.Alert != "" {
		all["alert"], all["level"] = m.Alert, m.Level
	}
	for name, value := range m.Figures {
		all[name] = value
	}
	var sandboxes []string
	for _, i := range m.Items {
		sandboxes = append(sandboxes, i.line())
	}
	if m.MoreItems > 0 {
		sandboxes = append(sandboxes, fmt.Sprintf("and %d more", m.MoreItems))
	}
	if len(sandboxes) > 0 {
		all["sandboxes"] = sandboxes
	}
	if len(m.Providers) > 0 {
		all["providers"] = m.Providers
	}
	if len(m.Causes) > 0 {
		all["causes"] = m.Causes
	}
	if len(m.Next) > 0 {
		all["next"] = m.Next
	}
	return all
}
