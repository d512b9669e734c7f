package views

import (
	"fmt"
	"strings"

	"sbx/internal/ops"
	"sbx/internal/output"
)

// The exit codes of a monitoring plugin (Nagios plugin guidelines); they are separate from
// those of sbx.
const (
	pluginOK       = 0
	pluginWarning  = 1
	pluginCritical = 2
	pluginUnknown  = 3
)

// ShowPlugin prints a check as a monitoring plugin does and returns its exit
// code: one line for the state, then one for each row that is not in order.
func ShowPlugin(p *output.Printer, rows []ops.Check, trouble error) error {
	if trouble != nil {
		return PluginFailed(p, trouble)
	}
	line, code := PluginLine(rows)
	if err := p.Line(line); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Err() == nil {
			continue
		}
		if err := p.Line(string(r.Status()) + ": " + pluginText(checkTitle(r))); err != nil {
			return err
		}
	}
	return pluginExit(code)
}

// PluginFailed is the plugin's answer when it could not ask at all.
func PluginFailed(p *output.Printer, err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if err := p.Line("SBX UNKNOWN: " + pluginText(text)); err != nil {
		return err
	}
	return pluginExit(pluginUnknown)
}

func pluginExit(code int) error {
	if code == pluginOK {
		return nil
	}
	return ops.ProgramExit{Code: code}
}

// PluginLine is what a monitor shows: the state, the first thing that is
// wrong, and figures behind the bar. What is wrong weighs more than what is
// unknown, and that more than a warning.
func PluginLine(rows []ops.Check) (string, int) {
	n, first := make(map[ops.CheckStatus]int), make(map[ops.CheckStatus]string)
	for _, r := range rows {
		if n[r.Status()]++; n[r.Status()] == 1 {
			first[r.Status()] = checkTitle(r)
		}
	}
	code, state, text := pluginOK, "OK", fmt.Sprintf("%d of %d checks in order", n[ops.CheckOK], len(rows)-n[ops.CheckNote])
	for _, s := range []struct {
		code   int
		state  string
		status ops.CheckStatus
	}{{pluginWarning, "WARNING", ops.CheckWarning}, {pluginUnknown, "UNKNOWN", ops.CheckUnknown}, {pluginCritical, "CRITICAL", ops.CheckProblem}} {
		if n[s.status] > 0 {
			code, state, text = s.code, s.state, first[s.status]
		}
	}
	figures := fmt.Sprintf("checks=%d problems=%d warnings=%d unknown=%d", len(rows), n[ops.CheckProblem], n[ops.CheckWarning], n[ops.CheckUnknown])
	return "SBX " + state + ": " + pluginText(text) + " | " + figures, code
}

// pluginText keeps a text out of the figures: monitors cut lines at the bar.
func pluginText(text string) string { return strings.ReplaceAll(text, "|", "/") }
