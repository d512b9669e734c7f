package config

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

const notifyAll = `notify:
  slack_env: MY_SLACK
  pagerduty_env: MY_PAGER
  pagerduty_url: https://me:s3cret-pd@pd.example/x
  webhook_env: MY_HOOK
  ping_env: MY_PING
`

func TestNotifyNamesVariablesThatHoldTheSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user(notifyAll)
	w.env = append(w.env, "MY_SLACK=https://hooks.example/s3cret-slack", "MY_PAGER=s3cret-key\n", "MY_HOOK=https://hook.example/s3cret-hook")
	c := w.must()
	assert.Equal(t, "https://hooks.example/s3cret-slack", c.Notify.Slack)
	assert.Equal(t, "s3cret-key", c.Notify.PagerDuty, "a line end is none of it")
	assert.Equal(t, "https://hook.example/s3cret-hook", c.Notify.Webhook)
	assert.Empty(t, c.Notify.Ping)
	assert.Equal(t, []string{"notify.ping_env: the variable MY_PING is not set"}, c.Notify.Unset)
	assert.ElementsMatch(t, []string{"https://hooks.example/s3cret-slack", "s3cret-key", "s3cret-pd", "https://hook.example/s3cret-hook"}, c.Secrets())

	assert.Equal(t, "******** <- env MY_SLACK by DIR/home/.config/sbx/config.yaml:2", w.origin(c, "notify.slack_env"))
	assert.Equal(t, "https://me:********@pd.example/x <- DIR/home/.config/sbx/config.yaml:4", w.origin(c, "notify.pagerduty_url"))
	assert.Equal(t, " <- env MY_PING (not set) by DIR/home/.config/sbx/config.yaml:6", w.origin(c, "notify.ping_env"))
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v %v %+v %#v", c, c, c, c.Notify, c.Notify, c.Notify), "s3cret")
	assert.NotContains(t, fmt.Sprint(c.Values()), "s3cret")
}

func TestNobodyIsToldByDefault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "SBX_SLACK_WEBHOOK=https://hooks.example/x")
	c := w.must()
	assert.Equal(t, Notify{PagerDutyURL: "https://events.pagerduty.com"}, c.Notify, "a variable alone tells nobody")
	assert.Equal(t, "https://events.pagerduty.com <- default", w.origin(c, "notify.pagerduty_url"))
	assert.Empty(t, c.Secrets())
}

// TestRoutes: which services get what.
func TestRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("notify: {routes: {critical: [pagerduty, slack], warning: []}, levels: {vendor: [webhook]}}\n")
	c := w.must()
	assert.Equal(t, map[string][]string{"critical": {"pagerduty", "slack"}, "warning": {}}, c.Notify.Routes)
	assert.Equal(t, map[string][]string{"vendor": {"webhook"}}, c.Notify.Levels)
	assert.Equal(t, []string{
		"notify.routes.critical names pagerduty, which has no address", "notify.routes.critical names slack, which has no address",
		"notify.levels.vendor names webhook, which has no address",
	}, c.Notify.Unset)
	assert.Equal(t, "pagerduty, slack <- DIR/home/.config/sbx/config.yaml:1", w.origin(c, "notify.routes.critical"))
	assert.Equal(t, "nobody <- DIR/home/.config/sbx/config.yaml:1", w.origin(c, "notify.routes.warning"))
	assert.Equal(t, "as its severity <- default", w.origin(c, "notify.levels.agents"))
}
