package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sbx/internal/check"
	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	opscron "sbx/internal/ops/cron"
	"sbx/internal/ops/recall"
	"sbx/internal/providers"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// DoctorResult is what the doctor has checked, of this tool first, then of each provider.
type DoctorResult struct {
	Checks  []ops.Check
	Trouble error // what ended it before all were checked
	// Subjects are the use of quotas at each provider, for conditions.
	Subjects []check.Subject
}

// Doctor checks this tool, its configuration and its providers. It also runs while the
// configuration is broken. An error is a wrong use.
func Doctor(ctx context.Context, env *ops.Env, watch ops.Observer) (*DoctorResult, error) {
	r := &DoctorResult{Checks: checkFile(env)}
	c, err := env.Config()
	switch {
	case err != nil && flagsAreWrong(ctx, env):
		return nil, err
	case err != nil:
		r.addChecks(brokenConfig(err)...)
	default:
		r.addChecks(checkConfig(ctx, env, c)...)
	}
	r.addChecks(checkPath(env)...)
	if c == nil {
		return r, nil
	}
	f, err := env.Fleet(ctx)
	switch {
	case fault.KindOf(err) == fault.KindUsage:
		return nil, err
	case err != nil:
		r.addChecks(ops.ToolCheck("providers", sandbox.False, err.Error(), fault.HintOf(err)))
		return r, nil
	}
	progress := watch.Progress("checking")
	defer progress.Done()
	for _, check := range f.Checks(ctx) {
		check.Message = strings.TrimPrefix(check.Message, check.Provider+": ") // the provider has a column of its own
		r.addChecks(ops.Check{ProviderCheck: check})
	}
	r.addChecks(recall.UnconfirmedChecks(ctx, env, f)...)
	quotas := f.Quotas(ctx)
	r.Subjects = quotaSubjects(env, f.Names(), quotas)
	for _, q := range quotas {
		r.addChecks(quotaChecks(q, env.Thresholds(sandbox.Sandbox{Provider: q.Provider}))...)
	}
	slices.SortStableFunc(r.Checks, func(a, b ops.Check) int { return cmp.Compare(a.Provider, b.Provider) })
	r.Trouble = context.Cause(ctx)
	return r, nil
}

func (r *DoctorResult) addChecks(checks ...ops.Check) { r.Checks = append(r.Checks, checks...) }

// flagsAreWrong says that the configuration loads without the flags: then it is
// the command line that has to be corrected.
func flagsAreWrong(ctx context.Context, e *ops.Env) bool {
	in := e.Input()
	if len(in.Flags) == 0 {
		return false
	}
	in.Flags = nil
	_, err := config.Load(ctx, in)
	return err == nil
}

// quotaChecks reports which limits of an account are nearly used up. A provider without known
// limits is no finding.
func quotaChecks(q fleet.ProviderQuota, limits triage.Thresholds) []ops.Check {
	row := func(verdict sandbox.Verdict, message, hint string) ops.Check {
		r := ops.ToolCheck(ops.CheckQuota, verdict, message, hint)
		r.Provider = q.Provider
		return r
	}
	switch {
	case fault.KindOf(q.Err) == fault.KindUnsupported:
		return []ops.Check{row(sandbox.Unknown, strings.TrimPrefix(q.Err.Error(), q.Provider+": "), fault.HintOf(q.Err)).AsNote()}
	case q.Err != nil:
		return []ops.Check{row(sandbox.Unknown, strings.TrimPrefix(q.Err.Error(), q.Provider+": "), fault.HintOf(q.Err))}
	}
	var near []ops.Check
	known := 0
	for _, one := range q.Quotas {
		share, ok := one.Share()
		if !ok || one.Limit == nil {
			continue
		}
		known++
		use := check.Subject{Limits: limits, Figures: triage.FleetSignals{QuotaUsed: &share}}
		if check.QuotaNear().Judge(&use) == sandbox.True {
			near = append(
				near,
				row(
					sandbox.False, quotaText(one),
					"`sbx cleanup --stuck --provider "+q.Provider+"` lists stuck ones and asks whether to terminate them; "+providers.OldestFirst(q.Provider)+" lists the oldest",
				),
			)
		}
	}
	if len(near) == 0 && known > 0 {
		return []ops.Check{row(sandbox.True, fmt.Sprintf("%d quotas checked, none nearly full", known), "")}
	}
	return near
}

func quotaText(q providers.Quota) string {
	where := ""
	if q.Scope != "" {
		where = " in " + q.Scope
	}
	return fmt.Sprintf("%s%s: %g of %g %s used", q.Name, where, *q.Used, *q.Limit, q.Unit)
}

