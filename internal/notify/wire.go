package notify

import (
	"encoding/json"
	"strings"
	"time"
)

// slackBody is what an incoming webhook takes.
type slackBody struct {
	Text        string `json:"text"`
	UnfurlLinks bool   `json:"unfurl_links"`
}

// pagerEvent is an event of PagerDuty's Events API v2.
type pagerEvent struct {
	RoutingKey  string        `json:"routing_key"`
	EventAction string        `json:"event_action"` // trigger, resolve
	DedupKey    string        `json:"dedup_key"`
	Client      string        `json:"client,omitempty"`
	ClientURL   string        `json:"client_url,omitempty"`
	Payload     *pagerPayload `json:"payload,omitempty"` // of a trigger
	Links       []pagerLink   `json:"links,omitempty"`
}

type pagerPayload struct {
	Summary       string         `json:"summary"`
	Source        string         `json:"source"`
	Severity      string         `json:"severity"` // critical, error, warning, info
	Timestamp     time.Time      `json:"timestamp"`
	Component     string         `json:"component,omitempty"`
	Class         string         `json:"class,omitempty"`
	CustomDetails map[string]any `json:"custom_details,omitempty"`
}

type pagerLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// webhookBody is a Message with the name of its form.
type webhookBody struct {
	Schema string `json:"schema"`
	Message
}

// listedErrors reads {"message":"...","errors":["..."]}; "" for anything else.
func listedErrors(body []byte) string {
	var a struct {
		Message string   `json:"message"`
		Errors  []string `json:"errors"`
	}
	if json.Unmarshal(body, &a) != nil || len(a.Errors) == 0 {
		return ""
	}
	return strings.TrimPrefix(a.Message+": "+strings.Join(a.Errors, ", "), ": ")
}
