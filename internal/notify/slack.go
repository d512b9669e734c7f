package notify

import (
	"strings"

	"sbx/internal/httpx"
)

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
