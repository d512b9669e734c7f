package notify_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/notify"
)

// aFlood is a message about thousands of sandboxes, whose texts are long.
func aFlood() notify.Message {
	m := aRefusal()
	m.Text, m.Link = strings.Repeat("a line of many words & more <here>\n", 500), ""
	m.Items, m.Providers, m.Next = nil, nil, nil
	for i := range 10_000 {
		m.Items = append(m.Items, notify.Item{Ref: fmt.Sprintf("prod/i%05d", i), Task: "T-1", Cause: "leak", Reason: strings.Repeat("ü&", 400)})
		m.Providers, m.Next = append(m.Providers, fmt.Sprint("p", i)), append(m.Next, fmt.Sprint("sbx inspect prod/", i))
	}
	return m
}

// TestLongListsAreCutWithACount, within the limits of each service: Slack splits a text above 4,000
// characters, PagerDuty refuses a summary above 1,024 and a body above 512 KB.
func TestLongListsAreCutWithACount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		targets := everywhere()
		targets.PingURL = ""
		require.NoError(t, w.notifier(t, targets).Send(t.Context(), aFlood()))
		require.Len(t, w.requests(), 3)
		for _, r := range w.requests() {
			assert.Less(t, len(r.body), 64<<10, r.host)
			assert.Contains(t, r.body, "sbx inspect prod/0", r.host)
			assert.NotContains(t, r.body, "sbx inspect prod/9", r.host)
		}
		var slack slackSaw
		strictly(t, w.only(t, "hooks.slack.example").body, &slack)
		assert.LessOrEqual(t, utf8.RuneCountInString(strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(slack.Text)), 3200)
		assert.Regexp(t, `- and (9,?\d{3}|10000) more\n`, slack.Text)
		assert.Contains(t, slack.Text, "run r-20261120T120000-abc123", "what is at the end stays")
	})
}

// TestALinkIsMadeForTheRun: the configured page, with the run in it.
func TestALinkIsMadeForTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		m := aRefusal()
		m.Link, m.Host = "", "cron 1/a"
		for _, link := range []string{"https://wiki.example/{verb}/{host}?run={run_id}", "javascript:alert('{run_id}')", ""} {
			require.NoError(t, w.notifier(t, notify.Targets{WebhookURL: hookURL, Link: link}).Send(t.Context(), m))
		}
		var links []string
		for _, r := range w.requests() {
			var got struct {
				Link string `json:"link"`
			}
			require.NoError(t, json.Unmarshal([]byte(r.body), &got))
			links = append(links, got.Link)
		}
		assert.Equal(t, []string{"https://wiki.example/cleanup/cron%201%2Fa?run=r-20261120T120000-abc123", "", ""}, links)
	})
}
