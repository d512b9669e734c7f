package look

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/check"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	opscron "sbx/internal/ops/cron"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func unansweredError(profile string) error {
	return fault.New(fault.KindTimeout, "no answer within %s", sandbox.FormatDuration(collectLimit)).At(profile, "diagnose")
}

// answerStuck answers R26 to R30.
func (d *diagnosis) answerStuck(judged []fleet.Judged, err error) ([]reply, error) {
	if err != nil {
		return nil, err
	}
	census := censusOf(judged)
	text := fmt.Sprintf("%d of %d", census.Stuck, len(judged))
	if ended := countWhere(judged, func(j fleet.Judged) bool { return j.Sandbox.State.Ended() }); ended > 0 {
		text += fmt.Sprintf(" (%d of them have ended)", ended)
	}
	if census.Unjudged > 0 {
		text += fmt.Sprintf(", and %d could not be judged", census.Unjudged)
	}
	var old, starting, ownerless, limited, recorded int64
	for _, j := range judged {
		s, now := j.Sandbox, d.env.Now()
		age, source := s.Age(now)
		if s.State == sandbox.StateRunning && source != sandbox.AgeUnknown && age > d.env.Thresholds(s).StuckAge {
			old++
		}
		if s.State == sandbox.StateProvisioning && isStuck(j) {
			starting++
		}
		if s.State == sandbox.StateRunning && s.TaskID == "" && s.AgentType == "" {
			ownerless++
		}
		if n := j.Signals.TimeLimitsHit; n != nil {
			recorded++
			if *n >= d.env.Thresholds(s).RepeatTimeouts {
				limited++
			}
		}
	}
	limit := d.env.Thresholds(sandbox.Sandbox{})
	replies := []reply{
		replyWith("%s", text), longerReply(old, limit.StuckAge), longerReply(starting, limit.ProvisioningAge),
		replyWith("%d", ownerless), replyUnknown("no task on record has one of them"),
	}
	if recorded > 0 {
		replies[4] = replyWith("%d of %d with a task on record", limited, recorded)
	}
	return replies, nil
}

func longerReply(n int64, limit time.Duration) reply {
	if n == 0 {
		return replyWith("none for more than %s", sandbox.FormatElapsed(limit))
	}
	return replyWith("%d for more than %s", n, sandbox.FormatElapsed(limit))
}

// answerLogs answers R34 to R37 for the sandboxes whose log was read: those that no figure shows at
// work.
func answerLogs(judged []fleet.Judged, err error) ([]reply, error) {
	if err != nil {
		return nil, err
	}
	looked := chooseWhere(judged, func(j fleet.Judged) bool { return j.Verdict.Looked && j.Verdict.Activity != sandbox.True })
	read := chooseWhere(looked, func(j fleet.Judged) bool { return j.Signals.Logs != nil && j.Signals.Logs.Lines > 0 })
	if len(looked) == 0 {
		return repeatReply(replyWith("no log had to be read: all are young or at work"), 4), nil
	}
	silent := countWhere(looked, func(j fleet.Judged) bool { return slices.Contains(j.Verdict.Reasons, triage.ReasonSilent) })
	first := replyWith("%d of %d that show no work are proved silent", silent, len(looked))
	if len(read) == 0 {
		none := replyUnknown("the logs of %d that show no work have no lines, or are not kept by their providers", len(looked))
		return append([]reply{first}, repeatReply(none, 3)...), nil
	}
	errors := countWhere(read, func(j fleet.Judged) bool { return j.Signals.Logs.Errors > 0 })
	repeats := countWhere(read, func(j fleet.Judged) bool { return slices.Contains(j.Verdict.Reasons, triage.ReasonRepeating) })
	warns := countWhere(read, func(j fleet.Judged) bool {
		return slices.ContainsFunc(j.Signals.Logs.Hits, func(h triage.Hit) bool { return h.Pattern.Resource })
	})
	of := func(n int64) reply { return replyWith("%d of %d logs", n, len(read)) }
	return []reply{first, of(errors), of(repeats), of(warns)}, nil
}

