package reconcile

import (
	"time"

	"sbx/internal/triage"

	"sbx/internal/sandbox"
)

// judgePair classifies a pair without earlier observations: what could be ended is only a
// suspect. False = both sides agree that it is over.
func (e *Engine) judgePair(p *pair, s Source, now time.Time) (Row, bool) {
	row := p.newRow(s.Name, now)
	box, there := p.bestRead()
	switch {
	case p.look.hasFailed():
		row.Err = p.look.err
		return row.judged(row.Class, CauseUnproved, ActReport, sandbox.Unknown, "it could not be read by its id: %v", p.look.err), true
	case len(p.records) > 1 && (p.claimsLife() || there && isLiving(box.State)):
		return row.judged(classOf(there), CauseDuplicate, ActReport, sandbox.True, "%d records name it: sbx cannot tell which one is right", len(p.records)), true
	case len(p.records) == 0:
		return e.judgeUnrecorded(row, box, s, now)
	}
	r := p.records[0]
	switch r.Live {
	case sandbox.True:
		return e.judgeRecordedLiving(row, r, box, there, s, now), true
	case sandbox.False:
		return e.judgeRecordedEnded(row, r, box, there, s, now)
	case sandbox.Unknown:
	}
	return unclearRecord(row, r, box, there), true
}

func classOf(there bool) Class {
	if there {
		return Differs
	}
	return RecordOnly
}

func (e *Engine) judgeRecordedLiving(row Row, r Record, box sandbox.Sandbox, there bool, s Source, now time.Time) Row {
	switch {
	case !there && isFresh(r, now, e.Rules.CreateGrace):
		return row.judged(
			RecordOnly, CauseUnclear, ActNone, sandbox.Unknown, "its record is younger than %s: it may still be starting",
			sandbox.FormatDuration(e.Rules.CreateGrace),
		)
	case !there:
		return s.endedRecord(row.judged(RecordOnly, CauseGhost, ActMark, sandbox.True, "recorded as %s, but the provider does not know its id", r.RawState))
	case isLiving(box.State) && box.State != sandbox.StateUnknown:
		return row
	case box.State == sandbox.StateTerminating:
		return row.judged(Differs, CauseEnding, ActNone, sandbox.Unknown, "recorded as %s, but terminating", r.RawState)
	case box.State == sandbox.StateUnknown:
		return row.judged(Differs, CauseUnclear, ActReport, sandbox.Unknown, "the provider says %q, which sbx does not know", box.RawState)
	case !box.EndedAt.IsZero() && !r.CreatedAt.IsZero() && box.EndedAt.Before(r.CreatedAt):
		return row.judged(Differs, CauseReused, ActReport, sandbox.Unknown, "the ended sandbox is older than the record: not the same one")
	case box.State == sandbox.StateStopped && !s.Tasks:
		return row.judged(Differs, CauseStopped, ActReport, sandbox.True, "recorded as %s, but stopped: it could continue", r.RawState)
	}
	return s.endedRecord(row.judged(Differs, CauseStale, ActMark, sandbox.True, "recorded as %s, but it is %s", r.RawState, box.State))
}

// isFresh reports whether a record is so young that its sandbox may not exist yet.
func isFresh(r Record, now time.Time, grace time.Duration) bool {
	return !r.CreatedAt.IsZero() && now.Sub(r.CreatedAt) <= grace
}

// endedRecord is the action for a record whose sandbox has ended: the application has to
// repair a task, and people have to repair a record that sbx may not write.
func (s Source) endedRecord(row Row) Row {
	switch {
	case s.Tasks:
		row.Cause, row.Action = CauseZombie, ActReport
		row.Reason += "; the task must be ended in its application"
	case s.Mark == nil:
		row.Action = ActReport
		row.Reason += "; sbx may not write these records"
	}
	return row
}

