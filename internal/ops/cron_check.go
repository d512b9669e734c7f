package ops

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// CronCheckRequest says which layers should run.
type CronCheckRequest struct {
	Layers []cron.Layer
	Notify bool // notify people of what is overdue
}

// CronCheckResult is the state of each layer, as a status and as a check.
type CronCheckResult struct {
	Statuses []cron.Status
	Checks   []Check
}

// CheckCron says from what is recorded whether the layers run.
func CheckCron(ctx context.Context, env *Env, req CronCheckRequest, watch Observer) (*CronCheckResult, error) {
	c, err := env.Config()
	if err != nil {
		return nil, err
	}
	expected, err := env.expectedLayers(req.Layers)
	if err != nil {
		return nil, err
	}
	runs, errs := env.cronRuns(ctx, "")
	if len(runs) == 0 && len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	r := &CronCheckResult{Statuses: cron.Judge(expected, runs, env.Now())}
	for i := range r.Statuses {
		s := &r.Statuses[i]
		hint := env.layerHint(s, Undecided(c))
		if len(expected[i].Unmeasured) > 0 {
			hint = strings.TrimPrefix(hint+"; "+hintMaxSandboxes, "; ")
		}
		r.Checks = append(r.Checks, ToolCheck("layer "+string(s.Layer), s.Verdict, s.Message, hint))
	}
	if req.Notify {
		env.notifyOverdue(ctx, watch, r.Statuses)
	}
	return r, nil
}

// expectedLayers are the layers that should run, over the profiles that verbs work on.
func (e *Env) expectedLayers(wanted []cron.Layer) ([]cron.Expected, error) {
	names, err := e.profileNames()
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
			list[i].Profiles, list[i].Unmeasured = e.splitByQuota(c.Selected())
		}
	}
	return list, nil
}

// profileNames are the names of the profiles that verbs work on.
func (e *Env) profileNames() ([]string, error) {
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

// cronRuns are the recorded runs of a verb, "" of any. A journal that cannot be read or
// trusted proves no run, and is an error beside the others.
func (e *Env) cronRuns(ctx context.Context, verb string) ([]cron.Run, []error) {
	list, errs := e.Histories(ctx, verb, statusRuns)
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

// layerHint is what to do about a layer. undecided are the profiles without a configured owner:
// for a layer that has not run yet, the message names them as what it would never end.
func (e *Env) layerHint(s *cron.Status, undecided []string) string {
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