func repeatReply(r reply, n int) []reply { return slices.Repeat([]reply{r}, n) }

// answerResources answers R47 to R50 for the sandboxes that were looked at.
func answerResources(judged []fleet.Judged, err error) ([]reply, error) {
	if err != nil {
		return nil, err
	}
	looked := chooseWhere(judged, func(j fleet.Judged) bool { return j.Verdict.Looked })
	if len(looked) == 0 {
		return repeatReply(replyWith("no figure had to be read: all are young, or do not run"), 4), nil
	}
	count := func(known, holds func(*triage.Trend) bool) reply {
		with, n := int64(0), int64(0)
		for _, j := range looked {
			if tr := j.Signals.Trend; tr != nil && known(tr) {
				with++
				if holds(tr) {
					n++
				}
			}
		}
		if with == 0 {
			return replyUnknown("no provider reports it of the %d that were looked at", len(looked))
		}
		return replyWith("%d of %d", n, with)
	}
	limit := triage.DefaultThresholds()
	hasCPU := func(tr *triage.Trend) bool { return tr.CPUPercent != nil }
	return []reply{
		count(hasCPU, func(tr *triage.Trend) bool { return tr.AtLimit(limit) }),
		count(hasCPU, func(tr *triage.Trend) bool { return *tr.CPUPercent < limit.CPUIdle }),
		count(func(tr *triage.Trend) bool { return tr.MemorySlope != nil }, func(tr *triage.Trend) bool { return *tr.MemorySlope >= limit.MemorySlope }),
		count(func(tr *triage.Trend) bool { return tr.OperationsRate != nil }, func(tr *triage.Trend) bool { return *tr.OperationsRate == 0 }),
	}, nil
}

// cleanupEvery is how often cleanup should run.
func (d *diagnosis) cleanupEvery() time.Duration {
	return d.env.Thresholds(sandbox.Sandbox{}).CleanupEvery
}

// cleanupStatus starts to read what is recorded of cleanup.
func (d *diagnosis) cleanupStatus(ctx context.Context) *future[*opscron.CleanupStatusResult] {
	return begin(func() (*opscron.CleanupStatusResult, error) {
		return opscron.CleanupStatus(ctx, d.env, opscron.CleanupStatusRequest{Every: d.cleanupEvery()})
	})
}

// cleanupWork is the step that reviews cleanup; stuck counts the stuck sandboxes, false = not
// known.
func (d *diagnosis) cleanupWork(
	status *future[*opscron.CleanupStatusResult], stuck func(context.Context) (int64, bool),
) func(context.Context) ([]reply, error) {
	return func(ctx context.Context) ([]reply, error) {
		s, err := status.wait(ctx)
		if err != nil && d.log == nil {
			return nil, err
		}
		replies := repeatReply(replyUnknown("no run is recorded"), 4)
		if err == nil {
			replies = answerJournals(s)
		}
		if d.log != nil {
			replies = d.answerLog(replies)
		}
		replies[3] = replyUnknown("how many are stuck is not known")
		if stuck != nil {
			if n, known := stuck(ctx); known {
				replies[3] = leftReply(n, replies[0])
			}
		}
		return replies, nil
	}
}

// answerJournals answers R53 to R56 from the runs of sbx.
func answerJournals(s *opscron.CleanupStatusResult) []reply {
	st := s.Status
	if st.LastRun.IsZero() {
		none := replyUnknown("%s", st.Message)
		return []reply{none, replyUnknown("no run is recorded"), replyUnknown("no run is recorded"), none}
	}
	all := []reply{replyWith("%s", st.Message), replyUnknown("the last run has not ended"), replyWith("no"), {}}
	if st.LastExit != nil {
		all[1] = replyWith("the last one ended with exit %d", *st.LastExit)
	}
	switch {
	case st.Refused:
		all[2] = replyWith("a guard refuses them")
	case st.LastSuccess.IsZero() || st.LastRun.After(st.LastSuccess) && st.LastExit != nil && *st.LastExit != 0:
		all[2] = replyWith("the last one left something undone")
	}
	return all
}

