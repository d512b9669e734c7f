package notify

import "sbx/internal/httpx"

// Schema is the form of what a webhook gets.
const Schema = "sbx.notify/v1"

// webhookRequest posts the message unchanged, once: its effect is unknown.
func (t Targets) webhookRequest(m Message) httpx.Request {
	return httpx.Request{URL: t.WebhookURL, JSON: webhookBody{Schema, m}}
}
