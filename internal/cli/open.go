package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/httpx"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/providers"
)

// secretLimit bounds a program that gives a secret; it may ask for a password.
const secretLimit = time.Minute

// opener opens profiles. One that cannot be opened fails alone.
type opener struct {
	app     *app
	config  *config.Config
	printer *output.Printer
	deps    providers.Deps
}

func (a *app) newOpener(c *config.Config, p *output.Printer) *opener {
	return &opener{app: a, config: c, printer: p, deps: providers.Deps{
		Now: a.process.Now, Lookup: a.process.Lookup, StateDir: c.StateDir, Version: buildVersion().Version, Notice: p.Warn, TimeScale: a.process.TimeScale, Run: a.process.Capture, Connect: a.process.Connect,
		Net: httpx.Net{
			Now: a.process.Now, Lookup: a.process.Lookup, Trace: a.verboseTrace(), Timeout: c.Limits.RequestTimeout, Agent: "sbx/" + buildVersion().Version,
		},
	}}
}

func (o *opener) openMembers(ctx context.Context, profiles []config.Profile) []fleet.Member {
	members := make([]fleet.Member, 0, len(profiles))
	for _, p := range profiles {
		members = append(
			members,
			fleet.Member{
				Provider: o.openProvider(ctx, p), Timeout: o.config.Limits.ProviderTimeout, Metadata: p.Metadata, MaxSandboxes: p.MaxSandboxes,
				Remote: !p.HostBound, Sources: o.openSources(ctx, p.Name),
			},
		)
	}
	return members
}

func (o *opener) openProvider(ctx context.Context, p config.Profile) providers.Provider {
	t := o.typeOf(p)
	if _, err := o.config.State(); err != nil && p.InStateDir {
		return providers.NewUnopened(p.Profile, err)
	}
	settings, err := o.withSecrets(ctx, p)
	if err != nil {
		return providers.NewUnopened(p.Profile, err)
	}
	opened, err := t.Open(ctx, settings, o.deps)
	if err != nil {
		return providers.NewUnopened(p.Profile, withEmptyVariable(p.Profile, err))
	}
	return opened
}

// withEmptyVariable is the error of a profile that was not opened for want of a secret: where the configuration names
// the secret's variable, that one is empty, and to set the one of the provider's type would change nothing.
func withEmptyVariable(p providers.Profile, err error) error {
	if fault.KindOf(err) != fault.KindAuth || len(p.Unset) == 0 {
		return err
	}
	option := slices.Sorted(maps.Keys(p.Unset))[0]
	return fault.New(fault.KindAuth, "%s is empty (%s_env of %s)", p.Unset[option], option, p.Name).At(p.Name, "").
		WithHint("`export %s=...`, or name another variable in %s_env", p.Unset[option], option)
}

// openSources opens what knows more of a profile's sandboxes. What cannot be opened is
// said, and missed.
func (o *opener) openSources(ctx context.Context, profile string) []providers.Source {
	var found []providers.Source
	for _, p := range o.config.SourcesOf(profile) {
		t := o.typeOf(p)
		settings, err := o.withSecrets(ctx, p)
		if err == nil {
			var s providers.Source
			if s, err = t.Attach(ctx, settings, o.deps); err == nil {
				found = append(found, s)
				continue
			}
		}
		err = withEmptyVariable(p.Profile, err)
		o.printer.Warn(p.Name + " cannot be queried: " + err.Error())
	}
	return found
}

// typeOf is the type of a profile, which was checked as it was read.
func (o *opener) typeOf(p config.Profile) providers.Type {
	return o.app.types[slices.IndexFunc(o.app.types, func(t providers.Type) bool { return t.Name == p.Type })]
}

// withSecrets gives a profile with the secrets that its commands print. They are
// hidden from then on.
func (o *opener) withSecrets(ctx context.Context, p config.Profile) (providers.Profile, error) {
	if len(p.Commands) == 0 {
		return p.Profile, nil
	}
	whole := p.Profile
	whole.Settings = maps.Clone(p.Settings)
	for _, option := range slices.Sorted(maps.Keys(p.Commands)) {
		argv := p.Commands[option]
		ctx, cancel := context.WithTimeoutCause(ctx, secretLimit, fault.New(fault.KindAuth, "no answer within %s", secretLimit))
		text, err := o.app.process.Output(ctx, argv[0], argv[1:]...)
		cancel()
		line, _, _ := strings.Cut(text, "\n")
		line = strings.TrimSpace(line)
		switch {
		case err != nil:
			return whole, fault.New(fault.KindAuth, "%s_command: %s: %w", option, argv[0], err).WithHint("run it by hand: it must print the %s and nothing else", option)
		case line == "":
			return whole, fault.New(
				fault.KindAuth, "%s_command: %s prints nothing", option, argv[0],
			).WithHint("run it by hand: it must print the %s and nothing else", option)
		}
		if err := config.CheckSecret(line); err != nil {
			return whole, fault.New(
				fault.KindAuth, "%s_command: what %s prints %w", option, argv[0], err,
			).WithHint("run it by hand: it must print the %s and nothing else", option)
		}
		whole.Settings[option] = line
		o.printer.Secrets = append(o.printer.Secrets, line)
	}
	return whole, nil
}

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
		WebhookURL: c.Notify.Webhook, PingURL: c.Notify.Ping, Link: c.Notify.Link,
		Routes: c.Notify.Routes, Levels: c.Notify.Levels,
	}
	var missing []error
	for _, line := range c.Notify.Unset {
		missing = append(missing, fault.Usage("%s", line).WithHint("no alert is sent that way; set it where the run starts, or remove the key"))
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
	control, err := notify.NewControl(
		httpx.Net{Now: a.process.Now, Lookup: a.process.Lookup, Trace: a.verboseTrace(), Agent: "sbx/" + buildVersion().Version}, run.CallbackURL,
	)
	if control == nil { // a nil of its type is not nil as an interface
		return nil, err
	}
	return control, err
}
