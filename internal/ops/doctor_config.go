package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// checkConfig checks the configuration that was loaded, and what it leaves out.
func (e *Env) checkConfig(ctx context.Context, c *config.Config) []Check {
	checks := []Check{soundConfig(c), checkState(c)}
	checks = append(checks, unattachedSources(c)...)
	checks = append(checks, e.partlySwitchedOn(c)...)
	checks = append(checks, checkLaunch(c)...)
	runs, _ := e.cronRuns(ctx, VerbCleanup) // `cleanup runs` says what cannot be read
	return append(checks, e.ownershipChecks(c, runs)...)
}

func soundConfig(c *config.Config) Check {
	names := make([]string, len(c.Profiles))
	for i, p := range c.Profiles {
		names[i] = p.Name
	}
	return ToolCheck("configuration", sandbox.True, "is valid; profiles: "+strings.Join(names, ", "), "")
}

// unattachedSources are the sources whose profile does not exist, so that they are never asked.
func unattachedSources(c *config.Config) []Check {
	var rows []Check
	for _, s := range c.Loose() {
		rows = append(rows, ToolCheck(s.Name, sandbox.Unknown, "is attached to "+s.Settings[providers.OptionAttach]+", which is not there in this run",
			"switch that profile on, or attach it to another").AsNote())
	}
	return rows
}

// partlySwitchedOn names the types of which some variables are set and others are not, so
// that no profile came of them, and nothing else says so.
func (e *Env) partlySwitchedOn(c *config.Config) []Check {
	var rows []Check
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
		rows = append(rows, ToolCheck(t.Name, sandbox.False, strings.Join(set, " and ")+" is set and makes no profile: "+strings.Join(unset, " and ")+" missing",
			"set what is missing too, or configure a profile of type "+t.Name).AsNote()) // the token may be there for something else
	}
	return rows
}

// brokenConfig is a row for every mistake.
func brokenConfig(err error) []Check {
	var rows []Check
	for _, mistake := range Mistakes(err) {
		rows = append(rows, ToolCheck("configuration", sandbox.False, mistake.Error(), fault.HintOf(mistake)))
	}
	return rows
}

const checkLaunching = "task launch"

// checkLaunch reports what prevents launching tasks. Existing sandboxes stay reachable, so a
// finding is a warning to a monitor.
func checkLaunch(c *config.Config) []Check {
	r, err := c.Run()
	if err != nil {
		return launchMistakes(err)
	}
	warnings, refused := r.Contradictions()
	var rows []Check
	if refused != nil {
		rows = launchMistakes(refused)
	}
	for _, text := range append(r.Warnings, warnings...) {
		rows = append(rows, ToolCheck(checkLaunching, sandbox.False, text, "").AsNote())
	}
	return append(rows, openSizes(c, r)...)
}

func launchMistakes(err error) []Check {
	var rows []Check
	for _, mistake := range Mistakes(err) {
		rows = append(rows, ToolCheck(checkLaunching, sandbox.False, mistake.Error(), fault.HintOf(mistake)).AsWarning())
	}
	return rows
}

// openSizes names the sizes that a service chooses for a task's sandbox: a memory limit that
// the user did not set makes a kill hard to explain.
func openSizes(c *config.Config, r config.Run) []Check {
	target, err := c.LaunchTarget()
	if err != nil || target.SizedByProfile {
		return nil
	}
	open := r.Size(target).Open()
	if len(open) == 0 {
		return nil
	}
	return []Check{ToolCheck(checkLaunching, sandbox.Unknown, fmt.Sprintf("%s of a task at %s is what the provider chooses", strings.Join(open, " and "), target.Name),
		"set run."+strings.Join(open, " and run.")+" where the provider takes them; at others the template decides").AsNote()}
}

// ownershipChecks say of each undecided profile what cleanup never ends, by its newest
// recorded run; a profile without any such run has a note.
func (e *Env) ownershipChecks(c *config.Config, runs []cron.Run) []Check {
	var rows []Check
	runs = slices.DeleteFunc(slices.Clone(runs), func(r cron.Run) bool { return r.Layer != cron.Stuck && r.Layer != cron.Age })
	for _, name := range Undecided(c) {
		row := ToolCheck("ownership", sandbox.True, "cleanup ends only what has the label "+sandbox.LabelOwner+": this profile switched itself on", e.OwnHint([]string{name})).AsNote()
		if n := cron.Unowned(runs, name); n > 0 {
			row = ToolCheck("ownership", sandbox.False, fmt.Sprintf("the last cleanup left %d stuck because nobody owns them", n), e.OwnHint([]string{name})).AsWarning()
		}
		row.Provider = name
		rows = append(rows, row)
	}
	return rows
}
