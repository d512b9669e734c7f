package views

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/requirement"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// UnknownAs is what an unknown target counts as in an exit code and for a monitor.
type UnknownAs string

// The closed list of --unknown-as. Without it a target without data is met, any other unknown one is not.
const (
	UnknownIsOK       UnknownAs = "ok"
	UnknownIsWarning  UnknownAs = "warn"
	UnknownIsCritical UnknownAs = "crit"
	UnknownIsUnknown  UnknownAs = "unknown"
)

// UnknownChoices are the values of --unknown-as.
func UnknownChoices() []string {
	return []string{string(UnknownIsOK), string(UnknownIsWarning), string(UnknownIsCritical), string(UnknownIsUnknown)}
}

// verification is a result with the reading of unknown targets.
type verification struct {
	*look.VerifyResult

	unknownAs   UnknownAs
	interrupted error // what kept it from another round; nil = nothing
	full        bool  // what each target rests on
}

// status is what a target comes to under --unknown-as.
func (v verification) status(c look.TargetCheck) ops.CheckStatus {
	switch {
	case c.Met() == sandbox.True, c.Outcome == sandbox.Unknown && v.unknownAs == UnknownIsOK:
		return ops.CheckOK
	case c.Outcome == sandbox.False, v.unknownAs == UnknownIsCritical:
		return ops.CheckProblem
	case v.unknownAs == UnknownIsWarning:
		return ops.CheckWarning
	}
	return ops.CheckUnknown
}

// checks are the targets as the checks of a monitor.
func (v verification) checks() []ops.Check {
	all := make([]ops.Check, len(v.Checks))
	for i, c := range v.Checks {
		verdict := c.Outcome
		switch v.status(c) {
		case ops.CheckOK:
			verdict = sandbox.True
		case ops.CheckProblem, ops.CheckWarning:
			verdict = sandbox.False
		case ops.CheckUnknown, ops.CheckNote:
		}
		all[i] = ops.ToolCheck(c.Title, verdict, targetMessage(c), c.Hint)
		all[i].Minor = v.status(c) == ops.CheckWarning
	}
	return all
}

// targetMessage is the value beside its target, short enough for the first line of a monitor.
func targetMessage(c look.TargetCheck) string {
	if c.Value == nil {
		return c.Word() + ", target " + targetText(c.Figure)
	}
	return figureText(c.Figure) + ", target " + targetText(c.Figure)
}

// targetDetail adds the first piece of evidence to the message.
func targetDetail(c look.TargetCheck) string {
	if len(c.Evidence) == 0 {
		return targetMessage(c)
	}
	first := c.Evidence[0]
	return targetMessage(c) + " (" + first.What + ": " + first.Value + andMore(len(c.Evidence)-1) + ")"
}

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// VerificationItem is the result of the five checks.
type VerificationItem struct {
	Verdict sandbox.Verdict `json:"verdict" table:""` // true where every target is met, false where one is missed, else unknown.
	At      *time.Time      `json:"at" table:""`      // When it was checked.
	Rounds  int             `json:"rounds" table:""`  // How many rounds it took; more than one only with --until-ok.
	Checks  []TargetItem    `json:"checks" table:""`  // The targets.
	Alerts  []AlertItem     `json:"alerts" table:""`  // The alerts that are pending or firing.

	Requested     *int    `json:"requested"`            // How many sandboxes were asked to end by terminate, cleanup, reconcile or a runbook, as is on record; null where not all of that could be read.
	Ended         *int    `json:"ended"`                // How many of those have ended, verified; null likewise.
	WithinSeconds float64 `json:"ended_within_seconds"` // How far back that goes.
	Stuck         int     `json:"stuck"`                // How many are stuck now.
	Unjudged      int     `json:"unjudged"`             // How many could not be judged.
}

// TargetItem is one figure beside its target.
type TargetItem struct {
	ID          string          `json:"id"`          // Its name.
	Requirement *string         `json:"requirement"` // Its number in docs/REQUIREMENTS.md, until the next release; null = none.
	Title       string          `json:"title"`       // What is measured.
	Verdict     sandbox.Verdict `json:"verdict"`     // Whether the target is met.
	NoData      bool            `json:"no_data"`     // Every provider answered, and there is nothing to tell the figure from yet, or no limit that fits the fleet: it counts as met.
	Value       *float64        `json:"value"`       // The figure of the provider that is worst; null where none is known.
	Unit        string          `json:"unit"`        // The unit of value and target: count, seconds or share.
	Target      *string         `json:"target"`      // The target, with its sign.
	Samples     int             `json:"samples"`     // How many samples the value is from.
	Why         *string         `json:"why"`         // What the figure covers; null for nothing to add.
	Evidence    []EvidenceItem  `json:"evidence"`    // What was seen, for each provider or sandbox.
}

// VerifyColumns are the columns of a VerificationItem.
func VerifyColumns() []output.Column[*look.VerifyResult] { return output.Columns(verificationItem) }

