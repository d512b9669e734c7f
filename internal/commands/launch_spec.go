package commands

import (
	"context"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// spec turns the flags and the configuration into what is asked for.
func (l *launching) spec(ctx context.Context) (task.Spec, error) {
	target, err := l.target()
	if err != nil {
		return task.Spec{}, err
	}
	spec := specOf(target, l.box)
	if err := l.limits(&spec); err != nil {
		return spec, err
	}
	if err := l.places(&spec); err != nil {
		return spec, err
	}
	if err := l.publishing(ctx, &spec); err != nil {
		return spec, err
	}
	spec.Session = l.o.session
	spec.RetryOn = l.o.classes
	if l.o.budgetMB > 0 {
		spec.Budget = budgetName(l.d.Process.Host)
		if spec.MemoryBytes == 0 {
			return spec, fault.Usage("--memory-budget needs --memory: what a task may take is not known otherwise")
		}
		if spec.MemoryBytes/sandbox.MiB > l.o.budgetMB {
			return spec, fault.Usage("--memory is more than --memory-budget: the task could never begin")
		}
	}
	return spec, l.refusals(spec)
}

// budgetName is whose memory a budget is about: this machine's.
func budgetName(host string) string { return "host/" + host }

// specOf takes over what a sandbox and a task have in common.
func specOf(provider string, box sandbox.Spec) task.Spec {
	s := task.Spec{
		Provider: provider, Command: box.Command, Template: box.Template, Snapshot: box.Snapshot, Image: box.Image, Name: box.Name,
		AgentType: box.AgentType, Workdir: box.Workdir, Isolate: box.Isolate, HardLimit: box.RequireHardLimit,
		MemoryBytes: box.MemoryBytes, DiskBytes: box.DiskBytes, CPU: box.CPU, PIDs: box.PIDs, Labels: box.Labels, MinTTL: box.TTL,
	}
	for _, entry := range box.Env {
		name, _, _ := strings.Cut(entry, "=")
		s.EnvNames = append(s.EnvNames, name)
	}
	slices.Sort(s.EnvNames)
	return s
}

// limits reads how long everything may take.
func (l *launching) limits(s *task.Spec) error {
	o := l.o
	s.Attempts = o.attempts
	for _, f := range []struct {
		name, text string
		into       *time.Duration
		otherwise  time.Duration
	}{
		{"command-timeout", o.command, &s.Limits.Command, 300 * time.Second},
		{"attempt-timeout", o.attempt, &s.Limits.Attempt, 600 * time.Second},
		{"deadline", o.deadline, &s.Limits.Deadline, 35 * time.Minute},
		{"inactivity", o.idle, &s.Limits.Inactivity, 60 * time.Second},
		{"retry-delay", o.delay, &s.Delay, 6 * time.Second},
		{"keep-for", o.keepFor, &s.KeepAlive, time.Hour},
	} {
		*f.into = f.otherwise
		if o.flags.Changed(f.name) {
			d, err := sandbox.ParseDuration(f.text)
			if err != nil {
				return fault.Usage("--%s: %w", f.name, err)
			}
			*f.into = d
		}
	}
	if !o.keep {
		s.KeepAlive = 0
	}
	return nil
}

// places checks the providers that a task may fall back to.
func (l *launching) places(s *task.Spec) error {
	known := l.d.profileWords()
	for _, name := range slices.Concat(l.o.fallback, l.o.compare) {
		if !slices.Contains(known, name) {
			return fault.Usage("no provider is called %q", name).WithHint("%s", fault.Meant(name, known))
		}
	}
	if slices.Contains(l.o.fallback, s.Provider) {
		return fault.Usage("--fallback: %s is where it is launched in the first place", s.Provider)
	}
	s.Fallback = l.o.fallback
	return nil
}

// publishing reads where the work goes.
func (l *launching) publishing(ctx context.Context, s *task.Spec) error {
	s.Publish, s.Base = l.o.publish, l.o.base
	if l.o.push == "" {
		return nil
	}
	target, err := l.d.PushTarget(ctx, l.o.push)
	if err != nil {
		return err
	}
	l.secret, s.Push = target, target.String()
	if !target.HasSecret() {
		l.secret = target
	}
	return nil
}

// refusals are contradictions of a whole spec.
func (l *launching) refusals(s task.Spec) error {
	if s.MinTTL > 0 && s.MinTTL < s.Limits.Attempt+task.DeadManGrace {
		return fault.Usage("--ttl %s is shorter than an attempt may take: the sandbox would be gone under it", sandbox.FormatDuration(s.MinTTL)).
			WithHint("leave --ttl out, or give at least %s", sandbox.FormatDuration(s.Limits.Attempt+task.DeadManGrace))
	}
	if secret := pushesItself(s.EnvNames); secret != "" && s.Publishes() {
		l.p.Warn("the agent is given " + secret + ", with which it may push by itself: the gate cannot hold that back")
	}
	return nil
}

// pushesItself names a variable by which an agent could publish without the gate.
func pushesItself(names []string) string {
	for _, n := range names {
		upper := strings.ToUpper(n)
		for _, word := range []string{"GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "GIT_TOKEN", "GIT_ASKPASS", "GIT_PASSWORD", "SSH_AUTH_SOCK", "BITBUCKET_TOKEN"} {
			if upper == word {
				return n
			}
		}
	}
	return ""
}
