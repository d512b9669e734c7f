package notify

import (
	"strings"

	"sbx/internal/httpx"
)

// slack is a message for an incoming webhook. The same text is understood by
// Mattermost and others that speak alike. It is sent once: a second one would
// stand in the channel.
func (t Targets) slack(m Message) httpx.Request {
	text := "*" + unmarked(m.Title) + "*"
	if m.Text != "" {
		text += "\n" + unmarked(m.Text)
	}
	if list := m.figureLines(); len(list) > 0 {
		text += "\n" + unmarked(strings.Join(list, "  "))
	}
	if m.RunID != "" {
		text += "\n" + unmarked("run "+m.RunID)
	}
	if m.Link != "" {
		text += "\n<" + strings.NewReplacer("|", "%7C", "&", "&amp;", "<", "%3C", ">", "%3E").Replace(m.Link) + ">"
	}
	return httpx.Request{URL: t.SlackURL, JSON: slackBody{Text: text}}
}

// unmarked escapes the three characters that Slack gives a meaning, so that a
// sandbox named <!channel> wakes nobody.
func unmarked(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