// answerLog adds what a job's log says. The journals of sbx stay, where they know more.
func (d *diagnosis) answerLog(replies []reply) []reply {
	l, name, every := d.log, d.req.LogName, d.cleanupEvery()
	var sig triage.FleetSignals
	l.AddTo(&sig, every)
	ran := replyUnknown("%s has %d lines, and none with a time says whether cleanup ran", name, l.Lines)
	failed := replyUnknown("%s names no run", name)
	switch {
	case sig.CleanupRead && sig.CleanupSeen.IsZero():
		ran = replyWith("no: %s has no line of cleanup in %s", name, sandbox.FormatDuration(l.Last.Sub(l.First).Truncate(time.Second)))
	case sig.CleanupRead:
		since := d.env.Now().Sub(sig.CleanupSeen).Truncate(time.Second)
		word := "yes"
		if sig.CleanupOverdue(every, d.env.Now()) {
			word = "no, overdue"
		}
		ran = replyWith("%s: by %s it last ran %s ago", word, name, sandbox.FormatDuration(max(0, since)))
		failed = replyWith("%d failures since the last good run, by %s", *sig.CleanupFailures, name)
	}
	if !replies[0].known || sig.CleanupRead {
		replies[0] = joinReplies(ran, replies[0])
	}
	if n := len(l.Runs); n > 0 {
		last := l.Runs[n-1]
		text := fmt.Sprintf("%d runs in %s; the last one removed %d", n, name, last.Removed)
		if why := last.Failure(); why != "" {
			text += ": " + why
		}
		replies[1] = replyWith("%s", strings.Join(append([]string{text}, l.Doubts...), "; "))
	}
	if !replies[2].known || sig.CleanupRead {
		replies[2] = joinReplies(failed, replies[2])
	}
	return replies
}

// joinReplies adds a second source to an answer, where it knows something.
func joinReplies(first, second reply) reply {
	switch {
	case !second.known:
		return first
	case !first.known:
		return second
	}
	return replyWith("%s; by the runs of sbx: %s", first.text, second.text)
}

// leftReply answers R57: what is stuck while cleanup runs is what its rule leaves.
func leftReply(stuck int64, runs reply) reply {
	switch {
	case stuck == 0:
		return replyWith("none is stuck")
	case !runs.known:
		return replyWith("%d stuck, and no run is known", stuck)
	}
	return replyWith("%d stuck", stuck)
}

// cleanupFlag is R55: cleanup does not run. Without any record that is not known: it may run
// elsewhere.
func cleanupFlag(s *opscron.CleanupStatusResult, log *triage.CleanupLog) triage.Flag {
	f := triage.Flag{ID: "cleanup_overdue", Severity: triage.Warning, Verdict: sandbox.Unknown, Say: "cleanup does not run"}
	st := s.Status
	if st.Verdict != sandbox.Unknown {
		f.Verdict = sandbox.VerdictOf(st.Overdue)
		f.Evidence = []sandbox.Evidence{{What: "by the runs of sbx", Value: st.Message, Source: "journals", At: st.LastRun}}
	}
	var sig triage.FleetSignals
	if log != nil {
		log.AddTo(&sig, st.Every)
	}
	if !sig.CleanupRead {
		return f
	}
	if f.Verdict != sandbox.False {
		f.Verdict = sandbox.VerdictOf(sig.CleanupOverdue(st.Every, log.ReadAt))
	}
	f.Evidence = append(
		f.Evidence,
		sandbox.Evidence{What: "cleanup log", Value: fmt.Sprintf("%d runs, %d lines", len(log.Runs), log.Lines), Source: "cleanup log", At: log.Last},
	)
	return f
}

