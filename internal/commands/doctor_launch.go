package commands

import (
	"fmt"
	"strings"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const checkLaunching = "task launch"

// checkLaunch tells what stands in the way of launching tasks. No sandbox is out
// of reach for it, so what is wrong is a warning to a monitor.
func checkLaunch(c *config.Config) []views.CheckRow {
	r, err := c.Run()
	if err != nil {
		return launchMistakes(err)
	}
	warnings, refused := r.Contradictions()
	var rows []views.CheckRow
	if refused != nil {
		rows = launchMistakes(refused)
	}
	for _, text := range append(r.Warnings, warnings...) {
		rows = append(rows, views.ToolCheck(checkLaunching, sandbox.False, text, "").Inform())
	}
	return append(rows, openSizes(c, r)...)
}

func launchMistakes(err error) []views.CheckRow {
	var rows []views.CheckRow
	for _, mistake := range ops.Mistakes(err) {
		row := views.ToolCheck(checkLaunching, sandbox.False, mistake.Error(), fault.HintOf(mistake))
		row.Minor = true
		rows = append(rows, row)
	}
	return rows
}

// openSizes names what a service chooses for the sandbox of a task: a kill for
// memory that nobody asked for is hard to explain later.
func openSizes(c *config.Config, r config.Run) []views.CheckRow {
	target, err := c.LaunchTarget()
	if err != nil || target.SizedByProfile {
		return nil
	}
	open := r.Size(target).Open()
	if len(open) == 0 {
		return nil
	}
	return []views.CheckRow{views.ToolCheck(checkLaunching, sandbox.Unknown, fmt.Sprintf("%s of a task at %s is what the provider chooses", strings.Join(open, " and "), target.Name),
		"set run."+strings.Join(open, " and run.")+" where the provider takes them; at others the template decides").Inform()}
}
