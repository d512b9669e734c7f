package selector

import (
	"strings"

	"sbx/internal/cond"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// name is one name of a condition over sandboxes.
type name = cond.Name[*Subject]

// ConditionNames is the one table of what conditions over sandboxes may use: the keys of `ls`
// and of `top`, with what each means.
func ConditionNames() []name { return append(recordNames(), lookNames()...) }

// recordNames are the keys of ls. A look can tell those of activity where the record does not.
func recordNames() []name {
	return []name{
		text("ref", "profile/id", func(s *Subject) string { return s.sandbox.Ref().String() }),
		text("provider", "the profile", func(s *Subject) string { return s.sandbox.Provider }),
		text("provider_type", "the kind of provider", func(s *Subject) string { return s.sandbox.ProviderType }),
		text("id", "its id at the provider", func(s *Subject) string { return s.sandbox.ID }),
		text("name", "its name", func(s *Subject) string { return s.sandbox.Name }),
		words(text("state", "its state", func(s *Subject) string { return string(s.sandbox.State) }), sandbox.States()...),
		text("raw_state", "the provider's own word for its state", func(s *Subject) string { return s.sandbox.RawState }),
		moment("created_at", "when it was created", func(s *Subject) cond.Value { return cond.Time(s.sandbox.CreatedAt) }),
		moment("started_at", "when it started", func(s *Subject) cond.Value { return cond.Time(s.sandbox.StartedAt) }),
		number("age_seconds", cond.UnitSeconds, "time since its creation", ageOf),
		words(text("age_source", "which time the age counts from", ageSourceOf), sandbox.AgeCreatedAt, sandbox.AgeStartedAt, sandbox.AgeFirstSeen),
		looked(moment("last_activity_at", "its last sign of life", func(s *Subject) cond.Value { return cond.Time(s.sandbox.LastActivityAt) })),
		looked(number("idle_seconds", cond.UnitSeconds, "time since its last sign of life", idleOf)),
		verdict("activity", "whether it shows life now", func(s *Subject) sandbox.Verdict { return s.verdict.Activity }),
		moment("expires_at", "when its provider ends it", func(s *Subject) cond.Value { return cond.Time(s.sandbox.ExpiresAt) }),
		text("template", "the template or image it was created from", func(s *Subject) string { return s.sandbox.Template }),
		text("agent_type", "the kind of its agent", func(s *Subject) string { return s.sandbox.AgentType }),
		text("task_id", "its task", func(s *Subject) string { return s.sandbox.TaskID }),
		text("owner", "who owns it, by its labels", func(s *Subject) string { return s.sandbox.Owner }),
		{
			Name: "labels", Kind: cond.KindLabels, Meaning: `its labels: labels.team == "a", "sbx/keep" in labels`,
			Value: func(s *Subject) cond.Value { return cond.Labels(s.sandbox.Labels) },
		},
		number("cpu", cond.UnitNone, "its limit of processor cores", func(s *Subject) cond.Value { return cond.NumberOf(s.sandbox.Limits.CPU) }),
		number("disk_mb", cond.UnitMiB, "its limit of disk space", func(s *Subject) cond.Value { return cond.Scaled(s.sandbox.Limits.DiskBytes, sandbox.MiB) }),
		number("exit_code", cond.UnitNone, "the exit code of its program", exitCodeOf),
		verdict("stuck", "whether it is stuck, by the rule of cleanup", func(s *Subject) sandbox.Verdict { return s.verdict.Stuck }),
		judged(text("stuck_reason", "why it is stuck or is not, in words", func(s *Subject) string { return s.verdict.Say() })),
		judged(words(text("cause", "what is wrong with it, or why it ended", func(s *Subject) string { return string(s.verdict.Cause) }), sandbox.Causes()...)),
		judged(words(text("confidence", "how sure the cause is", confidenceOf), sandbox.Certain, sandbox.Probable, sandbox.Hint, sandbox.ConfidenceUnknown)),
	}
}

// lookNames are the keys of top: only a look tells them.
func lookNames() []name {
	return []name{
		usage(
			"cpu_percent", cond.UnitPercent, "its use of the processor, in percent of one core",
			func(u *Figures) cond.Value { return cond.NumberOf(u.Trend.CPUPercent) },
		),
		usage(
			"usage.memory_mb", cond.UnitMiB, "its working set: memory in use without inactive page cache; active one counts (`memory_mb` of top)",
			func(u *Figures) cond.Value { return cond.Scaled(u.Trend.MemoryBytes, sandbox.MiB) },
		),
		looked(number("memory_limit_mb", cond.UnitMiB, "its limit of memory (`memory_mb` of ls)", memoryLimitOf)),
		usage("memory_slope_mb_per_min", cond.UnitMiBPerMinute, "how fast its memory grows", func(u *Figures) cond.Value { return cond.NumberOf(u.Trend.MemorySlope) }),
		usage("operations", cond.UnitCount, "operations so far, as its source counts them", func(u *Figures) cond.Value { return cond.NumberOf(u.Last.Operations) }),
		usage("duration_seconds", cond.UnitSeconds, "how long it has run, as it reports itself", durationOf),
		usage("pids", cond.UnitCount, "its processes", func(u *Figures) cond.Value { return cond.NumberOf(u.Last.PIDs) }),
		usage("oom_kills", cond.UnitCount, "processes that the kernel killed for want of memory", func(u *Figures) cond.Value { return cond.NumberOf(u.Last.OOMKills) }),
		judged(words(text("pattern", "what its use of resources looks like", patternOf), triage.UsagePatterns()...)),
		judged(words(
			text("likely_cause", "the likely cause of the pattern: `cause`", func(s *Subject) string { return string(s.verdict.Cause) }), sandbox.Causes()...,
		)),
	}
}

func number(key string, unit cond.Unit, meaning string, value func(*Subject) cond.Value) name {
	return name{Name: key, Kind: cond.KindNumber, Unit: unit, Meaning: meaning, Value: value}
}

func moment(key, meaning string, value func(*Subject) cond.Value) name {
	return name{Name: key, Kind: cond.KindTime, Meaning: meaning, Value: value}
}

func text(key, meaning string, value func(*Subject) string) name {
	return name{Name: key, Kind: cond.KindText, Meaning: meaning, Value: func(s *Subject) cond.Value { return cond.Text(value(s)) }}
}

func words[S ~string](n name, list ...S) name {
	for _, w := range list {
		if w != "" {
			n.Words = append(n.Words, string(w))
		}
	}
	return n
}

// verdict is a judgement that a record may leave open; it is true, false or unknown.
func verdict(key, meaning string, of func(*Subject) sandbox.Verdict) name {
	return name{Name: key, Kind: cond.KindBool, Meaning: meaning, Look: true, Value: func(s *Subject) cond.Value {
		switch of(s) {
		case sandbox.True:
			return cond.Bool(true)
		case sandbox.False:
			return cond.Bool(false)
		case sandbox.Unknown:
		}
		if s.usage == nil {
			return cond.Unread(notLooked)
		}
		return cond.Absent()
	}}
}

// notLooked is why a value is unknown that only a look tells.
const notLooked = "not looked at"

// looked is a name whose value a look can add: without the value and without a look it is
// unknown, not absent.
func looked(n name) name {
	value := n.Value
	n.Look = true
	n.Value = func(s *Subject) cond.Value {
		v := value(s)
		if s.usage == nil && v.Missing() && !v.Unread() && !s.sandbox.State.Ended() {
			return cond.Unread(notLooked)
		}
		return v
	}
	return n
}

// judged is a name of the verdict: of a sandbox whose record does not decide it is unknown without
// a look, whatever the verdict says so far.
func judged(n name) name {
	n = looked(n)
	value := n.Value
	n.Value = func(s *Subject) cond.Value {
		if s.usage == nil && s.verdict.NeedsLook() {
			return cond.Unread(notLooked)
		}
		return value(s)
	}
	return n
}

// usage is a figure of the usage, which only a look tells.
func usage(key string, unit cond.Unit, meaning string, value func(*Figures) cond.Value) name {
	n := number(key, unit, meaning, func(s *Subject) cond.Value {
		switch {
		case s.usage == nil:
			return cond.Unread(notLooked)
		case s.usage.Err != nil:
			return cond.Unread("the look failed (" + string(fault.KindOf(s.usage.Err)) + ")")
		}
		return value(s.usage)
	})
	n.Look = true
	return n
}

// ageOf is the age; since the first sight it is a lower bound.
func ageOf(s *Subject) cond.Value {
	switch s.ageSource {
	case sandbox.AgeCreatedAt, sandbox.AgeStartedAt:
		return cond.Duration(s.age)
	case sandbox.AgeFirstSeen:
		return cond.AtLeast(s.age.Seconds())
	case sandbox.AgeUnknown, sandbox.AgeEndingAt:
	}
	return cond.Unread(strings.TrimPrefix(noAge(s.sandbox, s.now), "age unknown: "))
}

func ageSourceOf(s *Subject) string {
	if s.ageSource == sandbox.AgeUnknown {
		return ""
	}
	return string(s.ageSource)
}

func idleOf(s *Subject) cond.Value {
	idle, reported := s.sandbox.Idle(s.now)
	if !reported || s.sandbox.State.Ended() {
		return cond.Absent()
	}
	return cond.Duration(idle)
}

func exitCodeOf(s *Subject) cond.Value {
	if s.sandbox.Exit == nil {
		return cond.Absent()
	}
	return cond.NumberOf(s.sandbox.Exit.Code)
}

func confidenceOf(s *Subject) string {
	if s.verdict.Cause == sandbox.CauseNone {
		return ""
	}
	return string(s.verdict.Confidence)
}

// patternOf is "unknown" only after a look, as top shows it.
func patternOf(s *Subject) string {
	if s.usage == nil {
		return ""
	}
	return string(s.verdict.Pattern)
}

// memoryLimitOf is the limit of the record, else the one that a look reads.
func memoryLimitOf(s *Subject) cond.Value {
	if s.sandbox.Limits.MemoryBytes != nil || s.usage == nil {
		return cond.Scaled(s.sandbox.Limits.MemoryBytes, sandbox.MiB)
	}
	return cond.Scaled(s.usage.Trend.MemoryLimitBytes, sandbox.MiB)
}

func durationOf(u *Figures) cond.Value {
	if u.Last.Duration == nil {
		return cond.Absent()
	}
	return cond.Duration(*u.Last.Duration)
}
