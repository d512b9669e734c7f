package commands

import (
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/ops/end"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
)

const cleanupSchema = "sbx.cleanup/v1"

// cleanupOptions are the flags as typed.
type cleanupOptions struct {
	selectors selectorFlags

	failedOlderThan, idleFor                                         string
	ignoreActivity, includePaused, includeFailed, unowned, unhealthy bool

	maxDelete, maxFraction, concurrency string
	production                          []string

	delete               bool
	wait, grace          string
	yes, dry, detailed   bool
	out, apply, resume   string
	maxPlanAge, lockWait string
	explain              string
	usageAbove           string
	textfile, ping       string
	every                string

	emergency, providerSide bool
}

func (o *cleanupOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.selectors.addSelectingFlags(f)
	f.StringVar(&o.failedOlderThan, "failed-older-than", "", "for failed ones, this `AGE` instead of --older-than")
	f.StringVar(&o.idleFor, "idle-for", "", "a running one must have been inactive for `DURATION`, instead of thresholds.inactivity")
	f.BoolVar(&o.ignoreActivity, "ignore-activity", false, "also terminate active sandboxes; use age only")
	f.BoolVar(&o.unhealthy, "unhealthy", false, "only those listed as running but not responding")
	f.BoolVar(&o.includePaused, "include-paused", false, "also paused ones; with --delete, their snapshots too")
	f.BoolVar(&o.includeFailed, "include-failed", false, "also failed ones that the provider keeps")
	f.BoolVar(&o.unowned, "unowned", false, "also sandboxes that are not yours")
	f.StringVar(&o.maxDelete, "max-delete", "20", "refuse to terminate more than `N`")
	f.StringVar(&o.maxFraction, "max-fraction", "25%", "refuse more than this `SHARE` of a profile's sandboxes")
	f.StringSliceVar(&o.production, "production", nil, "allow production profile `NAME` (repeatable)")
	f.BoolVar(&o.delete, "delete", false, "also delete what the provider would keep: disk, logs, snapshot")
	f.StringVar(&o.concurrency, "concurrency", "16", "at most `N` requests in flight to one provider")
	f.StringVar(&o.wait, "wait", "", "wait `DURATION` for each end to be verified, then exit 8 ("+defaultWait()+")")
	f.StringVar(&o.grace, "grace", sandbox.FormatDuration(end.EndGrace), "`DURATION` between SIGTERM and SIGKILL")
	f.BoolVar(&o.yes, "yes", false, "do it")
	f.BoolVar(&o.dry, "dry-run", false, "print the plan and change nothing, also unattended")
	f.StringVar(&o.out, "out", "", "write the plan to `FILE` and change nothing")
	f.StringVar(&o.apply, "apply", "", "terminate at most the sandboxes of the plan in `FILE`")
	f.StringVar(&o.maxPlanAge, "max-plan-age", "1h", "refuse a plan older than `DURATION`")
	f.StringVar(&o.resume, "resume", "", "continue `RUN`, which was interrupted")
	f.StringVar(&o.explain, "explain", "", "explain each check for `REF` and change nothing")
	f.StringVar(&o.usageAbove, "if-usage-above", "", "act only if more than this `SHARE` of the quota is used")
	f.BoolVar(&o.providerSide, "provider-side", false, "run the provider's own cleanup")
	f.BoolVar(&o.emergency, "emergency", false, "run the provider's emergency cleanup of everything not critical")
	f.StringVar(&o.every, "every", "", "repeat, with `DURATION` between two runs")
	f.StringVar(&o.textfile, "textfile", "", "write metrics for Prometheus to `FILE`")
	f.StringVar(&o.ping, "ping", "", "ping the dead-man's switch at `URL` at start and end")
	f.StringVar(&o.lockWait, "lock-timeout", "", "wait `DURATION` for another run to finish, then exit 12")
	f.BoolVar(&o.detailed, "detailed-exitcode", false, "exit 10 when the plan is not empty")
	f.SortFlags = false
	groupFlags(f, []flagGroup{
		{"Which sandboxes", []string{
			"stuck", "older-than", "younger-than", "before", "after", "state", "label", "name", "task", "agent-type", "owner", "template", "exit-code", "where",
			"idle-for", "failed-older-than", "include-failed", "include-paused", "unhealthy", "ignore-activity", "unowned",
		}},
		{"Limits", []string{"max-delete", "max-fraction", "production", "if-usage-above"}},
		{"What is done", []string{"yes", "dry-run", "delete", "grace", "wait", "concurrency", "provider-side", "emergency"}},
		{"Plans and runs", []string{"out", "apply", "max-plan-age", "explain", "resume"}},
		{"Unattended", []string{"every", "lock-timeout", "textfile", "ping", "detailed-exitcode"}},
	})
	o.selectors.registerCompletions(cmd)
}

