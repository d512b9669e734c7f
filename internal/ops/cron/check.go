package cron

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// CheckRequest says which layers should run.
type CheckRequest struct {
	Layers []cron.Layer
	Notify bool // notify people of what is overdue
}

// CheckResult is the state of each layer, as a status and as a check.
type CheckResult struct {
	Statuses []cron.Status
	Checks   []ops.Check
	// Unrecorded is one check for all layers of which no run is recorded: they have one cause and one
	// command. A zero Check = every layer has a run.
	Unrecorded ops.Check
	Without    []bool   // of each status, whether Unrecorded stands for it
	Notes      []string // of profiles whose fleet exceeds a default limit (check.DefaultNote)
}

// CheckLayers says from what is recorded whether the layers run.
func CheckLayers(ctx context.Context, env *ops.Env, req CheckRequest, watch ops.Observer) (*CheckResult, error) {
	c, err := env.Config()
	if err != nil {
		return nil, err
	}
	expected, err := expectedLayers(env, req.Layers)
	if err != nil {
		return nil, err
	}
	if err := env.RequireState(); err != nil {
		return nil, err
	}
	runs, errs := Runs(ctx, env, "")
	if len(runs) == 0 && len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	variables := missingVariables(env)
	r := &CheckResult{Statuses: cron.Judge(expected, runs, env.Now())}
	r.findUnrecorded(env, expected, ops.WithoutOwner(c))
	for i := range r.Statuses {
		s := &r.Statuses[i]
		hint := r.Unrecorded.Hint
		if !r.Without[i] {
			hint = layerHint(env, s, variables)
			if len(expected[i].Unmeasured) > 0 {
				hint = strings.TrimPrefix(hint+"; "+ops.HintMaxSandboxes, "; ")
			}
		}
		r.Checks = append(r.Checks, ops.ToolCheck("layer "+string(s.Layer), s.Verdict, s.Message, hint))
	}
	r.Notes = defaultNotes(ctx, env)
	if req.Notify {
		notifyOverdue(ctx, env, watch, r.Statuses)
	}
	return r, nil
}

// expectedLayers are the layers that should run, over the profiles that verbs work on.
func expectedLayers(e *ops.Env, wanted []cron.Layer) ([]cron.Expected, error) {
	names, err := e.SelectedNames()
	if err != nil {
		return nil, err
	}
	c, err := e.Config()
	if err != nil {
		return nil, err
	}
	list := make([]cron.Expected, len(wanted))
	for i, l := range wanted {
		list[i] = cron.Expect(l, names)
		if l == cron.Usage {
			list[i].Profiles, list[i].Unmeasured = e.SplitByQuota(c.Selected())
		}
	}
	return list, nil
}

// Runs are the recorded runs of a verb, "" of any. A journal that cannot be read or
// trusted proves no run, and is an error beside the others.
func Runs(ctx context.Context, e *ops.Env, verb string) ([]cron.Run, []error) {
	list, errs := e.Runs().All(ctx, verb, ops.StatusRuns)
	c, err := e.Config()
	if err != nil {
		return nil, append(errs, err)
	}
	open := ops.WithoutOwner(c)
	var recorded []cron.Run
	for _, h := range list {
		if h.Broken != "" {
			continue
		}
		run := cleanup.CronRun(h)
		maps.DeleteFunc(run.Unowned, func(profile string, _ int) bool { return !slices.Contains(open, profile) }) // decided since
		recorded = append(recorded, run)
	}
	return recorded, errs
}

// findUnrecorded makes one check of all layers of which no run is recorded. undecided are the profiles
// without a configured owner: the message of a layer names them as what it would never end.
func (r *CheckResult) findUnrecorded(e *ops.Env, expected []cron.Expected, ownerUnset []string) {
	var names []string
	var unowned, unmeasured bool
	r.Without = make([]bool, len(r.Statuses))
	for i := range r.Statuses {
		s := &r.Statuses[i]
		if r.Without[i] = s.LastRun.IsZero() && len(expected[i].Profiles) > 0; !r.Without[i] { // of no profile nothing could be recorded
			continue
		}
		names = append(names, string(s.Layer))
		unmeasured = unmeasured || len(expected[i].Unmeasured) > 0
		if len(ownerUnset) > 0 && s.Layer != cron.Reconcile {
			unowned = true
			s.Message += "; of " + strings.Join(ownerUnset, ", ") + " it would terminate only sandboxes with the label " + sandbox.LabelOwner
		}
	}
	if len(names) == 0 {
		return
	}
	what, install, flags := "layer ", "install it", ""
	if len(names) > 1 {
		what, install = "layers ", "install them"
	}
	if len(names) < len(cron.Layers()) {
		flags = " --layer " + strings.Join(names, " --layer ")
	}
	hints := []string{install + ": `" + e.Process.Name() + " cron print" + flags + "`; a line without --yes does nothing and leaves no record, unless " + config.EnvUnattended + "=1 is set"}
	if unowned {
		hints = append(hints, e.OwnHint(ownerUnset))
	}
	if unmeasured {
		hints = append(hints, ops.HintMaxSandboxes)
	}
	r.Unrecorded = ops.ToolCheck(what+strings.Join(names, ", "), sandbox.Unknown, "no run is recorded", strings.Join(hints, "; "))
}

