package cli

import (
	"errors"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/notify"
	"sbx/internal/ops"
)

// openNotifier opens the configured notification services; ping replaces the configured ping
// address unless it is "". Beside an error it returns a notifier for the services that could be
// opened.
func (a *app) openNotifier(ping string) (*notify.Notifier, error) {
	c, err := a.config()
	if err != nil {
		return &notify.Notifier{}, err
	}
	p, err := a.printer()
	if err != nil {
		return &notify.Notifier{}, err
	}
	t := notify.Targets{
		SlackURL: c.Notify.Slack, PagerDutyKey: c.Notify.PagerDuty, PagerDutyURL: c.Notify.PagerDutyURL,
		AlertmanagerURL: c.Notify.Alertmanager, WebhookURL: c.Notify.Webhook, PingURL: c.Notify.Ping,
	}
	var missing []error
	for _, line := range c.Notify.Unset {
		missing = append(missing, fault.Usage("%s", line).WithHint("nobody is told that way; set it where the run starts, or remove the key"))
	}
	if ping != "" {
		t.PingURL = ping
		p.Secrets = append(p.Secrets, ping)
	}
	n, err := notify.New(httpx.Net{Now: a.process.Now, Lookup: a.process.Lookup, Trace: a.verboseTrace(), Agent: "sbx/" + buildVersion().Version}, t)
	return n, errors.Join(append(missing, err)...)
}

// openControlPlane opens the configured control plane; nil without one.
func (a *app) openControlPlane() (ops.ControlPlane, error) { //nolint:ireturn // the verbs ask for one
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	run, err := c.Run()
	if err != nil {
		return nil, err
	}
	control, err := notify.NewControl(httpx.Net{Now: a.process.Now, Lookup: a.process.Lookup, Trace: a.verboseTrace(), Agent: "sbx/" + buildVersion().Version}, run.CallbackURL)
	if control == nil { // a nil of its type is not nil as an interface
		return nil, err
	}
	return control, err
}
