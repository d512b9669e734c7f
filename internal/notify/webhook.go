package notify

import "sbx/internal/httpx"

// Schema is the form of what a webhook gets.
const Schema = "sbx.notify/v1"

// webhookRequest posts the message as it is, once: nobody knows what it sets off.
func (t Targets) webhookRequest(m Message) httpx.Request {
	return httpx.Request{URL: t.WebhookURL, JSON: webhookBody{Schema, m}}
}
