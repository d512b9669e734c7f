package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"
	"unicode/utf8"

	"sbx/internal/httpx"
)

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