// judgeRecordedEnded judges a sandbox that need not exist any more.
func (e *Engine) judgeRecordedEnded(row Row, r Record, box sandbox.Sandbox, there bool, s Source, now time.Time) (Row, bool) {
	switch {
	case !there || box.State == sandbox.StateStopped || box.State.Ended():
		return row, false
	case box.State == sandbox.StateTerminating:
		return row.judged(Both, CauseEnding, ActNone, sandbox.Unknown, "recorded as %s, but terminating", r.RawState), true
	}
	if r.KeepAlive {
		return e.judgeKeptAlive(row, r, box, s, now), true
	}
	row = row.judged(Differs, CauseLeak, ActTerminate, sandbox.True, "recorded as %s, but it is %s", r.RawState, box.State)
	return e.judgeSuspect(row, s, now), true
}

// judgeKeptAlive judges a sandbox that outlives its task on purpose, for as long as its
// record allows.
func (e *Engine) judgeKeptAlive(row Row, r Record, box sandbox.Sandbox, s Source, now time.Time) Row {
	now = box.Clock(now)
	from, known := startTime(box, now)
	if !known {
		from, known = r.CreatedAt, !r.CreatedAt.IsZero()
	}
	switch {
	case r.KeepFor <= 0:
		return row.judged(Both, CauseKept, ActNone, sandbox.False, "kept alive on purpose, without a limit")
	case !known:
		return row.judged(Both, CauseKept, ActReport, sandbox.Unknown, "kept alive on purpose, and its age is unknown")
	case now.Sub(from) <= r.KeepFor:
		return row.judged(Both, CauseKept, ActNone, sandbox.False, "kept alive on purpose until %s", from.Add(r.KeepFor).UTC().Format(time.RFC3339))
	}
	row = row.judged(Differs, CauseOverdue, ActTerminate, sandbox.True, "kept alive, but for longer than the %s of its record", sandbox.FormatDuration(r.KeepFor))
	return e.judgeSuspect(row, s, now)
}

// unclearRecord judges a record that does not say whether its sandbox should live.
func unclearRecord(row Row, r Record, box sandbox.Sandbox, there bool) Row {
	if there && isLiving(box.State) {
		return row.judged(Both, CauseUnclear, ActNone, sandbox.Unknown, "recorded as %q, which does not tell whether it should run", r.RawState)
	}
	return row.judged(classOf(there), CauseUnclear, ActReport, sandbox.Unknown, "recorded as %q, and it does not run", r.RawState)
}

// judgeUnrecorded judges a sandbox without a record.
func (e *Engine) judgeUnrecorded(row Row, box sandbox.Sandbox, s Source, now time.Time) (Row, bool) {
	switch {
	case box.ID == "" || box.State.Ended(): // gone by its id, or ended
		return row, false
	case box.State == sandbox.StateTerminating:
		return row.judged(RealOnly, CauseEnding, ActNone, sandbox.Unknown, "not recorded, and terminating"), true
	}
	action := ActTerminate
	if e.Rules.Adopt {
		action = ActAdopt
	}
	row = row.judged(RealOnly, CauseOrphan, action, sandbox.True, "it is %s, but not recorded", box.State)
	return e.judgeSuspect(row, s, now), true
}

// judgeSuspect applies every rule that keeps a living sandbox from being ended. What nobody
// needs to look at becomes ActNone, the rest ActReport.
func (e *Engine) judgeSuspect(row Row, s Source, now time.Time) Row {
	box := row.Box
	if why := e.Rules.Protected(box); why != "" {
		return row.leftAlone(ActNone, why)
	}
	now = box.Clock(now)
	if !e.Rules.Owned(row.Ref.Provider, box.Labels) {
		if row.Action == ActAdopt {
			return row.leftAlone(ActReport, "it is not owned: `sbx config own --provider "+row.Ref.Provider+" --all` declares that all of this profile is yours")
		}
		return row.leftAlone(ActReport, "it is not owned: it may be in the records of another system")
	}
	from, known := startTime(box, now)
	switch {
	case box.State == sandbox.StateUnknown:
		return row.leftAlone(ActReport, "its state is unknown")
	case !known:
		return row.leftAlone(ActReport, "its age is unknown")
	case now.Sub(from) <= e.Rules.CreateGrace:
		return row.leftAlone(ActNone, "it is younger than "+sandbox.FormatDuration(e.Rules.CreateGrace)+": its record may still be written")
	case !s.AsOf.IsZero() && !from.Before(s.AsOf.Add(-e.Rules.CreateGrace)):
		return row.leftAlone(ActNone, "it is newer than the records, which are from "+s.AsOf.UTC().Format(time.RFC3339))
	case row.Action == ActAdopt && s.Adopt == nil:
		return row.leftAlone(ActReport, "sbx cannot add records to "+s.Name)
	case row.Action == ActAdopt:
		return row
	}
	return e.mayEnd(row, from)
}

