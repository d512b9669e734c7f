package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// diagnoseSandbox investigates one sandbox, also one that is gone: then by what is on record.
func (d *diagnosis) diagnoseSandbox(ctx context.Context, word string) error {
	limited, stop := context.WithTimeout(ctx, collectLimit)
	defer stop()
	inspected := begin(func() (*InspectResult, error) { return d.inspectSubject(limited, word) })
	only := begin(func() (*fleet.Fleet, error) {
		profile, err := d.profileOf(limited, word, inspected)
		if err != nil {
			return nil, err
		}
		return d.env.Only(limited, profile)
	})
	quotas := begin(func() ([]fleet.ProviderQuota, error) {
		f, err := only.wait(limited)
		if err != nil {
			return nil, err
		}
		return f.Quotas(limited), nil
	})
	stats := begin(func() ([]fleet.ProviderStats, error) {
		f, err := only.wait(limited)
		if err != nil {
			return nil, err
		}
		all := f.Stats(limited)
		return all, all[0].Err
	})
	if err := d.checkKnown(ctx, inspected); err != nil {
		return err
	}
	about := func(answer func(*InspectResult) []reply) func(context.Context) ([]reply, error) {
		return func(ctx context.Context) ([]reply, error) {
			r, err := inspected.wait(ctx)
			if err != nil {
				return nil, err
			}
			return answer(r), nil
		}
	}
	d.runSteps(ctx, map[string]stepWork{
		stepCount:     {countQuestions(), func(ctx context.Context) ([]reply, error) { return d.answerCount(stats.wait(ctx)) }},
		stepStuck:     {stuckQuestionsOfOne(), about(d.answerStuckOfOne)},
		stepLogs:      {logQuestions(), about(answerLogsOfOne)},
		stepResources: {resourceQuestions(), about(answerResourcesOfOne)},
		stepCleanup: d.cleanupWork(d.cleanupStatus(limited), func(ctx context.Context) (int64, bool) {
			r, err := inspected.wait(ctx)
			if err != nil || r.Verdict.Unjudged() {
				return 0, false
			}
			return censusOf([]fleet.Judged{{Sandbox: r.Seen.Sandbox, Verdict: r.Verdict}}).Stuck, true
		}),
	})
	if r, known := inspected.ready(); known {
		r = d.addProfile(ctx, r, stats, quotas)
		d.result.Inspected, d.result.Flags, d.result.Causes, d.result.Providers = r, r.Flags, r.Causes, []string{r.Seen.Sandbox.Provider}
		d.result.Errors = append(d.result.Errors, r.Errors...)
	} else if inspected.err == nil {
		d.result.Errors = append(d.result.Errors, unansweredError(word))
	}
	return nil
}

// addProfile judges a sandbox by the figures of its profile, too, as far as they are known in time.
func (d *diagnosis) addProfile(ctx context.Context, r *InspectResult, stats *future[[]fleet.ProviderStats], quotas *future[[]fleet.ProviderQuota]) *InspectResult {
	if r.Missing != nil {
		return r
	}
	ctx, stop := context.WithTimeout(ctx, stepLimit)
	defer stop()
	all, err := stats.wait(ctx)
	if err != nil {
		return r
	}
	limits, _ := quotas.wait(ctx) // one that cannot be read is not known
	sig := r.Signals
	counts := d.profileFigures(all[0], nil, limits).Counts
	sig.Fleet = &counts
	return judgeAgain(d.env, r, r.Seen, sig)
}

// checkKnown waits until it is known that there is such a sandbox: the error of a word that nobody
// knows.
func (d *diagnosis) checkKnown(ctx context.Context, inspected *future[*InspectResult]) error {
	ctx, stop := context.WithTimeout(ctx, stepLimit)
	defer stop()
	_, err := inspected.wait(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// profileOf is the profile of a word: its own, or that of the sandbox that was found.
func (d *diagnosis) profileOf(ctx context.Context, word string, inspected *future[*InspectResult]) (string, error) {
	if ref, err := sandbox.ParseRef(word); err == nil && !ref.Bare() {
		return ref.Provider, nil
	}
	r, err := inspected.wait(ctx)
	if err != nil {
		return "", err
	}
	return r.Seen.Sandbox.Provider, nil
}

// inspectSubject inspects the sandbox. What a task's record says of its end is added.
func (d *diagnosis) inspectSubject(ctx context.Context, word string) (*InspectResult, error) {
	r, err := inspect(ctx, d.env, word)
	t := d.result.Task
	if t == nil {
		return r, err
	}
	last := t.Last()
	switch kind := fault.KindOf(err); {
	case kind == fault.KindNotFound || kind == fault.KindGone:
		r = judgeObservation(d.env, goneObservation(attemptSandbox(*t, last)))
		r.Missing = err
	case err != nil:
		return nil, err
	case r.Seen.Sandbox.Exit == nil && last.Exit != nil:
		seen := r.Seen
		seen.Sandbox = addAttemptExit(seen.Sandbox, last)
		r = judgeAgain(d.env, r, seen, seen.Signals(d.env.Thresholds(seen.Sandbox)))
	}
	return r, nil
}

// goneObservation is what can be seen of a sandbox that is not there.
func goneObservation(s sandbox.Sandbox) fleet.Observation {
	gone := fault.New(fault.KindNotFound, "it is gone")
	seen := fleet.Observation{Sandbox: s}
	seen.Usage.Err, seen.Health.Err, seen.Events.Err = gone, gone, gone
	return seen
}

// storedSamples are the samples of a sandbox that earlier looks have kept, oldest first. What was
// sampled after its end says nothing about it.
func storedSamples(ctx context.Context, e *ops.Env, s sandbox.Sandbox) []sandbox.Usage {
	st, err := e.Store(false)
	if err != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, e.Process.Stretch.Limit(ops.MemoryLimit))
	defer stop()
	looks, err := history.Looks(ctx, st, s.Provider, e.Now().Add(-history.Rules().Keep))
	if errors.Join(err, st.Close()) != nil {
		return nil
	}
	var samples []sandbox.Usage
	for _, l := range looks {
		if u, known := l.Usage[s.ID]; known && (s.EndedAt.IsZero() || !u.At.After(s.EndedAt)) {
			samples = append(samples, u)
		}
	}
	return samples[max(0, len(samples)-maxStored):]
}

// maxStored is how many stored samples of a sandbox are judged.
const maxStored = 60

func stuckQuestionsOfOne() []question {
	return []question{
		{"R26", "is it stuck?"},
		{"R27", "how long has it run?"},
		{"R29", "which task and agent does it belong to?"},
		{"R30", "does it time out again and again?"},
	}
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
	return []reply{verdict, age, owner, flagReply(r.Flags, "R30", "no task on record has it")}
}

// flagReply answers a question with the verdict of a flag.
func flagReply(flags []triage.Flag, id, unknown string) reply {
	i := slices.IndexFunc(flags, func(f triage.Flag) bool { return f.ID == id })
	if i < 0 || flags[i].Verdict == sandbox.Unknown {
		return replyUnknown("%s", unknown)
	}
	word := "no"
	if flags[i].Verdict == sandbox.True {
		word = "yes"
	}
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
	active := flagReply(r.Flags, "R41", "no source tells when it was last active")
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
	return []reply{active, errors, repeats, flagReply(r.Flags, "R13", "no log was read")}
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