// readRequest reads every flag; nothing has been called when it refuses. RuleGiven = the flags
// select; else the default rule does, which is --stuck.
func (o *cleanupOptions) readRequest(cmd *cobra.Command, d *Deps) (req end.CleanupRequest, ruleGiven bool, err error) {
	req = end.CleanupRequest{
		Production: o.production, Profiles: d.Globals.Providers, Resume: o.resume, ProviderSide: o.providerSide, Emergency: o.emergency,
		Yes: o.yes, Explain: o.explain != "", Textfile: d.Path(o.textfile), Ping: o.ping,
	}
	if err := o.readDurations(&req); err != nil {
		return req, false, err
	}
	if err := o.refuseContradictions(cmd); err != nil {
		return req, false, err
	}
	if o.out != "" {
		if err := hostfile.CheckOutput(d.Path(o.out)); err != nil {
			return req, false, err
		}
	}
	if ruleGiven, err = o.readRule(cmd, &req.Rule, d.Now()); err != nil {
		return req, ruleGiven, err
	}
	d.Globals.Settings = map[string]string{}
	for _, name := range []string{"max-delete", "max-fraction", "concurrency"} {
		if f := cmd.Flags().Lookup(name); f.Changed {
			d.Globals.Settings[name] = f.Value.String()
		}
	}
	c, err := d.Config()
	if err == nil {
		_, err = d.Limits(c, o.production)
	}
	if err != nil {
		return req, ruleGiven, err
	}
	o.addUnattendedYes(d, c.Unattended)
	req.Yes = o.yes
	return req, ruleGiven, o.checkYes(ruleGiven, cmd.Flags().Changed("yes"))
}

// addUnattendedYes sets --yes for a run without a terminal where the configuration allows that such a run
// acts. A run that was asked for a plan alone stays a plan.
func (o *cleanupOptions) addUnattendedYes(d *Deps, allowed bool) {
	onlyPlans := o.dry || o.detailed || o.out != "" || o.explain != ""
	if allowed && !onlyPlans && !d.isAttended() {
		o.yes = true
	}
}

// checkYes refuses --every without --yes, since only an act is worth repeating, and --yes without a rule: the
// default rule is for looking. Typed = --yes is in the command line, and not only in the configuration.
func (o *cleanupOptions) checkYes(ruleGiven, typed bool) error {
	if o.every != "" && !o.yes {
		return fault.Usage("--every needs --yes").WithHint("%s", unattendedWays)
	}
	if !o.yes || ruleGiven || o.hasOwnRule() {
		return nil
	}
	what := "an unattended cleanup"
	if typed {
		what = "--yes"
	}
	return fault.New(fault.KindRefused, "%s needs a selector: no rule was given", what).
		WithHint("see the plan with --dry-run; then repeat with --stuck, or with --older-than")
}

// unattendedWays are the two ways to let a cleanup without a terminal act.
const unattendedWays = "add --yes, or let every cleanup without a terminal act: `cleanup: {unattended: true}` in the configuration, or " + config.EnvUnattended + "=1 in the crontab"

func (o *cleanupOptions) readDurations(req *end.CleanupRequest) error {
	for _, m := range []struct {
		flag, text string
		to         *time.Duration
	}{
		{"--wait", o.wait, &req.Wait},
		{"--grace", o.grace, &req.Grace},
		{"--max-plan-age", o.maxPlanAge, &req.MaxPlanAge},
		{"--lock-timeout", o.lockWait, &req.LockWait},
		{"--every", o.every, &req.Every},
		{"--idle-for", o.idleFor, &req.Rule.IdleFor},
		{"--failed-older-than", o.failedOlderThan, &req.Rule.FailedOlderThan},
	} {
		d, err := optionalDuration(m.flag, m.text)
		if err != nil {
			return err
		}
		*m.to = d
	}
	if o.every != "" {
		if err := refuseShort("--every", req.Every); err != nil {
			return err
		}
	}
	if o.usageAbove == "" {
		return nil
	}
	share, err := config.ParsePercent(o.usageAbove)
	if err != nil {
		return fault.Usage("--if-usage-above: %w", err)
	}
	req.UsageAbove = int(share)
	return nil
}

