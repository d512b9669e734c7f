package ops

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// CronPlanRequest says what cron lines shall do.
type CronPlanRequest struct {
	Layers      []cron.Layer
	CheckOnly   bool // reconcile only looks
	Emergency   bool // layer usage also starts the providers' own emergency cleanup
	LockTimeout string
	Ping        string // "" = as configured
	Textfile    string
	EnvFile     string // "" = beside the user's configuration
}

// PlanCron says what cron lines need to do what this process would do.
func PlanCron(env *Env, req CronPlanRequest) (cron.Plan, error) {
	c, err := env.Config()
	if err != nil {
		return cron.Plan{}, err
	}
	binary, err := env.Program()
	if err != nil {
		return cron.Plan{}, fault.New(fault.KindUnknown, "the path of this program is not known: %w", err)
	}
	plan := cron.Plan{
		Binary: binary, StateDir: c.StateDir, Host: env.Process.Host, Only: req.Layers, CheckOnly: req.CheckOnly,
		LockTimeout: req.LockTimeout, Ping: req.Ping, Textfile: env.Path(req.Textfile), EnvFile: env.Path(req.EnvFile),
	}
	if env.Process.UID != 0 {
		plan.User = strconv.Itoa(env.Process.UID)
	}
	env.cronProfiles(&plan, c)
	env.cronFiles(&plan, c)
	plan.Emergency = req.Emergency
	if req.Emergency && len(plan.MayEmergency) == 0 {
		return plan, fault.Usage("--emergency: no selected provider has an emergency cleanup of its own, is all yours and tells its quota").
			WithHint("%s; `%s config own --provider PROFILE --all` makes all of its sandboxes yours", hintMaxSandboxes, env.Process.Name())
	}
	plan.Undecided, plan.OwnerLabel = Undecided(c), sandbox.LabelOwner
	for _, p := range c.Selected() {
		if p.Undecided() && env.typeOf(p).NoLabels {
			plan.Unlabelled = append(plan.Unlabelled, p.Name)
		}
		if !env.typeOf(p).KeepsRecords && len(c.SourcesOf(p.Name)) == 0 {
			plan.Unrecorded = append(plan.Unrecorded, p.Name)
		}
	}
	plan.Needs = slices.Sorted(maps.Keys(env.cronNeeds(c, plan)))
	if err := plan.Check(); err != nil {
		return plan, fault.Usage("%w", err).WithHint("choose shorter or plainer names, fewer profiles, or systemd units")
	}
	return plan, nil
}

// cronProfiles names the profiles, so that one that is missing later is an error
// and not a shorter run. One that an environment variable switched on is chosen by
// SBX_PROVIDER instead: --provider would make all of its sandboxes ours.
func (e *Env) cronProfiles(plan *cron.Plan, c *config.Config) {
	var names []string
	widened := false
	for _, p := range c.Selected() {
		names = append(names, p.Name)
		if p.Production {
			plan.Production = append(plan.Production, p.Name)
		}
		if p.HostProcesses {
			plan.HostProcesses = p.Type
		}
		widened = widened || p.Undecided()
	}
	plan.Providers = names
	if widened {
		plan.ByEnv = config.EnvProvider
	}
	plan.Measured, _ = e.splitByQuota(c.Selected())
	for _, p := range c.Selected() {
		if e.typeOf(p).Emergency && p.Owned.All && slices.Contains(plan.Measured, p.Name) {
			plan.MayEmergency = append(plan.MayEmergency, p.Name)
		}
	}
}

// cronFiles has a run find the same files: cron starts in the home of the passwd
// entry, with next to nothing in its environment.
func (e *Env) cronFiles(plan *cron.Plan, c *config.Config) {
	for _, v := range c.Values() {
		if v.Key == "state_dir" && strings.HasPrefix(v.Origin, "env ") {
			plan.Env = append(plan.Env, config.EnvStateDir+"="+c.StateDir)
		}
	}
	home := filepath.Join(e.Process.Home, ".config")
	folder := filepath.Join(home, "sbx")
	for _, f := range c.Files {
		switch {
		case f.Role == config.RoleExplicit:
			plan.Config, folder = f.Path, filepath.Dir(f.Path)
		case f.Role == config.RoleUser:
			folder = filepath.Dir(f.Path)
			if base := filepath.Dir(folder); f.Found && base != home {
				plan.Env = append(plan.Env, "XDG_CONFIG_HOME="+base)
			}
		case f.Found && f.Ignored == "":
			plan.Dir = filepath.Dir(f.Path)
		}
	}
	if plan.EnvFile == "" {
		plan.EnvFile = filepath.Join(folder, "cron.env")
	}
}

// cronNeeds are the variables that these profiles and their way to the network come
// from.
func (e *Env) cronNeeds(c *config.Config, plan cron.Plan) map[string]bool {
	names := map[string]bool{}
	for _, v := range c.Values() {
		rest, fromEnv := strings.CutPrefix(v.Origin, "env ")
		if !fromEnv || !concernsSelection(c, v.Key) || (v.Key == "notify.ping_env" && plan.Ping != "") {
			continue
		}
		name, _, _ := strings.Cut(rest, " ")
		names[name] = true
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if e.Process.Getenv(name) != "" {
			names[name] = true
		}
	}
	return names
}

// concernsSelection says that a setting is one of the selected profiles, or of all runs, and
// no folder or switch of this process.
func concernsSelection(c *config.Config, key string) bool {
	area, rest, nested := strings.Cut(key, ".")
	profile, option, _ := strings.Cut(rest, ".")
	if area != "providers" {
		return nested
	}
	return option != "type" && slices.ContainsFunc(c.Selected(), func(p config.Profile) bool { return p.Name == profile })
}
