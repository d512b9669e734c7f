package notify_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/notify"
)

func stringsReader(s string) io.Reader { return strings.NewReader(s) }

// The strict fakes: each takes what its service's own description asks for and
// refuses the rest in its words.

const routingKey = "0123456789abcdef0123456789abcdef"

type slackSaw struct {
	Text        string `json:"text"`
	UnfurlLinks bool   `json:"unfurl_links"`
}

func slackFake(t *testing.T) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/services/T0000000/B0000000/s3cr3tXXXX" || r.Header.Get("Content-Type") != "application/json" {
			answer(http.StatusNotFound, "no_service")(w, r)
			return
		}
		_, _ = io.WriteString(w, "ok")
	}
}

type pagerSaw struct {
	RoutingKey  string `json:"routing_key"`
	EventAction string `json:"event_action"`
	DedupKey    string `json:"dedup_key"`
	Client      string `json:"client"`
	ClientURL   string `json:"client_url"`
	Payload     *struct {
		Summary       string         `json:"summary"`
		Source        string         `json:"source"`
		Severity      string         `json:"severity"`
		Timestamp     time.Time      `json:"timestamp"`
		Component     string         `json:"component"`
		Class         string         `json:"class"`
		CustomDetails map[string]any `json:"custom_details"`
	} `json:"payload"`
	Links []struct {
		Href string `json:"href"`
		Text string `json:"text"`
	} `json:"links"`
}

// wrong is what PagerDuty objects to.
func (p pagerSaw) wrong() []string {
	var errs []string
	if len(p.RoutingKey) != 32 {
		errs = append(errs, "Length of 'routing_key' is incorrect (should be 32 characters)")
	}
	if !slices.Contains([]string{"trigger", "acknowledge", "resolve"}, p.EventAction) {
		errs = append(errs, "'event_action' is invalid")
	}
	if n := utf8.RuneCountInString(p.DedupKey); n == 0 || n > 255 {
		errs = append(errs, "'dedup_key' is missing or too long")
	}
	switch {
	case p.EventAction == "trigger" && p.Payload == nil:
		errs = append(errs, "'payload' is missing or blank")
	case p.Payload != nil:
		if n := utf8.RuneCountInString(p.Payload.Summary); n == 0 || n > 1024 {
			errs = append(errs, "'payload.summary' is missing or too long")
		}
		if p.Payload.Source == "" {
			errs = append(errs, "'payload.source' is missing or blank")
		}
		if !slices.Contains([]string{"critical", "error", "warning", "info"}, p.Payload.Severity) {
			errs = append(errs, "'payload.severity' is invalid")
		}
	}
	return errs
}

func pagerFake(t *testing.T) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v2/enqueue" {
			answer(http.StatusNotFound, "")(w, r)
			return
		}
		w.WriteHeader(http.StatusAccepted) // the body is judged by the test, which reads it strictly
		_, _ = io.WriteString(w, `{"status":"success","message":"Event processed","dedup_key":"x"}`)
	}
}

const (
	slackURL = "http://hooks.slack.example/services/T0000000/B0000000/s3cr3tXXXX"
	hookURL  = "http://hook.example/in?token=s3cr3tYYYY"
	pingURL  = "http://hc.example/ping/5f3c7a52-s3cr3tZZZZ"
)

func everywhere() notify.Targets {
	return notify.Targets{
		SlackURL: slackURL, PagerDutyKey: routingKey, PagerDutyURL: "http://events.pager.example/",
		WebhookURL: hookURL, PingURL: pingURL,
	}
}

