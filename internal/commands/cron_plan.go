package commands

import (
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// cronPlan says what a cron line needs to do what this run would do.
func (d *Deps) cronPlan(o cronPrintOptions) (cron.Plan, error) {
	only, err := layers(o.layers)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return cron.Plan{}, err
	}
	c, err := d.Config()
	if err != nil {
		return cron.Plan{}, err
	}
	binary, err := d.Program()
	if err != nil {
		return cron.Plan{}, fault.New(fault.KindUnknown, "the path of this program is not known: %w", err)
	}
	plan := cron.Plan{
		Binary: binary, StateDir: c.StateDir, Host: d.Process.Host, Only: only, CheckOnly: o.checkOnly,
		LockTimeout: o.lock, Ping: o.ping, Textfile: d.Path(o.textfile), EnvFile: d.Path(o.envFile),
	}
	if d.Process.UID != 0 {
		plan.User = strconv.Itoa(d.Process.UID)
	}
	d.cronProfiles(&plan, c)
	d.cronFiles(&plan, c)
	plan.Emergency = o.emergency
	if o.emergency && len(plan.MayEmergency) == 0 {
		return plan, fault.Usage("--emergency: no selected provider has an emergency cleanup of its own, is all yours and tells its quota").
			WithHint("%s; `%s config own --provider PROFILE --all` makes all of its sandboxes yours", ops.HintMaxSandboxes, d.Process.Name())
	}
	plan.Undecided, plan.OwnerLabel = ops.Undecided(c), sandbox.LabelOwner
	for _, p := range c.Selected() {
		if p.Undecided() && d.TypeOf(p).NoLabels {
			plan.Unlabelled = append(plan.Unlabelled, p.Name)
		}
		if !d.TypeOf(p).KeepsRecords && len(c.SourcesOf(p.Name)) == 0 {
			plan.Unrecorded = append(plan.Unrecorded, p.Name)
		}
	}
	plan.Needs = slices.Sorted(maps.Keys(d.cronNeeds(c, plan)))
	return plan, nil
}

// cronProfiles names the profiles, so that one that is missing later is an error
// and not a shorter run. One that an environment variable switched on is chosen by
// SBX_PROVIDER instead: --provider would make all of its sandboxes ours.
func (d *Deps) cronProfiles(plan *cron.Plan, c *config.Config) {
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
	plan.Measured, _ = d.SplitByQuota(c.Selected())
	for _, p := range c.Selected() {
		if d.TypeOf(p).Emergency && p.Owned.All && slices.Contains(plan.Measured, p.Name) {
			plan.MayEmergency = append(plan.MayEmergency, p.Name)
		}
	}
}

// cronFiles has a run find the same files: cron starts in the home of the passwd
// entry, with next to nothing in its environment.
func (d *Deps) cronFiles(plan *cron.Plan, c *config.Config) {
	for _, v := range c.Values() {
		if v.Key == "state_dir" && strings.HasPrefix(v.Origin, "env ") {
			plan.Env = append(plan.Env, config.EnvStateDir+"="+c.StateDir)
		}
	}
	home := filepath.Join(d.Process.Home, ".config")
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
func (d *Deps) cronNeeds(c *config.Config, plan cron.Plan) map[string]bool {
	names := map[string]bool{}
	for _, v := range c.Values() {
		rest, fromEnv := strings.CutPrefix(v.Origin, "env ")
		if !fromEnv || !concerns(c, v.Key) || (v.Key == "notify.ping_env" && plan.Ping != "") {
			continue
		}
		name, _, _ := strings.Cut(rest, " ")
		names[name] = true
	}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if d.Process.Getenv(name) != "" {
			names[name] = true
		}
	}
	return names
}

// concerns says that a setting is one of the selected profiles, or of all runs, and
// no folder or switch of this process.
func concerns(c *config.Config, key string) bool {
	area, rest, nested := strings.Cut(key, ".")
	profile, option, _ := strings.Cut(rest, ".")
	if area != "providers" {
		return nested
	}
	return option != "type" && slices.ContainsFunc(c.Selected(), func(p config.Profile) bool { return p.Name == profile })
}