// answerCount answers R19 to R22 over the profiles that answered.
func (d *diagnosis) answerCount(stats []fleet.ProviderStats, err error) ([]reply, error) {
	if err != nil {
		return nil, err
	}
	figures := make([]Figures, len(stats))
	for i, s := range stats {
		figures[i] = providerFigures(d.env, s, Census{})
	}
	return d.countReplies(figures), nil
}

// countReplies are the answers by the figures of the profiles.
func (d *diagnosis) countReplies(figures []Figures) []reply {
	var ages []time.Duration
	active, starting := map[string]int{}, map[string]int{}
	lost := []string{}
	var growth []string
	for _, f := range figures {
		ages = append(ages, f.Ages...)
		if f.Counts.Active == nil {
			lost = append(lost, f.Provider)
			continue
		}
		active[f.Provider] = int(*f.Counts.Active)
		if f.Counts.Provisioning != nil {
			starting[f.Provider] = int(*f.Counts.Provisioning)
		}
		if from, to, known := f.Counts.Growth(f.Limits.CleanupEvery, d.env.Now()); known {
			growth = append(
				growth,
				fmt.Sprintf(
					"%s %s, %d to %d in %s", f.Provider, growthWord(from.Active, to.Active), from.Active, to.Active,
					sandbox.FormatDuration(to.At.Sub(from.At).Truncate(time.Second)),
				),
			)
		}
	}
	replies := []reply{
		countReply(active, lost), countReply(starting, lost), replyUnknown("no sandbox runs whose age is known"),
		replyUnknown("one count shows no trend; a later look compares"),
	}
	switch len(ages) {
	case 0:
	case 1:
		replies[2] = replyWith("%s", sandbox.FormatElapsed(ages[0]))
	default:
		replies[2] = replyWith(
			"%s to %s, median %s, p95 %s", sandbox.FormatElapsed(PercentileAge(ages, 0)), sandbox.FormatElapsed(PercentileAge(ages, 100)),
			sandbox.FormatElapsed(PercentileAge(ages, 50)), sandbox.FormatElapsed(PercentileAge(ages, 95)),
		)
	}
	if len(growth) > 0 {
		replies[3] = replyWith("%s", strings.Join(growth, "; "))
	}
	return replies
}

func growthWord(from, to int64) string {
	switch {
	case to > from:
		return "growing"
	case to < from:
		return "shrinking"
	}
	return "stable"
}

// countReply is a sum with its shares.
func countReply(counts map[string]int, lost []string) reply {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	text := ops.WithDetail(strconv.Itoa(sum), sandbox.FormatCounts(counts))
	if len(counts) == 1 {
		text = strconv.Itoa(sum)
	}
	switch {
	case len(counts) == 0:
		return replyUnknown("no provider reports it")
	case len(lost) > 0:
		text += "; unknown of " + strings.Join(lost, ", ")
	}
	return replyWith("%s", text)
}

// profileFigures are the figures of stats, with what the investigation knows beside them; judged is nil
// where the sandboxes of the profile were not judged.
func (d *diagnosis) profileFigures(s fleet.ProviderStats, judged []fleet.Judged, quotas []fleet.ProviderQuota) Figures {
	f := providerFigures(d.env, s, censusOf(judged))
	if s.ItemsErr == nil && judged != nil {
		f.Counts.OverProvisioningAge = new(countWhere(judged, func(j fleet.Judged) bool {
			return j.Sandbox.State == sandbox.StateProvisioning && isStuck(j)
		}))
	}
	if countWhere(judged, func(j fleet.Judged) bool { return j.Verdict.Looked }) > 0 {
		f.Counts.Missing = new(countWhere(judged, func(j fleet.Judged) bool { return j.Signals.Exists == sandbox.False }))
	}
	ops.NoteQuota(&f.Counts, quotas, s.Provider)
	if d.log != nil {
		d.log.AddTo(&f.Counts, f.Limits.CleanupEvery)
	}
	f.Flags = check.Flags(f.Subject(), d.env.Now())
	return f
}
