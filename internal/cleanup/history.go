package cleanup

import (
	"encoding/json"
	"slices"
	"time"

	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// RuleOf is the rule of a run that is on record: the zero one where the run had none.
func RuleOf(h runs.History) (r Rule, err error) {
	if len(h.Begin.Plan.Rule) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(h.Begin.Plan.Rule, &r); err != nil {
		return Rule{}, fault.New(
			fault.KindUnknown, "the rule of run %s cannot be read: %w", h.RunID, err,
		).WithHint("it may have been written by another version of sbx")
	}
	return r, nil
}

// SurveyOf is the survey on which a run was based, for a resume: what was left out then is
// left out still.
func SurveyOf(h runs.History, rule Rule, at time.Time) Survey {
	s := Survey{At: at, Rule: rule}
	for _, p := range h.Begin.Profiles {
		s.Shares = append(s.Shares, Share{Profile: p.Profile, Err: h.LeftOut(p.Profile), Fleet: p.Fleet, Selected: p.Selected, Unowned: p.Unowned})
	}
	return s
}

// ResumedTargets makes the targets of the open items of a run. An intent without a result may have been
// sent: the end is requested again only if a fresh read shows that the sandbox still runs.
func ResumedTargets(h runs.History) []Target {
	done := map[sandbox.Ref]bool{}
	for _, i := range h.Open() {
		done[i.Ref] = true
	}
	var targets []Target
	for _, i := range h.Begin.Plan.Items {
		t := Target{Item: i, Sandbox: sandbox.Sandbox{Provider: i.Ref.Provider, ID: i.Ref.ID, Name: i.Name, State: i.State, CreatedAt: i.CreatedAt}}
		if !done[i.Ref] {
			r := h.Results[i.Ref]
			t.Settled = &sandbox.Ending{
				Ref: i.Ref, Outcome: h.Outcome(i.Ref), Reason: r.Reason, Duration: time.Duration(r.Seconds * float64(time.Second)), Evidence: r.Evidence,
			}
			if t.Settled.Outcome == sandbox.OutcomeNotAttempted && i.Excluded != "" && h.LeftOut(i.Ref.Provider) == nil {
				t.Settled.Outcome, t.Settled.Reason = sandbox.OutcomeChanged, i.Excluded
			}
			if t.Settled.Outcome == sandbox.OutcomeNotAttempted {
				t.Settled.Err = h.LeftOut(i.Ref.Provider)
			}
		}
		_, t.Asked = h.Intents[i.Ref]
		t.Request = h.Requests[i.Ref]
		targets = append(targets, t)
	}
	return targets
}

// CronRun is a run as the layers judge it.
func CronRun(h runs.History) cron.Run {
	run := cron.Run{
		Layer: cron.Layer(h.Begin.Layer), CoverageGap: h.Begin.CoverageGap, StartedAt: h.StartedAt, EndedAt: h.EndedAt,
		ExitCode: h.ExitCode(), Succeeded: h.Succeeded(), Unowned: h.Unowned(),
	}
	if h.Conclusion != nil {
		run.Error, run.Refused = h.Conclusion.Error, h.Conclusion.Refused
		run.Overrides, _ = safety.OverrideFlags(safety.RecordedGuards(h.Begin.Guards))
	}
	if run.Layer == "" && run.CoverageGap == "" {
		run.CoverageGap = cron.GapNoLayer
	}
	return run
}

// JudgeRuns says whether cleanup runs (R53-R57, R127): a run of the layer stuck or age that left
// nothing undone, in every profile. A run by another rule is shown as the last one and proves
// nothing.
func JudgeRuns(runs []cron.Run, profiles []string, every time.Duration, now time.Time) cron.Status {
	expected := cron.Expected{Layers: []cron.Layer{cron.Stuck, cron.Age, cron.Usage, ""}, Every: every, Profiles: profiles}
	for i, r := range runs {
		if r.Layer == cron.Usage && r.CoverageGap == "" {
			runs[i].CoverageGap = "it acts only where a quota is nearly full"
		}
	}
	s := cron.Judge([]cron.Expected{expected}, runs, now)[0]
	if s.LastRun.IsZero() {
		s.Message += ": the job is not running, runs elsewhere, or lacks --yes"
	}
	return s
}

// SignalsOf reads the journals of cleanup runs for the rules of triage: when cleanup last left
// nothing undone in a profile (as JudgeRuns finds it), how many runs in a row have failed there or were refused, and how many sandboxes ran
// at each of them. Runs come newest first, each with its whole journal. A journal that
// cannot be trusted is left out. Without a recorded run all signals are unknown: cleanup
// may run on another machine.
func SignalsOf(newestFirst []runs.History, profile string) triage.FleetSignals {
	var sig triage.FleetSignals
	var runs []cron.Run
	failures, refusals, counting := int64(0), int64(0), true
	for _, h := range newestFirst {
		share, asked := h.Share(profile)
		if !asked || h.Broken != "" {
			continue
		}
		sig.CleanupRead = true
		runs = append(runs, CronRun(h))
		if share.Complete && share.Active != nil {
			sig.History = append(sig.History, triage.ActiveCount{At: h.Begin.Plan.MadeAt, Active: int64(*share.Active)})
		}
		switch {
		case h.Conclusion == nil: // it runs, or was interrupted: it is not known to have failed
		case slices.Contains(h.Conclusion.Succeeded, profile):
			counting = false
		case counting && h.Conclusion.Refused: // a guard did its work, and nobody has answered yet
			refusals++
		case counting && share.Unowned == 0: // sandboxes without a configured owner are no failure
			failures++
		}
	}
	if sig.CleanupRead {
		s := JudgeRuns(runs, []string{profile}, 0, time.Time{})
		if sig.CleanupSeen = s.LastSuccess; s.LacksOwner() {
			sig.CleanupSeen = s.LastRun
		}
		sig.CleanupFailures, sig.CleanupRefusals = &failures, refusals
	}
	return sig
}
