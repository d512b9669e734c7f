package look

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// diagnoseSandbox investigates one sandbox, also one that is gone: then by what is on record.
func (d *diagnosis) diagnoseSandbox(ctx context.Context, word string) error {
	limited, stop := context.WithTimeout(ctx, collectLimit)
	defer stop()
	cleanup := d.cleanupStatus(limited)
	d.stats, d.quotas = nil, nil // of another subject
	inspected := begin(func() (*InspectResult, error) { return d.inspect(limited, word) })
	// What was seen until ctx has ended is an answer, too. A source that does not end with it is left.
	patient, leave := context.WithTimeout(context.WithoutCancel(ctx), stepLimit)
	defer leave()
	r, err := inspected.wait(patient)
	switch {
	case patient.Err() != nil:
		return unansweredError(word)
	case err != nil:
		return err
	}
	known := func(replies []reply) func(context.Context) ([]reply, error) {
		return func(context.Context) ([]reply, error) { return replies, nil }
	}
	questions := stepQuestions(d.cleanupEvery())
	questions[stepStuck] = stuckQuestionsOfOne()
	waiting, end := context.WithTimeout(ctx, d.env.Process.TimeScale.Limit(profileLimit))
	defer end()
	census := censusOf([]fleet.Judged{{Sandbox: r.Seen.Sandbox, Verdict: r.Verdict}})
	d.result.Steps = runSteps(waiting, d.progress.Say, questions, stepWork{
		stepCount:     func(ctx context.Context) ([]reply, error) { return d.answerCount(d.stats.wait(ctx)) },
		stepStuck:     known(d.answerStuckOfOne(r)),
		stepLogs:      known(answerLogsOfOne(r)),
		stepResources: known(answerResourcesOfOne(r)),
		stepCleanup:   d.cleanupWork(cleanup, func(context.Context) (int64, bool) { return census.Stuck, census.Unjudged == 0 }),
	})
	if stats, known := d.stats.ready(); known && r.Missing == nil {
		limits, _ := d.quotas.wait(waiting) // one that cannot be read is not known
		sig := r.Signals
		sig.Fleet = new(d.profileFigures(stats[0], nil, limits).Counts)
		r.judge(d.env, sig)
	}
	d.result.Inspected, d.result.Flags, d.result.Causes, d.result.Providers = r, r.Flags, r.Causes, []string{r.Seen.Sandbox.Provider}
	d.result.Errors = append(d.result.Errors, r.Errors...)
	return nil
}

// inspect reads and judges one sandbox, and starts to read the figures of its profile. What a task's
// record says of its end is added.
func (d *diagnosis) inspect(ctx context.Context, word string) (*InspectResult, error) {
	r, err := d.readSandbox(ctx, word)
	if d.result.Task != nil {
		r, err = d.addAttempt(r, err)
	}
	if err == nil && d.stats == nil {
		d.readProfile(ctx, r.Seen.Sandbox.Provider)
	}
	return r, err
}

// readSandbox reads all that can be known of one sandbox, and judges it. Of one that is gone it gives
// what is on record; without a record that is an error.
func (d *diagnosis) readSandbox(ctx context.Context, word string) (*InspectResult, error) {
	e := d.env
	f, found, err := e.FindOne(ctx, word)
	if err != nil {
		return inspectRecord(ctx, e, word, err)
	}
	d.readProfile(ctx, found.Provider)
	s, recordErr := readInFull(ctx, f, word, found)
	if kind := fault.KindOf(recordErr); kind == fault.KindGone || kind == fault.KindNotFound {
		return inspectRecord(ctx, e, found.Ref().String(), recordErr)
	}
	r := judgeObservation(e, f.Observe(ctx, s))
	r.Errors = ops.PartErrors(ctx, r.Seen)
	if recordErr != nil && !r.Seen.IsGhost() {
		r.Errors = ops.CauseOnce(ctx, append([]error{recordErr}, r.Errors...))
	}
	r.Seen.Sandbox.Command = commandOf(ctx, e, r.Seen.Sandbox)
	if ref := s.Ref(); s.State.Ended() || s.State == sandbox.StateStopped { // where a provider keeps what was ended, it is stopped
		end, found := recall.EndInJournals(ctx, e, ref.ID, func(of sandbox.Ref, _ string) bool { return of == ref })
		if found && !s.StartedAt.After(end.At) { // else it was started again since
			r.End = &end
		}
	}
	return r, nil
}

