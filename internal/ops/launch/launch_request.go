package launch

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/publish"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// Request is what is asked of a launch.
type Request struct {
	Config  *config.Config // with the flags that win over its files
	Sandbox sandbox.Spec   // sizes that are left open are those of Config
	Key     string         // "" = the task has none, and joins none
	// RetryFailed releases the key of a task that has failed or timed out, although it may have run.
	RetryFailed bool

	Publish, Push, Base  string
	Branch               string // is made for the task; Push is its remote then, "" = origin
	Session, Description string

	KeepAlive bool
	KeepFor   time.Duration // 0 = as Config says
	RetryOn   []sandbox.Class
	Fallback  []string // profiles, in their order
	Compared  []string // profiles beside which it runs; they have to be configured
	BudgetMB  int64    // 0 = no bound
	Resumed   *task.Task

	joblog string
}

// PreparedTask is a task that is ready to be launched.
type PreparedTask struct {
	Spec    task.Spec
	Sandbox sandbox.Spec   // what is asked of the provider
	Env     []string       // with values, which are kept nowhere
	Secret  publish.Target // with its credentials
}

// preparing is one request on its way to a spec.
type preparing struct {
	PreparedTask

	env   *ops.Env
	watch ops.Reporter
	req   Request
}

// Prepare turns a request and the configuration into a task; a mistake is fault.KindUsage,
// and nothing was called.
func (req Request) Prepare(ctx context.Context, env *ops.Env, watch ops.Reporter) (PreparedTask, error) {
	p := &preparing{env: env, watch: watch, req: req}
	p.Env = req.Sandbox.Env
	err := p.prepareSpec(ctx)
	if err == nil && req.Resumed != nil {
		err = inheritFrom(&p.Spec, *req.Resumed)
	}
	return p.PreparedTask, err
}

