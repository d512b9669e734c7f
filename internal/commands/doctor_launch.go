package commands

import (
	"fmt"
	"strings"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

const checkLaunching = "task launch"

// checkLaunch tells what stands in the way of launching tasks. No sandbox is out
// of reach for it, so what is wrong is a warning to a monitor.
func checkLaunch(c *config.Config) []checkRow {
	r, err := c.Run()
	if err != nil {
		return launchMistakes(err)
	}
	warnings, refused := r.Contradictions()
	var rows []checkRow
	if refused != nil {
		rows = launchMistakes(refused)
	}
	for _, text := range append(r.Warnings, warnings...) {
		rows = append(rows, toolCheck(checkLaunching, sandbox.False, text, "").inform())
	}
	return append(rows, openSizes(c, r)...)
}

func launchMistakes(err error) []checkRow {
	var rows []checkRow
	for _, mistake := range mistakes(err) {
		row := toolCheck(checkLaunching, sandbox.False, mistake.Error(), fault.HintOf(mistake))
		row.minor = true
		rows = append(rows, row)
	}
	return rows
}

// openSizes names what a service chooses for the sandbox of a task: a kill for
// memory that nobody asked for is hard to explain later.
func openSizes(c *config.Config, r config.Run) []checkRow {
	target, err := c.LaunchTarget()
	if err != nil || target.SizedByProfile {
		return nil
	}
	open := r.Size(target).Open()
	if len(open) == 0 {
		return nil
	}
	return []checkRow{toolCheck(checkLaunching, sandbox.Unknown, fmt.Sprintf("%s of a task at %s is what the provider chooses", strings.Join(open, " and "), target.Name),
		"set run."+strings.Join(open, " and run.")+" where the provider takes them; at others the template decides").inform()}
}