// readProfile starts to read the figures of the profile of a sandbox.
func (d *diagnosis) readProfile(ctx context.Context, name string) {
	f, err := d.env.Only(ctx, name)
	d.stats = begin(func() ([]fleet.ProviderStats, error) {
		if err != nil {
			return nil, err
		}
		all := f.Stats(ctx)
		return all, all[0].Err
	})
	d.quotas = begin(func() ([]fleet.ProviderQuota, error) {
		if err != nil {
			return nil, err
		}
		return f.Quotas(ctx), nil
	})
}

// addAttempt adds what the record of a task's last attempt says to what was seen of its sandbox.
func (d *diagnosis) addAttempt(r *InspectResult, err error) (*InspectResult, error) {
	last := d.result.Task.Last()
	switch kind := fault.KindOf(err); {
	case kind == fault.KindNotFound || kind == fault.KindGone:
		r = judgeObservation(d.env, goneObservation(attemptSandbox(*d.result.Task, last)))
		r.Missing = err
	case err != nil:
		return nil, err
	case r.Seen.Sandbox.Exit == nil && last.Exit != nil:
		r.Seen.Sandbox = addAttemptExit(r.Seen.Sandbox, last)
		r.judge(d.env, r.Seen.Signals(d.env.Thresholds(r.Seen.Sandbox)))
	}
	return r, nil
}

// attemptSandbox is the record of a task's attempt where its provider has none.
func attemptSandbox(t ops.TaskState, a *task.Attempt) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: a.Provider, ID: a.Sandbox, TaskID: t.ID, State: sandbox.StateUnknown,
		CreatedAt: a.IntentAt, StartedAt: a.StartedAt, LastActivityAt: a.OutputAt, EndedAt: a.EndedAt,
	}
	if !a.GoneAt.IsZero() {
		s.State = sandbox.StateTerminated
	}
	return addAttemptExit(s, a)
}

// addAttemptExit adds the recorded exit where the sandbox itself shows none.
func addAttemptExit(s sandbox.Sandbox, a *task.Attempt) sandbox.Sandbox {
	if s.Exit == nil && a.Exit != nil {
		s.Exit = new(sandbox.Exit(*a.Exit))
	}
	return s
}

func (d *diagnosis) answerStuckOfOne(r *InspectResult) []reply {
	s := r.Seen.Sandbox
	verdict := replyWith("%s", r.Verdict.Reason)
	if r.Verdict.Unjudged() && !s.State.Ended() {
		verdict = replyUnknown("%s", r.Verdict.Reason)
	}
	age := replyUnknown("its age is not known")
	until := d.env.Now()
	if r.Missing != nil && r.Last != nil {
		until = r.Last.At
	}
	switch since, source := s.Age(until); {
	case s.State.Ended() && !s.EndedAt.IsZero() && !s.CreatedAt.IsZero():
		age = replyWith("%s, until %s", sandbox.FormatElapsed(s.EndedAt.Sub(s.CreatedAt)), s.EndedAt.UTC().Format(time.RFC3339))
	case source != sandbox.AgeUnknown:
		age = replyWith("%s (limit %s)", sandbox.FormatElapsed(since), sandbox.FormatElapsed(d.env.Thresholds(s).StuckAge))
	}
	owner := replyUnknown("no record names a task or an agent")
	if s.TaskID != "" || s.AgentType != "" {
		owner = replyWith("%s", strings.TrimSpace(s.TaskID+" "+s.AgentType))
	}
	return []reply{verdict, age, owner, flagReply(r.Flags, "repeated_timeouts", "no task on record has it")}
}