func verificationItem(r *look.VerifyResult) VerificationItem {
	item := VerificationItem{
		Verdict: r.Verdict(), At: output.Time(r.At), Rounds: r.Rounds, Checks: make([]TargetItem, len(r.Checks)), Alerts: alertItems(r.Alerts),
		WithinSeconds: output.Seconds(look.EndedWithin), Stuck: r.Stuck, Unjudged: r.Unjudged,
	}
	if r.DoneErr == nil {
		item.Requested, item.Ended = new(r.Done.Requested), new(r.Done.Proved)
	}
	for i, c := range r.Checks {
		item.Checks[i] = TargetItem{
			ID: c.ID, Requirement: orNil(requirement.Of(c.ID)), Title: c.Title, Verdict: c.Outcome, NoData: c.NoData, Value: roundedOrNil(c.Value), Unit: string(c.Unit), Target: targetValue(c.Figure),
			Samples: c.Samples, Why: orNil(c.Why), Evidence: EvidenceList(c.Evidence),
		}
	}
	return item
}

// verifyRows is how many facts a page shows for one target.
const verifyRows = 5

// page says what was done, then how the targets of the fleet stand, each in one line; full adds what each rests on.
func (v verification) page(s *output.Sheet, r *look.VerifyResult) {
	s.Text(r.State())
	var rows [][]any
	for _, c := range r.Checks {
		next := ""
		if c.Met() != sandbox.True {
			next = c.Hint
		}
		rows = append(rows, []any{c.Title, figureText(c.Figure), targetText(c.Figure), c.Word(), next})
	}
	s.Section("Targets of the fleet").Table([]string{"target", "value", "wanted", "verdict", "next"}, rows)
	for _, c := range r.Checks {
		switch {
		case v.full && c.Outcome != sandbox.True:
			addTarget(s, c)
		case c.Note != "":
			s.Field("note", c.Why)
		}
	}
	if line := AlertsLine(r.Alerts); line != "" {
		s.Section("Alerts").Text(line)
	}
}

// addTarget is what a target rests on.
func addTarget(s *output.Sheet, c look.TargetCheck) {
	s.Section(c.Title + ": " + c.Word())
	for i, e := range c.Evidence {
		if i == verifyRows {
			s.Text(strings.TrimPrefix(andMore(len(c.Evidence)-i), " "))
			break
		}
		s.Field(e.What, e.Value)
	}
	addKnown(s, "note", c.Why)
	addKnown(s, "next", c.Hint)
}

// ShowVerification prints the targets in every format of a check. Interrupted is what kept it from
// another round, and decides the exit code, but of a monitoring plugin.
func ShowVerification(p *output.Printer, schema string, r *look.VerifyResult, unknownAs UnknownAs, interrupted error) error {
	v := verification{r, unknownAs, interrupted, p.Verbose > 0}
	if p.Format.Name() == output.Nagios {
		return v.showPlugin(p)
	}
	verdict := v.exit()
	spec := output.ItemSpec[*look.VerifyResult]{Schema: schema, Columns: VerifyColumns(), Human: v.page}
	errs := r.Errors
	if verdict != nil && (interrupted != nil || len(errs) == 0) {
		errs = append(slices.Clone(errs), verdict)
	}
	return output.ShowItemAs(p, spec, r, verdict, errs...)
}

// exit is the error that decides the exit code: of an interruption, else of the targets, with
// unknown ones read as --unknown-as says.
func (v verification) exit() error {
	switch {
	case v.interrupted != nil:
		return v.interrupted
	case v.unknownAs == UnknownIsUnknown, v.unknownAs == "":
		return v.Err()
	}
	return ops.CheckVerdict(v.checks())
}

// showPlugin prints one line with the figures of every target: a value that is not known is U.
func (v verification) showPlugin(p *output.Printer) error {
	line, code := PluginLine(v.checks())
	before, _, _ := strings.Cut(line, " | ")
	figures := make([]string, len(v.Checks))
	for i, c := range v.Checks {
		value := "U"
		if c.Value != nil {
			value = strconv.FormatFloat(*c.Value, 'g', 6, 64)
			if c.Unit == task.UnitSeconds {
				value += "s"
			}
		}
		figures[i] = fmt.Sprintf("%s=%s;;%s", strings.ToLower(c.ID), value, strconv.FormatFloat(c.Target.Bound, 'g', 6, 64))
	}
	if err := p.Line(before + " | " + strings.Join(figures, " ")); err != nil {
		return err
	}
	for i, c := range v.checks() {
		if c.Err() == nil {
			continue
		}
		if err := p.Line(string(c.Status()) + ": " + pluginText(c.Check.Check+": "+targetDetail(v.Checks[i]))); err != nil {
			return err
		}
	}
	if v.interrupted != nil {
		if err := p.Line(fmt.Sprintf("%s after round %d", pluginText(v.interrupted.Error()), v.Rounds)); err != nil {
			return err
		}
	}
	return pluginExit(code)
}
