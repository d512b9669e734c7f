package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Run is the settings for launching a task: each value from the flag, else the
// environment, else the files, else the default (docs/TASKS.md).
//
// Its text forms show nothing of it: an address can hold a secret.
type Run struct {
	CommandTimeout time.Duration // one command in a sandbox, 300s
	AttemptTimeout time.Duration // create, command and collecting together, 600s
	Deadline       time.Duration // the whole task with all its attempts, 35m
	Inactivity     time.Duration // silence after which a command counts as stalled, 60s
	Attempts       int           // sandboxes that are tried, 3
	RetryDelay     time.Duration // before the second attempt, 6s; RetryFactor, RetrySpread and RetryCap say what follows
	KeepAliveTTL   time.Duration // how long a sandbox that is kept after its task may wait, 1h
	CallbackURL    string        // where the control plane receives reports on the task; "" = nowhere
	Switches       Switches
	Here, Remote   Size // what a sandbox of a profile with sizes of its own and one elsewhere gets, as far as somebody said it

	// Origins says where each value comes from, by its name below `run:`; a name
	// that is missing has its default.
	Origins map[string]string
	// Warnings is what the launching verb has to tell of how the values came
	// about, one line each.
	Warnings []string
}

// String says nothing: an address can hold a secret.
func (r Run) String() string { return "run settings" }

// GoString is String.
func (r Run) GoString() string { return r.String() }

// Given says that somebody set the value of that name: a flag, the environment
// or a file.
func (r Run) Given(name string) bool { return r.Origins[name] != "" }

// Switches turn single protections of a task off; all are on by default. None of
// them reaches the publish gate: what was stopped or has timed out is never
// published.
type Switches struct {
	DBBackedStop         bool // another process may stop the task
	CancellationChecks   bool // the runner looks for stop requests while it works
	HealthProbe          bool // a sandbox is asked whether it lives before it is used again
	InactivityTimeout    bool // silence ends a command
	AuthoritativeTimeout bool // a timeout ends the sandbox too, and sees that it is gone
}

// Run gives the settings of task launch. Environment variables that say nothing
// usable are fault.KindUsage, all of them at once, and each names its variable:
// only the verbs that launch have to fail for them.
func (c *Config) Run() (Run, error) {
	if len(c.runMistakes) > 0 {
		return Run{}, errors.Join(c.runMistakes...)
	}
	r := c.run
	r.Origins, r.Warnings = maps.Clone(r.Origins), slices.Clone(r.Warnings)
	return r, nil
}

// resolveRun settles the values that hold. They were checked where they came in, with
// their place.
func (l *loader) resolveRun() {
	origins := map[string]string{}
	for _, s := range runSettings() {
		if e, _ := l.layers.lookup(s.settingKey()); e.origin != originDefault {
			origins[s.name] = e.origin
		}
	}
	l.config.run = Run{
		CommandTimeout: time.Duration(l.runAmount(nameCommand)),
		AttemptTimeout: time.Duration(l.runAmount(nameAttempt)),
		Deadline:       time.Duration(l.runAmount(nameDeadline)),
		Inactivity:     time.Duration(l.runAmount(nameInactivity)),
		Attempts:       int(l.runAmount(nameAttempts)),
		RetryDelay:     time.Duration(l.runAmount(nameRetryDelay)),
		KeepAliveTTL:   time.Duration(l.runAmount("keep_alive_ttl")),
		CallbackURL:    l.runText(nameCallback),
		Switches: Switches{
			DBBackedStop:         l.runOn("db_backed_stop"),
			CancellationChecks:   l.runOn("cancellation_checks"),
			HealthProbe:          l.runOn("health_probe"),
			InactivityTimeout:    l.runOn("inactivity_timeout"),
			AuthoritativeTimeout: l.runOn("authoritative_timeout"),
		},
		Here:     l.sizeHere(),
		Remote:   l.sizeRemote(),
		Origins:  origins,
		Warnings: l.runWarnings,
	}
	l.keepAddress(l.config.run.CallbackURL)
}

func (l *loader) runText(name string) string { return l.text(keyRun + "." + name) }

func (l *loader) runOn(name string) bool { return l.runText(name) == wordTrue }

func (l *loader) runAmount(name string) int64 { return l.amount(keyRun + "." + name) }

// The waits between attempts: RetryDelay, then RetryFactor times the one before,
// each longer or shorter by at most RetrySpread percent, none longer than RetryCap.
const (
	RetryFactor = 2
	RetrySpread = 50 // percent
	RetryCap    = 60 * time.Second
)

