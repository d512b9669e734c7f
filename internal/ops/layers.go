package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// lastRun stands for the newest bulk run.
const lastRun = "last"

// minRunPrefix is how much of a run's name must be given: less is hardly meant.
const minRunPrefix = 4

func meansRun(word, run string) bool {
	return word == lastRun || word == run || len(word) >= minRunPrefix && strings.HasPrefix(run, word)
}

// fewOf names some of many.
func fewOf(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// SplitByQuota parts profiles by whether it can be known how much of a quota they use.
func (e *Env) SplitByQuota(profiles []config.Profile) (known, unknown []string) {
	for _, p := range profiles {
		if e.TypeOf(p).TellsQuota || p.MaxSandboxes > 0 {
			known = append(known, p.Name)
		} else {
			unknown = append(unknown, p.Name)
		}
	}
	return known, unknown
}

// TypeOf is the type of a profile.
func (e *Env) TypeOf(p config.Profile) providers.Type { return e.typeNamed(p.Type) }

func (e *Env) typeNamed(name string) providers.Type {
	i := slices.IndexFunc(e.Types, func(t providers.Type) bool { return t.Name == name })
	if i < 0 {
		return providers.Type{}
	}
	return e.Types[i]
}

// ProfileFacts are those of a profile's type; none where it is not configured.
func (e *Env) ProfileFacts(name string) providers.Facts {
	c, err := e.Config()
	if err != nil {
		return providers.Facts{}
	}
	p, _ := c.Find(name)
	return p.Facts
}

// HidesEnded is selector.Facts.HidesEnded.
func (e *Env) HidesEnded(s sandbox.Sandbox) bool { return e.typeNamed(s.ProviderType).HidesEnded }

// cronRun is a recorded run as the layers judge it. One that cannot be trusted has
// succeeded nowhere.
func cronRun(h cleanup.History) cron.Run {
	run := cron.Run{
		Layer: cron.Layer(h.Begin.Layer), Shortfall: h.Begin.Shortfall, StartedAt: h.StartedAt, EndedAt: h.EndedAt,
		ExitCode: h.ExitCode(), Succeeded: h.Succeeded(), Unowned: h.Unowned(),
	}
	if h.End != nil {
		run.Error = h.End.Error
	}
	if run.Layer == "" && run.Shortfall == "" {
		run.Shortfall = cron.ShortfallNoLayer
	}
	return run
}

// CronRuns are the recorded runs of a verb, "" of any. A journal that cannot be read or
// trusted proves no run, and is an error beside the others.
func (e *Env) CronRuns(ctx context.Context, verb string) ([]cron.Run, []error) {
	list, errs := e.Histories(ctx, verb, StatusRuns)
	c, err := e.Config()
	if err != nil {
		return nil, append(errs, err)
	}
	open := Undecided(c)
	var runs []cron.Run
	for _, h := range list {
		if h.Broken != "" {
			continue
		}
		run := cronRun(h)
		maps.DeleteFunc(run.Unowned, func(profile string, _ int) bool { return !slices.Contains(open, profile) }) // decided since
		runs = append(runs, run)
	}
	return runs, errs
}

// sameRule compares rules as the journal keeps them.
func sameRule(a, b cleanup.Rule) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// ProfileNames are the names of the profiles that verbs work on.
func (e *Env) ProfileNames() ([]string, error) {
	c, err := e.Config()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range c.Selected() {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return nil, fault.Usage("no profile is selected").WithHint("`%s providers` lists them", e.Process.Name())
	}
	return names, nil
}

// ExpectedLayers are the layers that should run, over the profiles that verbs work on.
func (e *Env) ExpectedLayers(wanted []cron.Layer) ([]cron.Expected, error) {
	names, err := e.ProfileNames()
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

// Undecided are the selected profiles of which nobody has configured whose the
// sandboxes are: bulk endings touch only those that carry sandbox.LabelOwner.
func Undecided(c *config.Config) []string {
	var names []string
	for _, p := range c.Selected() {
		if p.Undecided() {
			names = append(names, p.Name)
		}
	}
	return names
}

// OwnHint is what to type so that the sandboxes of these profiles are somebody's.
func (e *Env) OwnHint(profiles []string) string {
	return "`" + e.Process.Name() + " config own" + cron.ProviderFlags(profiles) + " --all` makes all of them yours, `--label KEY=VALUE` those that carry it"
}

// UnownedText says how many sandboxes stay because nobody owns them, and what to type;
// "" = none.
func (e *Env) UnownedText(unowned map[string]int, what string) string {
	names := slices.Sorted(maps.Keys(unowned))
	total := 0
	parts := make([]string, len(names))
	for i, name := range names {
		total += unowned[name]
		parts[i] = fmt.Sprintf("%s %d", name, unowned[name])
	}
	if total == 0 {
		return ""
	}
	if total == 1 {
		return fmt.Sprintf("1 %s is kept because nobody owns it (%s): %s", strings.Replace(what, "sandboxes", "sandbox", 1), names[0], e.OwnHint(names))
	}
	return fmt.Sprintf("%d %s are kept because nobody owns them (%s): %s", total, what, strings.Join(parts, ", "), e.OwnHint(names))
}

// StatusRuns is how many of the newest runs are looked at: two days of one every
// five minutes.
const StatusRuns = 600

// CleanupStatus says whether cleanup runs (ACCEPTANCE R53-R57, R127): a run of the
// layer stuck or age that left nothing undone, in every profile. A run by another rule
// is shown as the last one and proves nothing.
func CleanupStatus(runs []cron.Run, profiles []string, every time.Duration, now time.Time) cron.Status {
	expected := cron.Expected{Layers: []cron.Layer{cron.Stuck, cron.Age, cron.Usage, ""}, Every: every, Profiles: profiles}
	for i, r := range runs {
		if r.Layer == cron.Usage && r.Shortfall == "" {
			runs[i].Shortfall = "it acts only where a quota runs short"
		}
	}
	s := cron.Judge([]cron.Expected{expected}, runs, now)[0]
	if s.LastRun.IsZero() {
		s.Verdict, s.Message = sandbox.False, s.Message+": the job is not running, runs elsewhere, or lacks --yes"
	}
	return s
}

// StatusHint is what to do about the status of cleanup.
func (e *Env) StatusHint(s cron.Status) string {
	if len(s.Unowned) > 0 && !s.Overdue {
		return e.OwnHint(slices.Sorted(maps.Keys(s.Unowned)))
	}
	return "`" + e.Process.Name() + " cleanup runs` shows what ran"
}

// HintMaxSandboxes is what stands in for a quota.
const HintMaxSandboxes = "set limits.max_sandboxes, or max_sandboxes in the profile: what runs is then counted against it"

// LayerHint is what to do about a layer. Of one that has not run yet the message says
// what it would never end: undecided are the profiles of which nobody has configured
// whose the sandboxes are.
func (e *Env) LayerHint(s *cron.Status, undecided []string) string {
	var hints []string
	switch {
	case s.Overdue:
		hints = append(hints, "look at cron's mail or `journalctl -u sbx-"+string(s.Layer)+"`, and run it by hand")
	case s.LastRun.IsZero():
		hints = append(hints, "install it: `"+e.Process.Name()+" cron print --layer "+string(s.Layer)+"`; a line without --yes does nothing and leaves no record")
		if len(undecided) > 0 && s.Layer != cron.Reconcile {
			s.Message += "; of " + strings.Join(undecided, ", ") + " it would end only what has the label " + sandbox.LabelOwner
			hints = append(hints, e.OwnHint(undecided))
		}
	}
	if len(s.Unowned) > 0 {
		hints = append(hints, e.OwnHint(slices.Sorted(maps.Keys(s.Unowned))))
	}
	return strings.Join(hints, "; ")
}

// ProductionNames are the names of the production profiles; none where the configuration cannot be read.
func (e *Env) ProductionNames() []string {
	c, err := e.Config()
	if err != nil {
		return nil
	}
	return c.Production
}
