package config

import (
	"errors"
	"net/url"
	"strings"

	"sbx/internal/providers"
)

const keyNotify = "notify"

// Notify says whom an unattended run tells; "" = nobody. All but PagerDutyURL and
// Link are secrets, and come from the variables that the file names.
//
// Its text forms show nothing of it.
type Notify struct {
	Slack        string // the URL of an incoming webhook
	PagerDuty    string // the routing key of an integration
	PagerDutyURL string // of the Events API
	Webhook      string // a URL that gets JSON
	Ping         string // the URL of a check
	Link         string // the page that messages lead to; {run_id}, {verb} and {host} are replaced
	// Routes says which services get messages of a severity, and Levels those of alerts of a
	// level, which go before; an absent key is not routed.
	Routes, Levels map[string][]string
	// Unset tells what is missing, one line each: a variable that a file names
	// and that nobody set. No run fails for it.
	Unset []string
}

// String says nothing: it holds secrets.
func (n Notify) String() string { return "notify" }

// GoString is String.
func (n Notify) GoString() string { return n.String() }

// notice is one key below notify as data.
type notice struct {
	name     string
	variable bool // the value names the variable that holds the secret
	fallback string
	sample   string // in the starter file
	help     string
	field    func(*Notify) *string
}

func (n notice) settingKey() string { return keyNotify + "." + n.name }

func notifySettings() []notice {
	return []notice{
		{"slack_env", true, "", "SBX_SLACK_WEBHOOK", "the variable with the URL of an incoming webhook", func(n *Notify) *string { return &n.Slack }},
		{
			"pagerduty_env", true, "", "SBX_PAGERDUTY_KEY", "the variable with the routing key of an Events API v2 integration",
			func(n *Notify) *string { return &n.PagerDuty },
		},
		{
			"pagerduty_url", false, "https://events.pagerduty.com", "https://events.pagerduty.com",
			"PagerDuty's Events API; in the EU https://events.eu.pagerduty.com", func(n *Notify) *string { return &n.PagerDutyURL },
		},
		{"webhook_env", true, "", "SBX_WEBHOOK", "the variable with a URL that gets each message as JSON", func(n *Notify) *string { return &n.Webhook }},
		{"ping_env", true, "", "SBX_PING", "the variable with the URL of a check, as of healthchecks.io", func(n *Notify) *string { return &n.Ping }},
		{
			"link", false, "", "https://wiki.example/sandbox-stuck?run={run_id}",
			"the page that each message leads to, such as a runbook; {run_id}, {verb} and {host} are replaced", func(n *Notify) *string { return &n.Link },
		},
	}
}

// notifyReaders reads the block of a file. What stands in place of a variable's name may
// be the secret itself, and an address may hold a password: neither is quoted.
func (d *decoder) notifyReaders(all readers) {
	for _, n := range notifySettings() {
		all[n.settingKey()] = d.setting(n.settingKey(), webAddress)
		if n.variable {
			all[n.settingKey()] = func(v value) { d.readVariableName(n.settingKey(), v) }
		}
	}
	for _, t := range routeTables() {
		for _, key := range t.keys {
			all[t.settingKey(key)] = func(v value) { d.readServices(t.settingKey(key), v) }
		}
	}
}

func webAddress(text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return errors.New("must be an http or https address, like https://host.example")
	}
	return nil
}

// notifyEntry gives the entry that holds, with the value of its variable; the line
// end that a file leaves at a secret's end is none of it.
func (l *loader) notifyEntry(n notice) entry {
	e, ok := l.layers.lookup(n.settingKey())
	switch {
	case !ok:
		return entry{text: n.fallback, origin: originDefault}
	case e.variable == "":
		return e
	}
	file := e.origin
	e.text, e.origin = strings.TrimSpace(l.in.Process.Getenv(e.variable)), "env "+e.variable+" by "+file
	if e.text == "" {
		e.origin = "env " + e.variable + " (not set) by " + file
	}
	return e
}

// resolveNotify fills the targets and keeps their secrets.
func (l *loader) resolveNotify() {
	for _, n := range notifySettings() {
		e := l.notifyEntry(n)
		*n.field(&l.config.Notify) = e.text
		if n.variable && e.variable != "" && e.text == "" {
			l.config.Notify.Unset = append(l.config.Notify.Unset, n.settingKey()+": the variable "+e.variable+" is not set")
		}
		l.keepSecret(providers.Option{Secret: n.variable}, e.text)
	}
	l.resolveRoutes()
}

func (l *loader) explainNotify() {
	for _, n := range notifySettings() {
		l.showValue(n.settingKey(), l.notifyEntry(n), n.variable)
	}
	l.explainRoutes()
}