// layerHint is what to do about a layer that has run. variables says that the lines have no file of
// variables; "" = they have, or need none.
func layerHint(e *ops.Env, s *cron.Status, variables string) string {
	var hints []string
	switch {
	case s.Overdue && s.Refused:
		hints = append(hints, refusedLayerHint(e, *s))
	case s.Overdue:
		if variables != "" {
			hints = append(hints, variables)
		}
		hints = append(hints, "see cron's mail or `journalctl -u sbx-"+string(s.Layer)+"`, and run it by hand")
	}
	if len(s.Unowned) > 0 {
		hints = append(hints, e.OwnHint(slices.Sorted(maps.Keys(s.Unowned))))
	}
	return strings.Join(hints, "; ")
}

// missingVariables says that the file is missing from which cron lines read the variables that the
// profiles of this process come from; "" = it is there, or not needed.
func missingVariables(e *ops.Env) string {
	plan, err := PlanLines(e, PlanRequest{})
	if err != nil || len(plan.Needs) == 0 {
		return ""
	}
	if _, err := os.Stat(plan.EnvFile); err == nil {
		return ""
	}
	return "cron lines have no credentials: " + plan.EnvFile + " does not exist; write " + strings.Join(plan.Needs, ", ") + " into it, one NAME=value per line (chmod 600)"
}

// refusedLayerHint is what to do about a layer whose runs a guard refuses: the plan is looked at, and
// then more is allowed, once or for every run.
func refusedLayerHint(e *ops.Env, s cron.Status) string {
	line := append([]string{e.Process.Name()}, cron.Command(s.Ran)...)
	if len(s.Overrides) == 0 || len(line) == 1 {
		return "`" + e.Process.Name() + " cleanup show last` says which guard refused it"
	}
	plan := slices.DeleteFunc(slices.Clone(line), func(w string) bool { return w == "--yes" || w == "--fix" })
	return "`" + strings.Join(plan, " ") + "` shows the plan; once: " + safety.RetryLine(line, s.Overrides) +
		"; always: write " + strings.Join(s.Overrides, " ") + " into the cron line"
}

// PlanRequest says what cron lines shall do.
type PlanRequest struct {
	Layers      []cron.Layer
	Production  []string // production profiles in which the lines may act
	CheckOnly   bool     // reconcile only looks
	Emergency   bool     // layer usage also starts the providers' own emergency cleanup
	LockTimeout string
	Ping        string // "" = as configured
	Textfile    string
	EnvFile     string // "" = beside the user's configuration
}

