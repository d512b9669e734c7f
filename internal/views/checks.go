package views

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/ops"
	opscron "sbx/internal/ops/cron"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

func checkSubject(r ops.Check) string {
	if r.Provider == "" {
		return "this tool"
	}
	return "provider " + r.Provider
}

func checkTitle(r ops.Check) string {
	title := r.Check.Check + ": " + r.Message
	if r.Provider != "" {
		title = r.Provider + ": " + title
	}
	return title
}

func checkTone(r ops.Check) output.Tone {
	switch r.Status() {
	case ops.CheckOK:
		return output.Good
	case ops.CheckProblem:
		return output.Bad
	case ops.CheckUnknown, ops.CheckWarning:
		return output.Warn
	case ops.CheckNote:
	}
	return output.Muted
}

// CheckItem is one check of doctor.
type CheckItem struct {
	Check    string          `json:"check" table:""`     // What is checked.
	Provider string          `json:"provider" table:""`  // The profile; empty for the tool itself.
	Verdict  sandbox.Verdict `json:"verdict" table:""`   // Whether it is in order.
	Message  string          `json:"message" table:""`   // What was found.
	Hint     string          `json:"hint" table:",wide"` // What to do; empty for nothing.
}

// FindingColumns are the columns of a CheckItem.
func FindingColumns() []output.Column[ops.Check] {
	return output.Columns(checkItem, output.Column[ops.Check]{Name: "verdict", Text: func(r ops.Check) string { return string(r.Status()) }, Tone: checkTone})
}

func checkItem(r ops.Check) CheckItem {
	return CheckItem{r.Check.Check, r.Provider, r.Verdict, r.Message, r.Hint}
}

// checkPage is a section for each subject, with nothing cut off.
func checkPage(s *output.Sheet, rows []ops.Check) {
	for i, r := range rows {
		if i == 0 || checkSubject(r) != checkSubject(rows[i-1]) {
			s.Section(checkSubject(r))
		}
		s.FieldTone(r.Check.Check, fmt.Sprintf("%-7s  %s", r.Status(), r.Message), checkTone(r))
	}
}

// ShowChecks prints a check in every format that a check has. Trouble is what
// kept it from asking everything.
func ShowChecks(p *output.Printer, schema string, rows []ops.Check, trouble error) error {
	if p.Format.Name() == output.Nagios {
		return ShowPlugin(p, rows, trouble)
	}
	list, err := output.NewList(p, output.ListSpec[ops.Check]{Schema: schema, Columns: FindingColumns(), Human: checkPage})
	if err != nil {
		return err
	}
	for _, r := range rows {
		list.AddResult(r, r.Err())
	}
	list.SortErrors(ops.CompareCheckErrors(rows))
	if trouble != nil {
		list.Fail(trouble)
		return list.Close()
	}
	return list.CloseAs(ops.CheckVerdict(rows))
}

// ExitCodesHelp is the help topic, made from the table that decides the codes.
func ExitCodesHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes\n\n")
	for _, row := range fault.Table() {
		kind := string(row.Kind)
		if kind == "" {
			kind = "-"
		}
		b.WriteString(Definition(fmt.Sprintf("%3d  %s", row.Code, kind), row.Meaning, 26))
	}
	b.WriteString(`
Codes and kinds are only ever added; treat an unknown code that is not 0 as a
failure. The kind is also in the "errors" of every JSON document.

exec gives the program's own code: 128+n for a death by signal n, 125 when it
could not be run, 126 when it is not executable, 127 when it was not found.

-o nagios exits as monitoring plugins do, always: 0 OK, 1 WARNING, 2 CRITICAL,
3 UNKNOWN, the state that the line names. An interrupted check is UNKNOWN unless
it has a complete answer.
`)
	return b.String()
}

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
	return launch.ProgramExit{Code: code, Plugin: true}
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
	code, state, text := pluginOK, "OK", fmt.Sprintf("%d of %d checks passed", n[ops.CheckOK], len(rows)-n[ops.CheckNote])
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

// CleanupStatusItem says whether a cleanup runs as often as it should.
type CleanupStatusItem struct {
	LastRun              *time.Time      `json:"last_run" table:""`       // When one last ran.
	LastSuccess          *time.Time      `json:"last_success" table:""`   // When one last succeeded.
	ExpectedEvery        string          `json:"expected_every" table:""` // How often it should run, as typed.
	ExpectedEverySeconds float64         `json:"expected_every_seconds"`  // The same in seconds.
	Verdict              sandbox.Verdict `json:"verdict" table:""`        // Whether it runs.
	Message              string          `json:"message" table:""`        // The same in words.
}

// CleanupStatusColumns are the columns of a CleanupStatusItem.
func CleanupStatusColumns() []output.Column[cron.Status] { return output.Columns(cleanupStatusItem) }

