package config

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

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
	if r.CommandTimeout > r.AttemptTimeout {
		list = append(list, clash{
			fmt.Sprintf("%s is longer than %s: the attempt ends first", r.settingWithOrigin(nameCommand), r.settingWithOrigin(nameAttempt)),
			"lower the one or raise the other",
			[]string{nameCommand, nameAttempt},
		})
	}
	if c, short := r.shortDeadline(); short {
		list = append(list, c)
	}
	if r.Switches.InactivityTimeout && r.Inactivity >= r.CommandTimeout {
		list = append(list, clash{
			fmt.Sprintf("%s is no shorter than %s: silence would never be noticed", r.settingWithOrigin(nameInactivity), r.settingWithOrigin(nameCommand)),
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

// settingWithOrigin is one value with its name and origin.
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
