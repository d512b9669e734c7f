package notify

import (
	"strings"
	"time"

	"sbx/internal/httpx"
)

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
