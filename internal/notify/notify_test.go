package notify_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/notify"
	"sbx/internal/testkit/bubble"
)

func TestAllAreToldAtOnceAndThePingIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		require.NoError(t, w.notifier(t, everywhere()).Send(t.Context(), aRefusal()))
		hosts := map[string]int{}
		for _, r := range w.requests() {
			hosts[r.host]++
		}
		assert.Equal(t, map[string]int{"hooks.slack.example": 1, "events.pager.example": 1, "hook.example": 1}, hosts)
	})
}

func TestNobodyIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n notify.Notifier
		require.NoError(t, n.Send(t.Context(), aRefusal()))
		require.NoError(t, n.PingStart(t.Context(), "r"))
		require.NoError(t, n.PingEnd(t.Context(), "r", 0, ""))
		n.Close()
		w := build(t, services(t))
		m := aRefusal()
		m.Kind = "success"
		err := w.notifier(t, everywhere()).Send(t.Context(), m)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), "nobody is told that all is well")
		assert.Empty(t, w.requests())
	})
}

// TestAtMostOnce: what would stand twice in a channel is never sent twice; what
// its service takes for the same thing is tried again.
func TestAtMostOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		flaky := func() http.HandlerFunc { return each(answer(503, ""), answer(200, "")) }
		w := build(t, map[string]http.HandlerFunc{
			"hooks.slack.example": flaky(), "events.pager.example": flaky(), "hook.example": flaky(), "hc.example": flaky(),
		})
		n := w.notifier(t, everywhere())
		err := n.Send(t.Context(), aRefusal())
		require.NoError(t, n.PingEnd(t.Context(), "r", 0, ""))
		require.ErrorContains(t, err, "slack: notify: HTTP 503")
		require.ErrorContains(t, err, "webhook: notify: HTTP 503")
		assert.NotContains(t, err.Error(), "pagerduty")
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
		counts := map[string]int{}
		for _, r := range w.requests() {
			counts[r.host]++
		}
		assert.Equal(t, map[string]int{"hooks.slack.example": 1, "hook.example": 1, "events.pager.example": 2, "hc.example": 2}, counts)
	})
}

// TestTimeIsBounded: whatever the services do, the run waits no longer.
func TestTimeIsBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		cancel time.Duration // of the run, 0 = never
		took   time.Duration
	}{
		"silence": {hang, 0, 10 * time.Second},
		"one fast, the rest not": {func(w http.ResponseWriter, r *http.Request) {
			if r.Host != "hook.example" {
				hang(w, r)
			}
		}, 0, 10 * time.Second},
		"interrupted on the way": {hang, 2 * time.Second, 5 * time.Second},
		"interrupted before":     {hang, -1, 3 * time.Second},
		"a long Retry-After": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3600")
			answer(429, "rate_limited")(w, r)
		}, 0, 0},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			all := services(t)
			for host := range all {
				all[host] = tc.answer
			}
			w := build(t, all)
			n := w.notifier(t, everywhere())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.cancel < 0 {
				cancel()
			} else if tc.cancel > 0 {
				time.AfterFunc(tc.cancel, cancel)
			}
			began := time.Now()
			err := n.Send(ctx, aRefusal())
			assert.Equal(t, tc.took, time.Since(began))
			require.Error(t, err)
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
			assert.Contains(t, fault.HintOf(err), "only the notification is missing")
		})
	}
}

// TestAnInterruptedRunIsStillTold: a signal ends the run's context, and that is
// worth telling.
func TestAnInterruptedRunIsStillTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, w.notifier(t, everywhere()).PingEnd(ctx, "r", 143, ""))
		assert.True(t, strings.HasPrefix(w.requests()[0].path, "/ping/5f3c7a52-s3cr3tZZZZ/143"))
	})
}

// secretPieces are what must stand nowhere.
func secretPieces() []string {
	return []string{"s3cr3t", routingKey, "T0000000", "5f3c7a52", "hooks.slack.example", "hook.example", "hc.example"}
}

