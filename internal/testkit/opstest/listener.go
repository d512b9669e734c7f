package opstest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
)

// listener receives what the notification services would.
type listener struct {
	*httptest.Server

	mu     sync.Mutex
	got    map[string][]string // bodies by path
	refuse map[string]int      // how many requests of a path are answered 500 first
}

func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{got: map[string][]string{}, refuse: map[string]int{}}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.refuse[r.URL.Path] > 0 {
			l.refuse[r.URL.Path]--
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		l.got[r.URL.Path] = append(l.got[r.URL.Path], string(body))
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(l.Close)
	return l
}

func received[T any](t *testing.T, l *listener, path string) []T {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []T
	for _, body := range l.got[path] {
		var one T
		require.NoError(t, json.Unmarshal([]byte(body), &one))
		all = append(all, one)
	}
	return all
}

// Message is what the webhook got.
type Message struct {
	Kind, Alert, Host, Severity, Level, Key, Title, Text string

	Next  []string
	More  int `json:"more_items"`
	Items []struct{ Ref string }
}

// ClockSite is a site with a clock of its own, whose processes notify a listener.
type ClockSite struct {
	*Site

	mu  sync.Mutex
	now time.Time
	to  *listener
}

// NewClockSite makes one.
func NewClockSite(t *testing.T, settings string, fakes ...*fake.Provider) *ClockSite {
	t.Helper()
	return &ClockSite{Site: NewSite(t, settings, fakes...), now: time.Now(), to: newListener(t)}
}

// Clock says the time of the site.
func (c *ClockSite) Clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Pass lets time pass.
func (c *ClockSite) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Start is a process on a host: each opens the store anew.
func (c *ClockSite) Start(t *testing.T, host string) *ops.Env {
	t.Helper()
	c.mu.Lock()
	env := c.Env(t)
	c.mu.Unlock()
	env.Process.Now, env.Process.Host = c.Clock, host
	env.Store = func(bool) (store.Store, error) { return store.New(store.Options{StateDir: c.Dir, Now: c.Clock}) }
	env.Notifier = Notifying(notify.Targets{WebhookURL: c.to.URL + "/hook", PagerDutyKey: "key", PagerDutyURL: c.to.URL})
	return env
}

// Messages are those that the webhook got.
func (c *ClockSite) Messages(t *testing.T) []Message {
	t.Helper()
	return received[Message](t, c.to, "/hook")
}

// Said are the messages of alerts that the webhook got: "active_escalated alert host-1".
func (c *ClockSite) Said(t *testing.T) (list []string) {
	t.Helper()
	for _, m := range c.Messages(t) {
		list = append(list, strings.TrimSpace(m.Alert+" "+m.Kind+" "+m.Host))
	}
	return list
}

// Paged are the actions that PagerDuty got about a key; "" = about any.
func (c *ClockSite) Paged(t *testing.T, key string) (actions []string) {
	t.Helper()
	type event struct {
		Action string `json:"event_action"`
		Dedup  string `json:"dedup_key"`
	}
	for _, e := range received[event](t, c.to, "/v2/enqueue") {
		if key == "" || e.Dedup == key {
			actions = append(actions, e.Action)
		}
	}
	return actions
}

// RefuseMessages answers the next n messages of the webhook with 500.
func (c *ClockSite) RefuseMessages(n int) {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.to.refuse["/hook"] = n
}
