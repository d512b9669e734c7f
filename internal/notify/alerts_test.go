package notify_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/notify"
)

// anAlert is a message of an alert from a host and a verb.
func anAlert(kind notify.Kind, host, verb string) notify.Message {
	return notify.Message{
		Verb: verb, Host: host, Kind: kind, Key: "alert/active_escalated/prod", Alert: "active_escalated", Severity: "warning", Level: "infrastructure",
		Providers: []string{"prod"}, At: time.Now(),
	}
}

// TestAnotherHostResolvesAnAlert: what one verb on one host has opened, another verb on another
// host resolves.
func TestAnotherHostResolvesAnAlert(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		n := w.notifier(t, notify.Targets{PagerDutyKey: routingKey, PagerDutyURL: "http://events.pager.example"})
		require.NoError(t, n.Send(t.Context(), anAlert(notify.KindAlert, "host-1", "cleanup")))
		time.Sleep(3 * time.Hour)
		require.NoError(t, n.Send(t.Context(), anAlert(notify.KindRecovered, "host-2", "verify")))
		var events []pagerSaw
		for _, r := range w.requests() {
			events = append(events, decode[pagerSaw](t, r.body))
		}
		require.Len(t, events, 2)
		assert.Equal(t, []string{"trigger", "resolve"}, []string{events[0].EventAction, events[1].EventAction})
		assert.Equal(t, "sbx/alert/active_escalated/prod", events[0].DedupKey)
		assert.Equal(t, events[0].DedupKey, events[1].DedupKey)
		assert.Equal(t, "warning", events[0].Payload.Severity)
	})
}

func decode[T any](t *testing.T, body string) (got T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&got))
	return got
}

// TestRoutes: a severity goes to its services, a level before that, and a recovery without a
// severity to all that may have got one.
func TestRoutes(t *testing.T) {
	t.Parallel()
	routes := map[string][]string{"critical": {"pagerduty", "slack"}, "warning": {"slack"}}
	for name, tc := range map[string]struct {
		routes, levels map[string][]string
		message        notify.Message
		want           []string
	}{
		"no routes":                 {nil, nil, notify.Message{Kind: notify.KindFailed}, notify.Services()},
		"a run that failed":         {routes, nil, notify.Message{Kind: notify.KindFailed}, []string{"slack", "pagerduty"}},
		"a run that left something": {routes, nil, notify.Message{Kind: notify.KindPartial}, []string{"slack"}},
		"its recovery":              {routes, nil, notify.Message{Kind: notify.KindRecovered}, []string{"slack", "pagerduty"}},
		"an alert":                  {routes, nil, anAlert(notify.KindAlert, "h", "verify"), []string{"slack"}},
		"by level":                  {routes, map[string][]string{"infrastructure": {"webhook"}}, anAlert(notify.KindAlert, "h", "verify"), []string{"webhook"}},
		"another level":             {routes, map[string][]string{"vendor": {"webhook"}}, anAlert(notify.KindRecovered, "h", "verify"), []string{"slack"}},
		"one severity alone":        {map[string][]string{"critical": {"pagerduty"}}, nil, notify.Message{Kind: notify.KindFound}, notify.Services()},
		"to nobody":                 {map[string][]string{"warning": {}}, nil, notify.Message{Kind: notify.KindFound}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := build(t, services(t))
			targets := everywhere()
			targets.Routes, targets.Levels = tc.routes, tc.levels
			require.NoError(t, w.notifier(t, targets).Send(t.Context(), tc.message), name)
			var got []string
			for _, r := range w.requests() {
				for _, place := range []string{"slack", "pager", "hook.example"} {
					if strings.Contains(r.host, place) {
						got = append(got, map[string]string{"slack": "slack", "pager": "pagerduty", "hook.example": "webhook"}[place])
					}
				}
			}
			assert.ElementsMatch(t, tc.want, got, name)
		})
	}
}