func cleanupStatusItem(s cron.Status) CleanupStatusItem {
	return CleanupStatusItem{output.Time(s.LastRun), output.Time(s.LastSuccess), sandbox.FormatDuration(s.Every), output.Seconds(s.Every), s.Verdict, s.Message}
}

// ShowRows prints a list whose items are all there.
func ShowRows[T any](p *output.Printer, spec output.ListSpec[T], rows []T, errs ...error) error {
	list, err := output.NewList(p, spec)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := list.Add(row); err != nil {
			break // Close gives the error of stdout
		}
	}
	for _, err := range errs {
		list.Fail(err)
	}
	return list.Close()
}

func layerCheck(s cron.Status) ops.Check { return ops.ToolCheck("", s.Verdict, "", "") }

// CronCheckItem says whether one layer runs.
type CronCheckItem struct {
	Layer                string          `json:"layer" table:""`          // The layer.
	Verdict              sandbox.Verdict `json:"verdict" table:""`        // Whether it runs as often as it should.
	ExpectedEvery        string          `json:"expected_every" table:""` // How often it should run.
	LastRun              *time.Time      `json:"last_run" table:""`       // When it last ran.
	LastSuccess          *time.Time      `json:"last_success" table:""`   // When it last succeeded.
	Message              string          `json:"message" table:""`        // The same in words.
	Unowned              map[string]int  `json:"unowned"`                 // How many it leaves alone because they are not yours, by profile.
	ExitCode             *int            `json:"exit_code" table:",wide"` // The exit code of its last run.
	ExpectedEverySeconds float64         `json:"expected_every_seconds"`  // The same in seconds.
}

// CronStatusColumns are the columns of a CronCheckItem.
func CronStatusColumns() []output.Column[cron.Status] {
	return output.Columns(cronCheckItem, output.Column[cron.Status]{
		Name: "verdict", Text: func(s cron.Status) string { return string(layerCheck(s).Status()) }, Tone: func(s cron.Status) output.Tone { return checkTone(layerCheck(s)) },
	})
}

func cronCheckItem(s cron.Status) CronCheckItem {
	return CronCheckItem{
		string(s.Layer), s.Verdict, sandbox.FormatDuration(s.Every), output.Time(s.LastRun), output.Time(s.LastSuccess), s.Message, s.Unowned, s.LastExit, output.Seconds(s.Every),
	}
}

// ShowCronCheck shows how each layer stands, in every format that a check has. A document has an
// error for each layer; people read one line for all layers that never ran.
func ShowCronCheck(p *output.Printer, schema string, r *opscron.CheckResult) error {
	if p.Format.Name() == output.Nagios {
		return ShowPlugin(p, r.Checks, nil)
	}
	list, err := output.NewList(p, output.ListSpec[cron.Status]{Schema: schema, Columns: CronStatusColumns()})
	if err != nil {
		return err
	}
	for _, note := range r.Notes {
		list.Remark(note)
	}
	for i, s := range r.Statuses {
		trouble := r.Checks[i].Err()
		if trouble != nil && r.Without[i] && !p.Format.Structured() { // people read it once
			trouble = r.Unrecorded.Err()
		}
		list.AddResult(s, trouble)
	}
	return list.CloseAs(ops.CheckVerdict(r.Checks))
}

// ShowCleanupStatus shows how cleanup stands, as ShowCronCheck shows a layer.
func ShowCleanupStatus(p *output.Printer, schema string, r *opscron.CleanupStatusResult) error {
	if p.Format.Name() == output.Nagios {
		return ShowPlugin(p, []ops.Check{r.Check}, errors.Join(r.Errors...))
	}
	errs := r.Errors
	if trouble := r.Check.Err(); trouble != nil {
		errs = append(errs, trouble)
	}
	return output.ShowItemAs(p, output.ItemSpec[cron.Status]{Schema: schema, Columns: CleanupStatusColumns()}, r.Status, errors.Join(errs...), errs...)
}

// CleanupWord says in a word or two how cleanup runs: when it last ran, or what is wrong.
func CleanupWord(s cron.Status, now time.Time) (string, output.Tone) {
	switch {
	case s.LastRun.IsZero():
		return "never ran", output.Warn
	case s.Refused:
		return "refused", output.Bad
	case s.Overdue && s.LastSuccess.IsZero() && s.LastExit != nil && *s.LastExit == 0:
		return "in part", output.Warn // a run that was good, and not about all
	case s.Overdue && s.LastSuccess.IsZero():
		return "it fails", output.Bad
	case s.Overdue:
		return "late " + sandbox.FormatElapsed(now.Sub(s.LastSuccess)), output.Bad
	}
	return sandbox.FormatElapsed(max(0, now.Sub(s.LastRun))) + " ago", output.Good
}