// checkFile reports which configuration file is read, also while it is broken.
func checkFile(e *ops.Env) []ops.Check {
	f, err := config.Path(e.Input())
	if err != nil || f.Path == "" {
		return nil // the configuration itself says so
	}
	message := f.Path + " is read"
	if !f.Found {
		message = f.Path + " does not exist; no configuration is needed"
	}
	return []ops.Check{ops.ToolCheck(string(f.Role)+" file", sandbox.True, message, "").AsNote()}
}

func checkState(c *config.Config) ops.Check {
	const check = "state directory"
	dir, err := c.State()
	if err != nil {
		return ops.ToolCheck(check, sandbox.False, err.Error(), fault.HintOf(err))
	}
	return checkFolder(check, dir)
}

// checkFolder makes the folder and writes to it: a full disk, a foreign owner
// and a read-only file system show in no other way.
func checkFolder(check, folder string) ops.Check {
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(folder, ".probe-*"); err == nil {
			_, err = probe.WriteString("x")
			err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return ops.ToolCheck(check, sandbox.False, err.Error(), "make it writable for you, or name another with "+config.EnvStateDir)
	}
	return ops.ToolCheck(check, sandbox.True, folder+" can be written", "")
}

// commonName is what people type; other tools carry the name too.
const commonName = "sbx"

// checkPath looks for other programs called sbx on PATH. One that comes first
// is what the shell runs instead of this one.
func checkPath(e *ops.Env) []ops.Check {
	own, err := e.Program()
	if err != nil {
		return []ops.Check{ops.ToolCheck("name on PATH", sandbox.Unknown, "the path of this program is unknown: "+err.Error(), "").AsNote()}
	}
	found := programsOnPath(e.Process.Getenv("PATH"))
	var rows []ops.Check
	for i, path := range found {
		switch {
		case sameFile(path, own):
			continue
		case i == 0:
			rows = append(rows, ops.ToolCheck("name on PATH", sandbox.False, fmt.Sprintf("%s is another program, and `%s` runs it instead of %s", path, commonName, own),
				"Docker Sandboxes has a command of that name; put this one first on PATH, or install it under another name: help and messages then use that name").AsWarning())
		default:
			rows = append(rows, ops.ToolCheck("name on PATH", sandbox.True, path+" is another program of that name, later on PATH", "").AsNote())
		}
	}
	if len(rows) == 0 {
		return []ops.Check{ops.ToolCheck("name on PATH", sandbox.True, "no other program is called "+commonName, "")}
	}
	return rows
}

// programsOnPath lists the executables called sbx on PATH, each file once.
func programsOnPath(path string) []string {
	var found []string
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue // it depends on the working directory
		}
		for _, name := range []string{commonName, commonName + ".exe"} {
			file := filepath.Join(folder, name)
			info, err := os.Stat(file)
			if err != nil || !info.Mode().IsRegular() || (info.Mode()&0o111 == 0 && filepath.Ext(name) == "") {
				continue
			}
			known := false
			for _, f := range found {
				known = known || sameFile(f, file)
			}
			if !known {
				found = append(found, file)
			}
		}
	}
	return found
}

func sameFile(a, b string) bool {
	left, err := os.Stat(a)
	if err != nil {
		return false
	}
	right, err := os.Stat(b)
	return err == nil && os.SameFile(left, right)
}

// checkConfig checks the configuration that was loaded, and what it leaves out.
func checkConfig(ctx context.Context, e *ops.Env, c *config.Config) []ops.Check {
	checks := []ops.Check{soundConfig(c), checkState(c)}
	checks = append(checks, unattachedSources(c)...)
	checks = append(checks, partlySwitchedOn(e, c)...)
	for _, text := range c.Remarks {
		checks = append(checks, ops.ToolCheck("configuration", sandbox.False, text, "`"+e.Process.Name()+" config explain` shows the values").AsNote())
	}
	checks = append(checks, checkLaunch(c)...)
	checks = append(checks, checkNotify(c)...)
	runs, _ := opscron.Runs(ctx, e, runs.VerbCleanup) // `cleanup runs` says what cannot be read
	return append(checks, ownershipChecks(e, c, runs)...)
}

// checkNotify says what notifications lack. It is a note: cron may have variables that this shell
// has not.
func checkNotify(c *config.Config) []ops.Check {
	var rows []ops.Check
	for _, text := range c.Notify.Unset {
		rows = append(rows, ops.ToolCheck("notify", sandbox.Unknown, text, "nobody is notified there; `sbx config explain` shows the settings").AsNote())
	}
	return rows
}