// flagReply answers a question with the verdict of a flag.
func flagReply(flags []triage.Flag, id, unknown string) reply {
	i := slices.IndexFunc(flags, func(f triage.Flag) bool { return f.ID == id })
	if i < 0 || flags[i].Verdict == sandbox.Unknown {
		return replyUnknown("%s", unknown)
	}
	word := yesNo(flags[i].Verdict == sandbox.True)
	if e := flags[i].Evidence; len(e) > 0 {
		return replyWith("%s: %s %s", word, e[0].What, e[0].Value)
	}
	return replyWith("%s", word)
}

// answerLogsOfOne answers R34 to R37 from the last lines.
func answerLogsOfOne(r *InspectResult) []reply {
	logs := r.Signals.Logs
	if r.Seen.Logs.Err != nil || logs == nil {
		return repeatReply(replyUnknown("%s", unknownText(r.Seen.Logs.Err)), 4)
	}
	s := r.Seen.Sandbox
	active := flagReply(r.Flags, "silent", "no source tells when it was last active")
	if idle, known := s.Idle(r.At); known {
		active = replyWith("%s ago", sandbox.FormatElapsed(idle))
	} else if !logs.Last.IsZero() {
		active = replyWith("last line %s ago", sandbox.FormatElapsed(max(0, r.At.Sub(logs.Last))))
	}
	if logs.Lines == 0 {
		return append([]reply{active}, repeatReply(replyWith("no: it has written nothing"), 3)...)
	}
	errors := replyWith("no, in %s", countedLines(logs.Lines))
	if logs.Errors > 0 {
		errors = replyWith("%d in %s; the last: %s", logs.Errors, countedLines(logs.Lines), logs.Error)
		if e := s.Exit; e != nil && e.Class == sandbox.ClassOK {
			errors.text += " (it has succeeded, so that proves nothing)"
		}
	}
	repeats := replyWith("no")
	if logs.Repeat.Count > 1 {
		repeats = replyWith("the most frequent line %d times in the last 50: %s", logs.Repeat.Count, logs.Repeat.Line)
	}
	return []reply{active, errors, repeats, flagReply(r.Flags, "resource_warnings", "no log was read")}
}

// answerResourcesOfOne answers R47 to R50 from the samples, of which older ones name their age.
func answerResourcesOfOne(r *InspectResult) []reply {
	if r.Used == nil {
		return repeatReply(replyUnknown("%s", unknownText(r.Seen.Usage.Err)), 4)
	}
	tr, limit := r.Used.Trend, r.Used.Limits
	when := ""
	if since := r.At.Sub(tr.At); !tr.At.IsZero() && since > time.Minute {
		when = ", " + sandbox.FormatElapsed(since) + " ago"
	}
	replies := repeatReply(replyUnknown("its provider does not report it"), 4)
	if cpu := tr.CPUPercent; cpu != nil {
		replies[0] = replyWith("%s: %.0f%% of a core%s", yesNo(tr.AtLimit(limit)), *cpu, when)
		if tr.AtLimit(limit) && *cpu < limit.CPUBusy {
			replies[0].text += ", all that it gets"
		}
		replies[1] = replyWith("%s: %.1f%% of a core%s", yesNo(*cpu < limit.CPUIdle), *cpu, when)
	}
	if slope := tr.MemorySlope; slope != nil {
		replies[2] = replyWith("%s: %+.1f MiB a minute%s", yesNo(*slope >= limit.MemorySlope), *slope, when)
	} else if tr.MemoryBytes != nil {
		replies[2] = replyUnknown("the samples are too close to show growth: %d MiB%s", *tr.MemoryBytes/sandbox.MiB, when)
	}
	if ops := tr.OperationsRate; ops != nil {
		replies[3] = replyWith("%s: %.1f a second%s", yesNo(*ops == 0), *ops, when)
	}
	return replies
}

func countedLines(n int) string {
	if n == 1 {
		return "the last line"
	}
	return fmt.Sprintf("the last %d lines", n)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
