package commands

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// spec turns the flags and the configuration into what is asked for.
func (l *launching) spec(ctx context.Context) (task.Spec, error) {
	target, err := l.config.LaunchTarget()
	if err != nil {
		return task.Spec{}, err
	}
	run, err := l.config.Run()
	if err != nil {
		return task.Spec{}, err
	}
	size := run.Size(target)
	l.full = size.Fill(l.box)
	spec := specOf(target.Name, l.full)
	if open := size.Open(); len(open) > 0 && !target.SizedByProfile && l.box.Template == "" && l.box.Snapshot == "" {
		l.once(l.p.Note, "nobody has said how much "+strings.Join(open, " and ")+" it gets: the provider decides")
	}
	if target.HostProcesses {
		spec.Workdir = l.d.absolute(spec.Workdir) // the task may be gone on with from another folder
		l.full.Workdir = spec.Workdir
	}
	if err := l.limits(&spec, run); err != nil {
		return spec, err
	}
	if err := l.places(&spec); err != nil {
		return spec, err
	}
	if err := l.publishing(ctx, &spec); err != nil {
		return spec, err
	}
	spec.Session, spec.Description = l.o.session, l.o.description
	spec.RetryOn = l.o.classes
	if l.o.budgetMB > 0 && spec.KeepAlive > 0 {
		return spec, fault.Usage("--keep-alive and --memory-budget exclude each other: what is kept takes memory that no task answers for")
	}
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

// limits reads how long everything may take, and how large it may be.
func (l *launching) limits(s *task.Spec, run config.Run) error {
	warnings, refused := run.Contradictions()
	for _, w := range append(run.Warnings, warnings...) {
		l.once(l.p.Warn, w)
	}
	if refused != nil {
		return refused
	}
	s.Limits = task.Limits{Command: run.CommandTimeout, Attempt: run.AttemptTimeout, Deadline: run.Deadline, Inactivity: run.Inactivity}
	s.Attempts, s.Delay, s.Callback = run.Attempts, run.RetryDelay, run.CallbackURL != ""
	if l.o.keep {
		s.KeepAlive = run.KeepAliveTTL
	}
	if l.o.flags != nil && l.o.flags.Changed("keep-for") {
		d, err := sandbox.ParseDuration(l.o.keepFor)
		if err != nil {
			return fault.Usage("--keep-for: %w", err)
		}
		s.KeepAlive = d
	}
	s.NoForeign, s.NoPolling, s.NoProbe = !run.Switches.DBBackedStop, !run.Switches.CancellationChecks, !run.Switches.HealthProbe
	s.NoInactivity, s.NoKill = !run.Switches.InactivityTimeout, !run.Switches.AuthoritativeTimeout
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
	if slices.Contains(l.o.fallback, cmp.Or(l.kept.Provider, s.Provider)) {
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
	return nil
}

// refusals are contradictions of a whole spec.
func (l *launching) refusals(s task.Spec) error {
	if s.MinTTL > 0 && s.MinTTL < s.Limits.Attempt+task.DeadManGrace {
		return fault.Usage("--ttl %s is shorter than an attempt may take: the sandbox would be gone under it", sandbox.FormatDuration(s.MinTTL)).
			WithHint("leave --ttl out, or give at least %s", sandbox.FormatDuration(s.Limits.Attempt+task.DeadManGrace))
	}
	if secret := pushesItself(s.EnvNames); secret != "" && s.Publishes() {
		l.once(l.p.Warn, "the agent is given "+secret+", with which it may push by itself: the gate cannot hold that back")
	}
	return nil
}

// pushesItself names a variable by which an agent could publish without the gate.
func pushesItself(names []string) string {
	for _, n := range names {
		upper := strings.ToUpper(n)
		if slices.Contains([]string{"GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "GIT_TOKEN", "GIT_ASKPASS", "GIT_PASSWORD", "SSH_AUTH_SOCK", "BITBUCKET_TOKEN"}, upper) {
			return n
		}
	}
	return ""
}