// canEnd reports whether a sandbox of this state can be ended: a stopped one only with a
// delete.
func (e *Engine) canEnd(state sandbox.State) bool {
	return isLiving(state) || state == sandbox.StateStopped && e.Rules.Delete
}

// mayEnd applies the rules for what is to be ended, and not only adopted.
func (e *Engine) mayEnd(row Row, from time.Time) Row {
	if why := otherGeneration(row, from); why != "" {
		row.Cause = CauseReused
		return row.leftAlone(ActReport, why)
	}
	if row.listed == sandbox.StateRunning && row.Box.State != sandbox.StateRunning {
		return row.leftAlone(ActReport, "a read by its id says "+string(row.Box.State)+", and the list running")
	}
	if row.Box.State == sandbox.StateStopped && !e.Rules.Delete {
		return row.leftAlone(ActReport, "it is stopped; only --delete removes it")
	}
	if why := e.lifeSign(row); why != "" {
		return row.leftAlone(ActReport, why)
	}
	return row
}

// leftAlone changes the action of a suspect; why is put before its reason.
func (r Row) leftAlone(action Action, why string) Row {
	r.Action, r.Verdict = action, sandbox.Unknown
	if r.Reason != "" {
		why += "; " + r.Reason
	}
	r.Reason = why
	return r
}

// startTime is when the sandbox was last started. An unknown time and one in the future
// prove nothing.
func startTime(s sandbox.Sandbox, now time.Time) (time.Time, bool) {
	at := s.CreatedAt
	if s.StartedAt.After(at) {
		at = s.StartedAt
	}
	if at.IsZero() {
		at = s.FirstSeenAt
	}
	return at, !at.IsZero() && !at.After(now)
}

// otherGeneration explains that the sandbox began after the last time in the record against
// it: an id or a name was reused, or it was restarted.
func otherGeneration(row Row, from time.Time) string {
	if len(row.Records) == 0 {
		return ""
	}
	r := row.Records[0]
	switch last := r.lastTime(); {
	case last.IsZero() && r.SandboxID != row.Box.ID:
		return "the record has only a name and no time: it may be of another sandbox"
	case !last.IsZero() && from.After(last):
		return "it started after the record's last change: the record is of another sandbox, or missed the start"
	}
	return ""
}

// lifeSign describes the activity of the sandbox, by its record and by an observation; "" =
// none is known.
func (e *Engine) lifeSign(row Row) string {
	now := e.Now()
	switch v := e.Diagnose(row); {
	case row.Box.State != sandbox.StateRunning:
		return ""
	case row.Box.LastActivityAt.After(row.Box.Clock(now)):
		return "its last activity is in the future"
	case v.Activity == sandbox.True && v.Signs == "":
		return "the provider reports it as active"
	case v.Activity == sandbox.True:
		return "it is active" + v.Signs
	}
	return ""
}

// Diagnose is triage's judgement of the sandbox of a row.
func (e *Engine) Diagnose(row Row) triage.Verdict {
	limits, now := e.Rules.Thresholds(row.Box), e.Now()
	if row.observation == nil {
		return triage.Judge(row.Box, triage.Signals{}, limits, now)
	}
	o := *row.observation
	o.Sandbox = row.Box
	return o.Judge(limits, now)
}