func soundConfig(c *config.Config) ops.Check {
	names := make([]string, len(c.Profiles))
	for i, p := range c.Profiles {
		names[i] = p.Name
	}
	return ops.ToolCheck("configuration", sandbox.True, "is valid; profiles: "+strings.Join(names, ", "), "")
}

// unattachedSources are the sources whose profile does not exist, so that they are never asked.
func unattachedSources(c *config.Config) []ops.Check {
	var rows []ops.Check
	for _, s := range c.Loose() {
		rows = append(rows, ops.ToolCheck(s.Name, sandbox.Unknown, "is attached to "+s.Settings[providers.OptionAttach]+", which is not configured in this run",
			"enable that profile, or attach it to another").AsNote())
	}
	return rows
}

// partlySwitchedOn names the types of which some variables are set and others are not, so
// that no profile came of them, and nothing else says so.
func partlySwitchedOn(e *ops.Env, c *config.Config) []ops.Check {
	var rows []ops.Check
	for _, t := range e.Types {
		var set, unset []string
		for _, name := range t.SwitchedOn {
			if e.Process.Getenv(name) == "" {
				unset = append(unset, name)
			} else {
				set = append(set, name)
			}
		}
		there := slices.ContainsFunc(c.Profiles, func(p config.Profile) bool { return p.Type == t.Name })
		if len(set) == 0 || len(unset) == 0 || there {
			continue
		}
		rows = append(rows, ops.ToolCheck(t.Name, sandbox.False, strings.Join(set, " and ")+" is set but enables no profile: "+strings.Join(unset, " and ")+" missing",
			"also set what is missing, or configure a profile of type "+t.Name).AsNote()) // the token may be there for something else
	}
	return rows
}

func brokenConfig(err error) []ops.Check {
	var rows []ops.Check
	for _, mistake := range ops.Mistakes(err) {
		rows = append(rows, ops.ToolCheck("configuration", sandbox.False, mistake.Error(), fault.HintOf(mistake)))
	}
	return rows
}

const checkLaunching = "task launch"

// checkLaunch reports what prevents launching tasks. Existing sandboxes stay reachable, so a
// finding is a warning to a monitor.
func checkLaunch(c *config.Config) []ops.Check {
	r, err := c.Run()
	if err != nil {
		return launchMistakes(err)
	}
	warnings, refused := r.Contradictions()
	var rows []ops.Check
	if refused != nil {
		rows = launchMistakes(refused)
	}
	for _, text := range append(r.Warnings, warnings...) {
		rows = append(rows, ops.ToolCheck(checkLaunching, sandbox.False, text, "").AsNote())
	}
	return append(rows, openSizes(c, r)...)
}

func launchMistakes(err error) []ops.Check {
	var rows []ops.Check
	for _, mistake := range ops.Mistakes(err) {
		rows = append(rows, ops.ToolCheck(checkLaunching, sandbox.False, mistake.Error(), fault.HintOf(mistake)).AsWarning())
	}
	return rows
}

// openSizes names the sizes that a service chooses for a task's sandbox: a memory limit that
// the user did not set makes a kill hard to explain.
func openSizes(c *config.Config, r config.Run) []ops.Check {
	target, err := c.LaunchTarget()
	if err != nil || target.SizedByProfile {
		return nil
	}
	open := r.Size(target).Open()
	if len(open) == 0 {
		return nil
	}
	return []ops.Check{ops.ToolCheck(checkLaunching, sandbox.Unknown, fmt.Sprintf(
		"the provider chooses %s of a task at %s", strings.Join(open, " and "), target.Name,
	),
		"set run."+strings.Join(open, " and run.")+" where the provider supports them; elsewhere the template decides").AsNote()}
}

// ownershipChecks say of each undecided profile what cleanup never ends, by its newest
// recorded run; a profile without any such run has a note.
func ownershipChecks(e *ops.Env, c *config.Config, runs []cron.Run) []ops.Check {
	var rows []ops.Check
	runs = slices.DeleteFunc(slices.Clone(runs), func(r cron.Run) bool { return r.Layer != cron.Stuck && r.Layer != cron.Age })
	for _, name := range ops.WithoutOwner(c) {
		row := ops.ToolCheck(
			"ownership", sandbox.Unknown, "no owner is configured: cleanup terminates only what sbx created (label "+sandbox.LabelOwner+")",
			e.OwnHint([]string{name}),
		).AsNote()
		if n := cron.Unowned(runs, name); n > 0 {
			row = ops.ToolCheck(
				"ownership", sandbox.False, fmt.Sprintf("the last cleanup skipped %d that its rule selects because nobody owns them", n),
				e.OwnHint([]string{name}),
			)
		}
		row.Provider = name
		rows = append(rows, row)
	}
	return rows
}