func services(t *testing.T) map[string]http.HandlerFunc {
	t.Helper()
	return map[string]http.HandlerFunc{
		"hooks.slack.example": slackFake(t), "events.pager.example": pagerFake(t),
		"hook.example": answer(204, ""), "hc.example": answer(200, "OK"),
	}
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func aRefusal() notify.Message {
	return notify.Message{
		Verb: "cleanup", RunID: "r-20261120T120000-abc123", Host: "cron-1", Kind: notify.KindRefused, Key: "cleanup stuck",
		Text:    "37 sandboxes would end & 20 may\nthe first is <!channel> \x1b[31m\u202e",
		Figures: map[string]float64{"selected": 37, "limit for all": 20}, At: noon, Link: "https://wiki.example/runbook?a=1&b=2",
		Items:     []notify.Item{{Ref: "prod/abc", Task: "T-4012", Cause: "busy_loop", Reason: "stuck: it is in a busy loop"}, {Ref: "prod/<!here>", Outcome: "failed"}},
		Providers: []string{"prod"}, Causes: map[string]int{"leak": 4, "busy_loop": 9}, Next: []string{"sbx cleanup show r-20261120T120000-abc123", "sbx inspect prod/abc"},
	}
}

// only gives the body that one host got.
func (w *town) only(t *testing.T, host string) request {
	t.Helper()
	var found []request
	for _, r := range w.requests() {
		if r.host == host {
			found = append(found, r)
		}
	}
	require.Len(t, found, 1, host)
	return found[0]
}

func TestSlack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		require.NoError(t, w.notifier(t, notify.Targets{SlackURL: slackURL}).Send(t.Context(), aRefusal()))
		var got slackSaw
		strictly(t, w.only(t, "hooks.slack.example").body, &got)
		assert.Equal(t, "*sbx cleanup refused on cron-1*\n"+
			`37 sandboxes would end &amp; 20 may`+"\n"+`the first is &lt;!channel&gt; \x1b[31m\u202e`+"\n"+
			"providers: prod\ncauses: 9 busy_loop, 4 leak\n"+
			"- prod/abc (task T-4012, busy_loop): stuck: it is in a busy loop\n- prod/&lt;!here&gt;: failed\n"+
			"limit for all: 20  selected: 37\nrun r-20261120T120000-abc123\n"+
			"next: sbx cleanup show r-20261120T120000-abc123\nnext: sbx inspect prod/abc\n<https://wiki.example/runbook?a=1&amp;b=2>", got.Text)
		assert.False(t, got.UnfurlLinks)
	})
}

func TestPagerDutyTriggersAndResolves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		n := w.notifier(t, notify.Targets{PagerDutyKey: routingKey, PagerDutyURL: "http://events.pager.example"})
		long := aRefusal()
		long.Title, long.Host = strings.Repeat("ü", 2000), strings.Repeat("h", 280)
		for _, m := range []notify.Message{aRefusal(), long, {Verb: "cleanup", Kind: notify.KindPartial, At: noon}, {Verb: "cleanup", Host: "cron-1", Key: "cleanup stuck", Kind: notify.KindRecovered}} {
			require.NoError(t, n.Send(t.Context(), m))
		}
		saw := make([]pagerSaw, 4)
		for i, r := range w.requests() {
			strictly(t, r.body, &saw[i])
			assert.Empty(t, saw[i].wrong(), r.body)
		}
		assert.Equal(t, "trigger", saw[0].EventAction)
		assert.Equal(t, "sbx/cron-1/cleanup stuck", saw[0].DedupKey)
		assert.Equal(t, "sbx cleanup refused on cron-1", saw[0].Payload.Summary)
		assert.Equal(t, "cron-1", saw[0].Payload.Source)
		assert.Equal(t, "critical", saw[0].Payload.Severity)
		assert.Equal(t, noon, saw[0].Payload.Timestamp)
		assert.Equal(t, "refused", saw[0].Payload.Class)
		assert.Equal(t, map[string]any{
			"run_id": "r-20261120T120000-abc123", "text": "37 sandboxes would end & 20 may\nthe first is <!channel> \\x1b[31m\\u202e", "selected": 37.0, "limit for all": 20.0,
			"sandboxes": []any{"prod/abc (task T-4012, busy_loop): stuck: it is in a busy loop", "prod/<!here>: failed"},
			"providers": []any{"prod"}, "causes": map[string]any{"busy_loop": 9.0, "leak": 4.0},
			"next": []any{"sbx cleanup show r-20261120T120000-abc123", "sbx inspect prod/abc"},
		}, saw[0].Payload.CustomDetails)
		assert.Equal(t, "https://wiki.example/runbook?a=1&b=2", saw[0].ClientURL)
		assert.Equal(t, "https://wiki.example/runbook?a=1&b=2", saw[0].Links[0].Href)
		assert.Equal(t, "warning", saw[2].Payload.Severity)
		assert.NotEmpty(t, saw[2].Payload.Source, "a source is required, whatever is known of the host")
		assert.Equal(t, "resolve", saw[3].EventAction)
		assert.Equal(t, saw[0].DedupKey, saw[3].DedupKey, "what was triggered is resolved")
		assert.Nil(t, saw[3].Payload)
	})
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		require.NoError(t, w.notifier(t, notify.Targets{WebhookURL: hookURL}).Send(t.Context(), aRefusal()))
		got := w.only(t, "hook.example")
		assert.Equal(t, "/in?token=s3cr3tYYYY", got.path)
		assert.JSONEq(t, `{"schema":"sbx.notify/v1","verb":"cleanup","run_id":"r-20261120T120000-abc123","host":"cron-1","kind":"refused","alert":"","severity":"critical","level":"",
			"key":"cleanup stuck","title":"sbx cleanup refused on cron-1",
			"text":"37 sandboxes would end & 20 may\nthe first is <!channel> \\x1b[31m\\u202e",
			"figures":{"limit for all":20,"selected":37},
			"items":[{"ref":"prod/abc","task":"T-4012","cause":"busy_loop","outcome":"","reason":"stuck: it is in a busy loop"},{"ref":"prod/<!here>","task":"","cause":"","outcome":"failed","reason":""}],
			"more_items":0,"providers":["prod"],"causes":{"busy_loop":9,"leak":4},"next":["sbx cleanup show r-20261120T120000-abc123","sbx inspect prod/abc"],"at":"2026-11-20T12:00:00Z","link":"https://wiki.example/runbook?a=1&b=2"}`, got.body)
		require.NoError(t, w.notifier(t, notify.Targets{WebhookURL: hookURL}).Send(t.Context(), notify.Message{Kind: notify.KindFailed}))
		for _, empty := range []string{`"figures":{}`, `"items":[]`, `"providers":[]`, `"causes":{}`, `"next":[]`} {
			assert.Contains(t, w.requests()[1].body, empty, "every key is always there")
		}
	})
}

func TestPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		n := w.notifier(t, everywhere())
		require.NoError(t, n.PingStart(t.Context(), "r-1"))
		for _, code := range []int{0, 3, 255, -1, 256} {
			require.NoError(t, n.PingEnd(t.Context(), "r-1", code, "log of \x1b[31m"+strconv.Itoa(code)))
		}
		require.NoError(t, n.PingEnd(t.Context(), "", 0, strings.Repeat("ü", 20_000)+"the end"))
		var paths []string
		uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
		rids := map[string]bool{}
		for _, r := range w.requests() {
			path, query, _ := strings.Cut(strings.TrimPrefix(r.path, "/ping/5f3c7a52-s3cr3tZZZZ"), "?")
			paths = append(paths, path)
			if rid, ok := strings.CutPrefix(query, "rid="); ok {
				assert.Regexp(t, uuid, rid)
				rids[rid] = true
			}
		}
		assert.Equal(t, []string{"/start", "", "/3", "/255", "/fail", "/fail", ""}, paths)
		assert.Len(t, rids, 1, "start and end name the same run")
		assert.Equal(t, `log of \x1b[31m0`, w.requests()[1].body)
		last := w.requests()[6].body
		assert.LessOrEqual(t, len(last), 10_000)
		assert.True(t, utf8.ValidString(last) && strings.HasSuffix(last, "the end"), "the end of a log tells most")
	})
}

// TestPingAddressesWithAQuery keep it behind the word.
func TestPingAddressesWithAQuery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		require.NoError(t, w.notifier(t, notify.Targets{PingURL: "http://hc.example/key/sbx-stuck/?create=1"}).PingStart(t.Context(), ""))
		assert.Equal(t, "/key/sbx-stuck/start?create=1", w.requests()[0].path)
	})
}

// FuzzTexts holds what leaves whatever a sandbox is called: printable, bounded,
// and without a mark of Slack's.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{"", "a", "<!channel>", "&lt;", "\x1b[31m", "\u202e", "\xff\xfe", "a|b>c", "\r\n\t"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, title, text string) {
		m := notify.Message{Verb: title, Title: title, Text: text, Host: text, Kind: notify.KindFailed, Figures: map[string]float64{title: 1}, Link: text, Items: []notify.Item{{Ref: title, Reason: text}}, Providers: []string{text}, Causes: map[string]int{text: 1}, Next: []string{title}}
		body := notify.SlackText(m)
		require.True(t, utf8.ValidString(body))
		require.LessOrEqual(t, utf8.RuneCountInString(body), 40_000, "Slack cuts longer ones")
		for _, r := range body {
			require.True(t, r == '\n' || unicode.IsPrint(r), "%q", body)
		}
		marks := regexp.MustCompile(`<(?:[^h]|h[^t])|&(?:[^alg]|$)`)
		require.Empty(t, marks.FindString(body))
		require.LessOrEqual(t, utf8.RuneCountInString(notify.DedupKey(m)), 255)
	})
}
