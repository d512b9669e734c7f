package notify

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

const (
	// Limit bounds one call, to all services together.
	Limit = 10 * time.Second
	// afterwards is what is left once the run itself was interrupted: the
	// operator waits for the prompt.
	afterwards = 3 * time.Second
	// attempt is one try where a second one may follow within Limit.
	attempt = 4 * time.Second
)

// Targets are the addresses of the services, "" for none. All but PagerDutyURL are
// secrets.
type Targets struct {
	SlackURL     string // an incoming webhook
	PagerDutyKey string // the integration's routing key
	PagerDutyURL string // of the Events API; "" = https://events.pagerduty.com
	WebhookURL   string // gets the Message as JSON
	PingURL      string // a check of healthchecks.io or alike
	// Link is the page that a message leads to, such as a runbook or a log: an address in which
	// {run_id}, {verb} and {host} are replaced; "" = none.
	Link string
	// Routes says which services get messages of a severity, and Levels those of alerts of a
	// level, which go before; what is in neither goes to all services.
	Routes, Levels map[string][]string
}

// Services lists the names by which routes name the services.
func Services() []string { return []string{"slack", "pagerduty", "webhook"} }

// gets reports whether a service gets a message. A recovery without a severity goes where any
// severity goes: its messages had one or the other.
func (t Targets) gets(service string, m Message) bool {
	if names, routed := t.Levels[m.Level]; routed && m.Level != "" {
		return slices.Contains(names, service)
	}
	severities := []string{m.Severity}
	if m.Severity == "" {
		severities = Severities()
	}
	return slices.ContainsFunc(severities, func(severity string) bool {
		names, routed := t.Routes[severity]
		return !routed || slices.Contains(names, service)
	})
}

// String says where, and nothing secret.
func (t Targets) String() string {
	var names []string
	for name, value := range map[string]string{"slack": t.SlackURL, "pagerduty": t.PagerDutyKey, "webhook": t.WebhookURL, "ping": t.PingURL} {
		if value != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return "notify " + strings.Join(names, ", ")
}

// GoString is String.
func (t Targets) GoString() string { return t.String() }

// Notifier sends messages. The zero value sends none. It is safe for concurrent use.
type Notifier struct {
	targets  Targets
	services []service
	ping     *line
}

// service is one place that people listen to.
type service struct {
	line    *line
	request func(Message) httpx.Request
}

// New makes a notifier. An invalid address is fault.KindUsage, which names the service and
// never the address; the notifier beside the error serves the other services.
func New(n httpx.Net, t Targets) (*Notifier, error) {
	n.Timeout = Limit
	made := &Notifier{targets: t}
	var errs []error
	open := func(name, address, secret string) *line {
		l, err := newLine(n, name, address, secret)
		errs = append(errs, err)
		return l
	}
	add := func(l *line, request func(Message) httpx.Request) {
		if l != nil {
			made.services = append(made.services, service{l, request})
		}
	}
	if t.SlackURL != "" {
		add(open("slack", t.SlackURL, t.SlackURL), t.slackRequest)
	}
	if t.PagerDutyKey != "" {
		add(open("pagerduty", t.pagerDutyBase(), t.PagerDutyKey), t.pagerDuty)
	}
	if t.WebhookURL != "" {
		add(open("webhook", t.WebhookURL, t.WebhookURL), t.webhookRequest)
	}
	if t.PingURL != "" {
		made.ping = open("ping", t.PingURL, t.PingURL)
	}
	return made, errors.Join(errs...)
}

// Send sends to every service but the ping, all at once, each at most once unless the service
// ignores repetitions. The errors of failed services are joined; none changes how the run went.
// After the end of ctx some seconds are left, so that an interruption is reported.
func (n *Notifier) Send(ctx context.Context, m Message) error {
	_, err := n.SendTo(ctx, m, nil)
	return err
}

// SendTo is Send to some of the services; none = to all. Beside an error are the services that
// failed.
func (n *Notifier) SendTo(ctx context.Context, m Message, only []string) (failed []string, err error) {
	if !slices.Contains(Kinds(), m.Kind) {
		return nil, fault.Usage("%q is not a notification", string(m.Kind))
	}
	ctx, stop := withLimit(ctx)
	defer stop()
	m = m.sanitized(n.targets.Link)
	errs := make([]error, len(n.services))
	var all sync.WaitGroup
	for i, s := range n.services {
		if !n.targets.gets(s.line.name, m) || len(only) > 0 && !slices.Contains(only, s.line.name) {
			continue
		}
		all.Go(func() { errs[i] = s.line.send(ctx, s.request(m)) })
	}
	all.Wait()
	for i, s := range n.services {
		if errs[i] != nil {
			failed = append(failed, s.line.name)
		}
	}
	return failed, errors.Join(errs...)
}

// Receivers are the services that a message goes to.
func (n *Notifier) Receivers(m Message) []string {
	m = m.sanitized("")
	var names []string
	for _, s := range n.services {
		if n.targets.gets(s.line.name, m) {
			names = append(names, s.line.name)
		}
	}
	return names
}

// withLimit bounds a call by Limit, and by less once ctx has ended.
func withLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithTimeout(context.WithoutCancel(ctx), Limit)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(afterwards, cancel) })
	return inner, func() { stop(); cancel() }
}

// Close lets idle connections go.
func (n *Notifier) Close() {
	for _, s := range n.services {
		s.line.client.Close()
	}
	if n.ping != nil {
		n.ping.client.Close()
	}
}