// refuseShort refuses a duration of less than a second.
func refuseShort(flag string, d time.Duration) error {
	if d < time.Second {
		return fault.Usage("%s: %s is too short", flag, sandbox.FormatDuration(d)).WithHint("1s at least")
	}
	return nil
}

// optionalDuration reads a duration that may be left out; one that was given empty
// is refused before.
func optionalDuration(flag, text string) (time.Duration, error) {
	return optionalFlag(flag, text, sandbox.ParseDuration)
}

// optionalAge reads a moment in the past that may be left out, as the time since then.
func optionalAge(flag, text string, now time.Time) (time.Duration, error) {
	return optionalFlag(flag, text, func(text string) (time.Duration, error) { return sandbox.ParseAge(text, now) })
}

func optionalFlag(flag, text string, parse func(string) (time.Duration, error)) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := parse(text)
	if err != nil {
		return 0, fault.Usage("%s: %w", flag, err)
	}
	return d, nil
}

// hasOwnRule reports whether the rule does not come from selectingFlags: a plan and a journal have theirs, and a
// provider's own cleanup has its own.
func (o *cleanupOptions) hasOwnRule() bool {
	return o.apply != "" || o.resume != "" || o.emergency || o.providerSide
}

// selectingFlags are the flags that make a rule.
func selectingFlags() []string {
	return []string{
		"state", "older-than", "younger-than", "before", "after", "label", "name", "task", "agent-type", "owner", "template", "exit-code", "where", "stuck", "failed-older-than",
		"idle-for", "ignore-activity", "unhealthy", "include-paused", "include-failed", "unowned", "delete",
	}
}

// refuseContradictions refuses flags that contradict each other. A selector beside a plan is refused too:
// it could be read as one that narrows the plan, or as one that widens it.
func (o *cleanupOptions) refuseContradictions(cmd *cobra.Command) error {
	f := cmd.Flags()
	var modes []string // without one, the flags make a rule, which is shown or carried out
	for _, name := range []string{"dry-run", "out", "apply", "resume", "explain", "provider-side", "emergency"} {
		if f.Changed(name) {
			modes = append(modes, "--"+name)
		}
	}
	if len(modes) > 1 {
		return fault.Usage("%s and %s exclude each other", modes[0], modes[1])
	}
	if o.yes && (o.dry || o.out != "" || o.explain != "") {
		return fault.Usage("%s does nothing, so --yes has no meaning with it", modes[0])
	}
	if o.every != "" && len(modes) > 0 {
		return fault.Usage("--every needs --yes and cannot be combined with another mode")
	}
	if o.resume != "" && o.usageAbove != "" {
		return fault.Usage("--resume has its own rule, so --if-usage-above has no meaning with it").WithHint("start a new run with it")
	}
	if !o.hasOwnRule() {
		return nil
	}
	for _, name := range selectingFlags() {
		if f.Changed(name) {
			return fault.Usage("%s has its own rule, so --%s has no meaning with it", modes[0], name).
				WithHint("make a new plan with the selectors that you want")
		}
	}
	return nil
}

// readRule reads the flags that select; without one the rule is --stuck.
func (o *cleanupOptions) readRule(cmd *cobra.Command, rule *cleanup.Rule, now time.Time) (ruleGiven bool, err error) {
	if rule.Selector, err = selector.Compile(o.selectors.selectorOptions(now)); err != nil {
		return false, err
	}
	rule.IgnoreActivity = o.ignoreActivity
	rule.IncludePaused, rule.IncludeFailed = o.includePaused, o.includeFailed
	rule.Unowned, rule.Unhealthy, rule.Delete = o.unowned, o.unhealthy, o.delete
	ruleGiven = rule.Chooses() || cmd.Flags().Changed("stuck")
	if !ruleGiven {
		rule.Selector.Stuck = true
	}
	return ruleGiven, nil
}