// LongestWaits is the sum of the longest waits that can lie between all attempts.
func (r Run) LongestWaits() time.Duration {
	total, delay := time.Duration(0), r.RetryDelay
	for n := 1; n < r.Attempts; n++ {
		total += min(RetryCap, delay+delay*RetrySpread/100)
		delay = min(RetryCap, delay*RetryFactor)
	}
	return total
}

// clash is two limits that cannot both do their work.
type clash struct {
	text  string
	hint  string
	among []string // the values that make it one
}

// Contradictions finds limits that cancel each other. One is refused
// (fault.KindUsage) where somebody set all values involved, and a warning where
// one is a default: who sets a single limit is told what it does to the others,
// and not kept from it.
func (r Run) Contradictions() (warnings []string, refused error) {
	var errs []error
	for _, c := range r.runContradictions() {
		if r.givenAll(c.among) {
			errs = append(errs, fault.Usage("%s", c.text).WithHint("%s", c.hint))
			continue
		}
		warnings = append(warnings, c.text+"; "+c.hint)
	}
	return warnings, errors.Join(errs...)
}

func (r Run) givenAll(names []string) bool {
	for _, name := range names {
		if !r.Given(name) {
			return false
		}
	}
	return true
}

func (r Run) runContradictions() []clash {
	var list []clash
	if r.Given(nameCommand) && r.CommandTimeout > r.AttemptTimeout {
		list = append(list, clash{
			fmt.Sprintf("%s is longer than %s: the attempt ends first", r.settingWithOrigin(nameCommand), r.settingWithOrigin(nameAttempt)),
			"lower the one or raise the other",
			[]string{nameCommand, nameAttempt},
		})
	}
	if c, short := r.shortDeadline(); short {
		list = append(list, c)
	}
	if r.Given(nameInactivity) && r.Switches.InactivityTimeout && r.Inactivity >= r.CommandTimeout {
		list = append(list, clash{
			fmt.Sprintf("%s is not shorter than %s: inactivity would never be detected", r.settingWithOrigin(nameInactivity), r.settingWithOrigin(nameCommand)),
			"lower inactivity, or switch inactivity_timeout off",
			[]string{nameInactivity, nameCommand},
		})
	}
	return list
}

// shortDeadline says which values make the deadline too short: with one attempt
// that does not fit, their number is not to blame.
func (r Run) shortDeadline() (clash, bool) {
	among := []string{nameDeadline, nameAttempt}
	attempts := time.Duration(r.Attempts) * r.AttemptTimeout
	need, what := r.AttemptTimeout, r.settingWithOrigin(nameAttempt)
	switch {
	case r.Deadline < r.AttemptTimeout:
	case r.Deadline < attempts:
		among = append(among, nameAttempts)
		need, what = attempts, r.settingWithOrigin(nameAttempts)+" of "+r.settingWithOrigin(nameAttempt)
	case r.Deadline < attempts+r.LongestWaits():
		among = append(among, nameAttempts, nameRetryDelay)
		need, what = attempts+r.LongestWaits(), r.settingWithOrigin(nameAttempts)+" of "+r.settingWithOrigin(nameAttempt)+" with "+r.settingWithOrigin(nameRetryDelay)
	default:
		return clash{}, false
	}
	return clash{
		fmt.Sprintf("%s is shorter than %s, which can take %s", r.settingWithOrigin(nameDeadline), what, sandbox.FormatExactDuration(need)),
		"raise deadline to " + sandbox.FormatExactDuration(need) + ", or lower the others", among,
	}, true
}

func (r Run) settingWithOrigin(name string) string {
	origin := originDefault
	if r.Given(name) {
		origin = r.Origins[name]
	}
	return fmt.Sprintf("%s %s (%s)", name, r.valueOf(name), origin)
}

func (r Run) valueOf(name string) string {
	switch name {
	case nameCommand:
		return sandbox.FormatExactDuration(r.CommandTimeout)
	case nameAttempt:
		return sandbox.FormatExactDuration(r.AttemptTimeout)
	case nameDeadline:
		return sandbox.FormatExactDuration(r.Deadline)
	case nameInactivity:
		return sandbox.FormatExactDuration(r.Inactivity)
	case nameRetryDelay:
		return sandbox.FormatExactDuration(r.RetryDelay)
	}
	return strconv.Itoa(r.Attempts)
}