func (p *preparing) prepareSpec(ctx context.Context) error {
	target, err := p.req.Config.LaunchTarget()
	if err != nil {
		return err
	}
	run, err := p.req.Config.Run()
	if err != nil {
		return err
	}
	size := run.Size(target)
	p.Sandbox = size.Fill(p.req.Sandbox)
	if err := providers.CheckText(p.Sandbox.Command, p.Sandbox.Env); err != nil { // the task's record is JSON
		return err
	}
	p.Spec = specOf(target.Name, p.Sandbox)
	spec := &p.Spec
	if open := size.Open(); len(open) > 0 && !target.SizedByProfile && p.req.Sandbox.Template == "" && p.req.Sandbox.Snapshot == "" {
		p.watch.Note("no " + strings.Join(open, " and ") + " size is set: the provider decides")
	}
	if target.HostProcesses {
		spec.Workdir = p.env.Path(spec.Workdir) // the task may be gone on with from another folder
		p.Sandbox.Workdir = spec.Workdir
	}
	if err := p.readTaskLimits(spec, run); err != nil {
		return err
	}
	if err := p.checkPlaces(spec); err != nil {
		return err
	}
	if err := p.readPublishing(ctx, spec); err != nil {
		return err
	}
	spec.Session, spec.Description = p.req.Session, p.req.Description
	spec.RetryOn = p.req.RetryOn
	if p.req.BudgetMB > 0 && spec.KeepAlive > 0 {
		return fault.Usage("--keep-alive and --memory-budget exclude each other: a kept sandbox uses memory outside the budget")
	}
	if p.req.BudgetMB > 0 {
		spec.Budget = budgetName(p.env.Process.Host)
		if spec.MemoryBytes == 0 {
			return fault.Usage("--memory-budget needs --memory: otherwise the need of a task is unknown")
		}
		if spec.MemoryBytes/sandbox.MiB > p.req.BudgetMB {
			return fault.Usage("--memory exceeds --memory-budget: the task could never start")
		}
	}
	return p.refuseContradictions(*spec)
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

// readTaskLimits reads how long everything may take, and how large it may be.
func (p *preparing) readTaskLimits(s *task.Spec, run config.Run) error {
	warnings, refused := run.Contradictions()
	for _, w := range append(run.Warnings, warnings...) {
		p.watch.Warn(w)
	}
	if refused != nil {
		return refused
	}
	s.Limits = task.Limits{Command: run.CommandTimeout, Attempt: run.AttemptTimeout, Deadline: run.Deadline, Inactivity: run.Inactivity}
	s.Attempts, s.Delay, s.Callback = run.Attempts, run.RetryDelay, run.CallbackURL != ""
	if p.req.KeepAlive {
		s.KeepAlive = run.KeepAliveTTL
	}
	if p.req.KeepFor > 0 {
		s.KeepAlive = p.req.KeepFor
	}
	s.NoForeign, s.NoPolling, s.NoProbe = !run.Switches.DBBackedStop, !run.Switches.CancellationChecks, !run.Switches.HealthProbe
	s.NoInactivity, s.NoKill = !run.Switches.InactivityTimeout, !run.Switches.AuthoritativeTimeout
	return nil
}

// checkPlaces checks the providers that a task may fall back to.
func (p *preparing) checkPlaces(s *task.Spec) error {
	known := p.env.ConfiguredNames()
	for _, name := range slices.Concat(p.req.Fallback, p.req.Compared) {
		if !slices.Contains(known, name) {
			return fault.Usage("no provider is named %q", name).WithHint("%s", fault.Meant(name, known))
		}
	}
	if slices.Contains(p.req.Fallback, p.launchedAt(s.Provider)) {
		return fault.Usage("--fallback: %s is already its first provider", s.Provider)
	}
	s.Fallback = p.req.Fallback
	return nil
}

// launchedAt is the profile in which the first attempt runs.
func (p *preparing) launchedAt(configured string) string {
	if p.req.Resumed != nil && p.req.Resumed.Kept != nil {
		return p.req.Resumed.Kept.Ref.Provider
	}
	return configured
}

// CheckBranch checks the name of a branch that is to be made for a task, and its remote;
// mistakes are fault.KindUsage.
func CheckBranch(name, remote string) error {
	if err := publish.CheckFlowBranch(name); err != nil {
		return fault.Usage("--branch: %w", err)
	}
	if strings.Contains(remote, "=") {
		return fault.Usage("with --branch, --push is a REMOTE without =BRANCH").WithHint("--branch %s --push origin", name)
	}
	return nil
}

func (p *preparing) readPublishing(ctx context.Context, s *task.Spec) error {
	s.Publish, s.Base, s.NewBranch = p.req.Publish, p.req.Base, p.req.Branch != ""
	text := p.req.Push
	if s.NewBranch {
		text = cmp.Or(text, "origin") + "=" + p.req.Branch
	}
	if text == "" {
		return nil
	}
	target, err := p.env.PushTarget(ctx, text)
	if err != nil {
		return err
	}
	if s.NewBranch && target.HasSecret() {
		return fault.Usage("--branch: the address of the remote contains credentials, which are stored nowhere: no later process could remove the branch").
			WithHint("take them out of the address and give them to git by a credential helper or an ssh agent")
	}
	p.Secret, s.Push = target, target.String()
	return nil
}

func (p *preparing) refuseContradictions(s task.Spec) error {
	if s.MinTTL > 0 && s.MinTTL < s.Limits.Attempt+task.DeadManGrace {
		return fault.Usage("--ttl %s is shorter than the attempt's limit: the sandbox would expire during the attempt", sandbox.FormatDuration(s.MinTTL)).
			WithHint("leave --ttl out, or give at least %s", sandbox.FormatDuration(s.Limits.Attempt+task.DeadManGrace))
	}
	if secret := pushesItself(s.EnvNames); secret != "" && s.Publishes() {
		p.watch.Warn("the agent is given " + secret + ", with which the agent can push by itself: the gate cannot block that")
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

// inheritFrom makes a spec go on where another task has ended.
func inheritFrom(s *task.Spec, from task.Task) error {
	switch {
	case !from.State.Final():
		return fault.New(fault.KindRefused, "task %s is still %s", from.ID, from.State).WithHint(
			"`sbx tasks show %s` shows its progress; `sbx stop %s` stops it", from.ID, from.ID,
		)
	case from.Kept == nil:
		return fault.New(fault.KindGone, "task %s has kept no sandbox", from.ID).WithHint("use `sbx run --keep-alive` to keep one; `sbx run` starts from scratch")
	}
	old := from.Spec
	s.Provider, s.Sandbox = from.Kept.Ref.Provider, from.Kept.Ref
	s.Template, s.Snapshot, s.Image, s.MemoryBytes, s.CPU = old.Template, old.Snapshot, old.Image, old.MemoryBytes, old.CPU
	s.DiskBytes, s.PIDs, s.HardLimit, s.Isolate = old.DiskBytes, old.PIDs, old.HardLimit, old.Isolate
	if s.Workdir == "" {
		s.Workdir = old.Workdir
	}
	if s.Session == "" {
		s.Session = old.Session
	}
	if a := from.Last(); a != nil {
		s.SessionID = a.Session
	}
	return nil
}