// TestSecretsStayHere: neither errors nor -v show an address or a key, whatever
// goes wrong and whatever a service echoes.
func TestSecretsStayHere(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) {
		key := ""
		if strings.HasPrefix(r.Host, "events.pager") {
			key = routingKey
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"message":"bad: %s %s","errors":["no %s"]}`, r.URL, "key "+key, "http://"+r.Host+r.RequestURI)
	}
	for name, h := range map[string]http.HandlerFunc{
		"echoed": echo, "reset": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "silent": hang,
		"moved": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://other.example"+r.RequestURI)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			all := services(t)
			for host := range all {
				all[host] = h
			}
			w := build(t, all)
			n := w.notifier(t, everywhere())
			said := fmt.Sprint(n.Send(t.Context(), aRefusal()), "\n", n.PingStart(t.Context(), "r"), n.PingEnd(t.Context(), "r", 3, "x"), n.PingEnd(t.Context(), "r", -1, "x"))
			said += fault.HintOf(n.Send(t.Context(), aRefusal())) + fault.HintOf(n.PingStart(t.Context(), "r"))
			require.NotEmpty(t, w.trace)
			for _, secret := range secretPieces() {
				assert.NotContains(t, said, secret)
				assert.NotContains(t, strings.Join(w.trace, "\n"), secret)
			}
		})
	}
	text := fmt.Sprintf("%v %+v %#v %s", everywhere(), everywhere(), everywhere(), everywhere())
	for _, secret := range secretPieces() {
		assert.NotContains(t, text, secret)
	}
}

func TestAddressesThatAreNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, services(t))
		n, err := notify.New(httpx.Net{Dial: w.dial}, notify.Targets{SlackURL: "s3cr3t-no-address", PingURL: "ftp://x/s3cr3t", WebhookURL: hookURL, PagerDutyKey: routingKey, PagerDutyURL: "http://"})
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		for _, name := range []string{"slack: ", "ping: ", "pagerduty: "} {
			require.ErrorContains(t, err, name)
		}
		assert.NotContains(t, err.Error(), "s3cr3t")
		t.Cleanup(n.Close)
		require.NoError(t, n.Send(t.Context(), aRefusal()))
		assert.Len(t, w.requests(), 1, "the others are told all the same")
	})
}

// TestRefusalsAreExplained in the words of the services.
func TestRefusalsAreExplained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := build(t, map[string]http.HandlerFunc{
			"hooks.slack.example":  answer(403, "invalid_token"),
			"events.pager.example": answer(400, `{"status":"invalid event","message":"Event object is invalid","errors":["Length of 'routing_key' is incorrect"]}`),
			"hook.example":         answer(404, "<html>not here</html>"),
		})
		err := w.notifier(t, everywhere()).Send(t.Context(), aRefusal())
		for _, want := range []string{
			"slack: notify: HTTP 403: invalid_token",
			"pagerduty: notify: HTTP 400: Event object is invalid: Length of 'routing_key' is incorrect", "webhook: notify: HTTP 404: the answer is a web page",
		} {
			require.ErrorContains(t, err, want)
		}
		assert.Contains(t, fault.HintOf(err), "notify.slack_*")
	})
}

func TestKindForARun(t *testing.T) {
	t.Parallel()
	for kind, want := range map[fault.Kind]notify.Kind{
		fault.KindNone: "", fault.KindLocked: "", fault.KindCanceled: "", fault.KindPartial: notify.KindPartial, fault.KindUnverified: notify.KindUnverified,
		fault.KindRefused: notify.KindRefused, fault.KindFound: notify.KindFound, fault.KindAuth: notify.KindFailed, fault.KindTerminated: notify.KindFailed,
	} {
		got, told := notify.KindFor(kind)
		assert.Equal(t, want, got, kind)
		assert.Equal(t, want != "", told, kind)
	}
	assert.Len(t, notify.Kinds(), 8)
}