// PlanLines says what cron lines need to do what this process would do.
func PlanLines(env *ops.Env, req PlanRequest) (cron.Plan, error) {
	c, err := env.Config()
	if err != nil {
		return cron.Plan{}, err
	}
	binary, err := env.Program()
	if err != nil {
		return cron.Plan{}, fault.New(fault.KindUnknown, "the path of this program is unknown: %w", err)
	}
	if err := env.RequireState(); err != nil {
		return cron.Plan{}, err
	}
	plan := cron.Plan{
		Binary: binary, StateDir: c.StateDir, Host: env.Process.Host, Only: req.Layers, CheckOnly: req.CheckOnly,
		MaxDelete: c.Limits.MaxDelete, MaxFraction: int(c.Limits.MaxFraction), LockTimeout: req.LockTimeout, Ping: req.Ping, Textfile: env.Path(req.Textfile), EnvFile: env.Path(req.EnvFile),
	}
	if env.Process.UID != 0 {
		plan.User = strconv.Itoa(env.Process.UID)
	}
	if err := cronProduction(env, &plan, c, req.Production); err != nil {
		return plan, err
	}
	cronProfiles(env, &plan, c)
	cronFiles(env, &plan, c)
	plan.Emergency = req.Emergency
	if req.Emergency && len(plan.MayEmergency) == 0 {
		return plan, fault.Usage("--emergency: no selected provider has its own emergency cleanup, reports a quota and is entirely yours").
			WithHint(
				"%s; production profiles need --production; `%s config own --provider PROFILE --all` makes all its sandboxes yours", ops.HintMaxSandboxes,
				env.Process.Name(),
			)
	}
	plan.WithoutOwner, plan.OwnerLabel = ops.WithoutOwner(c), sandbox.LabelOwner
	for _, p := range c.Selected() {
		if p.OwnerUnset() && env.TypeOf(p).NoLabels {
			plan.Unlabelled = append(plan.Unlabelled, p.Name)
		}
		if !env.TypeOf(p).KeepsRecords && len(c.SourcesOf(p.Name)) == 0 {
			plan.Unrecorded = append(plan.Unrecorded, p.Name)
		}
	}
	plan.Needs = slices.Sorted(maps.Keys(cronNeeds(env, c, plan)))
	if err := plan.Check(); err != nil {
		return plan, fault.Usage("%w", err).WithHint("choose shorter or plainer names, fewer profiles, or systemd units")
	}
	return plan, nil
}

// cronProduction sorts the selected production profiles into those that were asked for and the others, in
// which no line may act by itself.
func cronProduction(e *ops.Env, plan *cron.Plan, c *config.Config, asked []string) error {
	var all []string
	for _, p := range c.Selected() {
		if p.Production {
			all = append(all, p.Name)
		}
	}
	for _, name := range asked {
		if !slices.Contains(all, name) {
			return fault.Usage("--production: %q is no selected production profile", name).WithHint(
				"those are: %s; `%s config explain` shows `production`", cmp.Or(strings.Join(all, ", "), "none"), e.Process.Name(),
			)
		}
	}
	for _, name := range all {
		if slices.Contains(asked, name) {
			plan.Production = append(plan.Production, name)
		} else {
			plan.Withheld = append(plan.Withheld, name)
		}
	}
	return nil
}

// cronProfiles names the profiles, so that one that is missing later is an error
// and not a shorter run.
func cronProfiles(e *ops.Env, plan *cron.Plan, c *config.Config) {
	var names []string
	for _, p := range c.Selected() {
		names = append(names, p.Name)
		if p.HostProcesses {
			plan.HostProcesses = p.Type
		}
	}
	plan.Providers = names
	plan.Measured, _ = e.SplitByQuota(c.Selected())
	for _, p := range c.Selected() {
		if e.TypeOf(p).Emergency && p.Owned.All && !slices.Contains(plan.Withheld, p.Name) && slices.Contains(plan.Measured, p.Name) {
			plan.MayEmergency = append(plan.MayEmergency, p.Name)
		}
	}
}

// homeDiffers reports whether HOME is another one than cron starts in.
func homeDiffers(e *ops.Env) bool {
	home := e.Process.Getenv("HOME")
	return filepath.IsAbs(home) && filepath.Clean(home) != filepath.Clean(e.Process.Home)
}

// cronFiles has a run find the same files: cron starts in the home of the passwd
// entry, with next to nothing in its environment.
func cronFiles(e *ops.Env, plan *cron.Plan, c *config.Config) {
	for _, v := range c.Values() {
		if v.Key == "state_dir" && (strings.HasPrefix(v.Origin, "env ") || homeDiffers(e)) {
			plan.Env = append(plan.Env, config.EnvStateDir+"="+c.StateDir)
		}
	}
	home := filepath.Join(e.Process.Home, ".config")
	folder := filepath.Join(home, "sbx")
	switch f := c.File; f.Role {
	case config.RoleExplicit:
		plan.Config, folder = f.Path, filepath.Dir(f.Path)
	case config.RoleUser:
		folder = filepath.Dir(f.Path)
		if base := filepath.Dir(folder); f.Found && base != home {
			plan.Env = append(plan.Env, "XDG_CONFIG_HOME="+base)
		}
	}
	if plan.EnvFile == "" {
		plan.EnvFile = filepath.Join(folder, "cron.env")
	}
}

// cronNeeds are the variables that these profiles and their way to the network come
// from.
func cronNeeds(e *ops.Env, c *config.Config, plan cron.Plan) map[string]bool {
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
		return nested && key != "cleanup.unattended" // the lines act by themselves
	}
	return option != "type" && slices.ContainsFunc(c.Selected(), func(p config.Profile) bool { return p.Name == profile })
}
