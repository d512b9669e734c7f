package notify

// SlackText lets a fuzz target see what Slack would get.
func SlackText(m Message) string {
	body, _ := Targets{SlackURL: "http://slack.example/x"}.slackRequest(m.sanitized("")).JSON.(slackBody)
	return body.Text
}

// DedupKey is PagerDuty's.
func DedupKey(m Message) string { return dedupKey(m.sanitized("")) }
