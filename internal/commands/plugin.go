package commands

import (
	"fmt"
	"strings"

	"sbx/internal/output"
)

// The exit codes of a monitoring plugin (Nagios plugin guidelines); they stand
// apart from those of sbx.
const (
	pluginOK       = 0
	pluginWarning  = 1
	pluginCritical = 2
	pluginUnknown  = 3
)

// showPlugin prints a check as a monitoring plugin does and returns its exit
// code: one line for the state, then one for each row that is not in order.
func showPlugin(p *output.Printer, rows []checkRow, trouble error) error {
	if trouble != nil {
		return pluginFailed(p, trouble)
	}
	line, code := pluginLine(rows)
	if err := p.Line(line); err != nil {
		return err
	}
	for _, r := range rows {
		if r.err() == nil {
			continue
		}
		if err := p.Line(r.word() + ": " + pluginText(r.title())); err != nil {
			return err
		}
	}
	return pluginExit(code)
}

// pluginFailed is the plugin's answer when it could not ask at all.
func pluginFailed(p *output.Printer, err error) error {
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
	return ProgramExit{Code: code}
}

// pluginLine is what a monitor shows: the state, the first thing that is
// wrong, and figures behind the bar. What is wrong weighs more than what is
// unknown, and that more than a warning.
func pluginLine(rows []checkRow) (string, int) {
	n, first := map[string]int{}, map[string]string{}
	for _, r := range rows {
		if n[r.word()]++; n[r.word()] == 1 {
			first[r.word()] = r.title()
		}
	}
	code, state, text := pluginOK, "OK", fmt.Sprintf("%d of %d checks in order", n[wordOK], len(rows)-n[wordNote])
	for _, s := range []struct {
		code        int
		state, word string
	}{{pluginWarning, "WARNING", wordWarning}, {pluginUnknown, "UNKNOWN", wordUnknown}, {pluginCritical, "CRITICAL", wordProblem}} {
		if n[s.word] > 0 {
			code, state, text = s.code, s.state, first[s.word]
		}
	}
	figures := fmt.Sprintf("checks=%d problems=%d warnings=%d unknown=%d", len(rows), n[wordProblem], n[wordWarning], n[wordUnknown])
	return "SBX " + state + ": " + pluginText(text) + " | " + figures, code
}

// pluginText keeps a text out of the figures: monitors cut lines at the bar.
func pluginText(text string) string { return strings.ReplaceAll(text, "|", "/") }
