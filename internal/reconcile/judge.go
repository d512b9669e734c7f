package reconcile

import (
	"time"

	"sbx/internal/sandbox"
)

// judge says what a pair is. It knows nothing of earlier observations: what may be
// ended by it alone is still only a suspect. False = there is nothing to compare:
// both sides agree that it is over.
func (e *Engine) judge(p *pair, s Source, now time.Time) (Row, bool) {
	row := p.row(s.Name, now)
	box, there := p.box()
	switch {
	case p.look.failed():
		row.Err = p.look.err
		return row.is(row.Class, CauseUnproved, ActReport, sandbox.Unknown, "it could not be read by its id: %v", p.look.err), true
	case len(p.records) > 1 && (p.claims() || there && living(box.State)):
		return row.is(classOf(there), CauseDuplicate, ActReport, sandbox.True, "%d records name it: which of them is right cannot be told", len(p.records)), true
	case len(p.records) == 0:
		return e.unrecorded(row, box, s, now)
	}
	r := p.records[0]
	switch r.Live {
	case sandbox.True:
		return e.recordedLiving(row, r, box, there, s, now), true
	case sandbox.False:
		return e.recordedEnded(row, r, box, there, s, now)
	case sandbox.Unknown:
	}
	return unclear(row, r, box, there), true
}

func classOf(there bool) Class {
	if there {
		return Differs
	}
	return RecordOnly
}

// recordedLiving judges a sandbox that should exist.
func (e *Engine) recordedLiving(row Row, r Record, box sandbox.Sandbox, there bool, s Source, now time.Time) Row {
	switch {
	case !there && fresh(r, now, e.Rules.CreateGrace):
		return row.is(RecordOnly, CauseUnclear, ActNone, sandbox.Unknown, "its record is younger than %s: it may still be made", sandbox.FormatDuration(e.Rules.CreateGrace))
	case !there:
		return s.over(row.is(RecordOnly, CauseGhost, ActMark, sandbox.True, "recorded as %s, and the provider denies it by its id", r.RawState))
	case living(box.State) && box.State != sandbox.StateUnknown:
		return row
	case box.State == sandbox.StateTerminating:
		return row.is(Differs, CauseEnding, ActNone, sandbox.Unknown, "recorded as %s, and on its way to the end", r.RawState)
	case box.State == sandbox.StateUnknown:
		return row.is(Differs, CauseUnclear, ActReport, sandbox.Unknown, "the provider says %q, which sbx does not know", box.RawState)
	case !box.EndedAt.IsZero() && !r.CreatedAt.IsZero() && box.EndedAt.Before(r.CreatedAt):
		return row.is(Differs, CauseReused, ActReport, sandbox.Unknown, "what ended is older than the record: they are not the same")
	case box.State == sandbox.StateStopped && !s.Tasks:
		return row.is(Differs, CauseStopped, ActReport, sandbox.True, "recorded as %s, and stopped: it could go on", r.RawState)
	}
	return s.over(row.is(Differs, CauseStale, ActMark, sandbox.True, "recorded as %s, and it is %s", r.RawState, box.State))
}

// fresh says that a record is so young that its sandbox may not be there yet.
func fresh(r Record, now time.Time, grace time.Duration) bool {
	return !r.CreatedAt.IsZero() && now.Sub(r.CreatedAt) <= grace
}

// over is what may be done about a record of what has ended: a task is for its
// application to repair, and a record that nobody may write for people.
func (s Source) over(row Row) Row {
	switch {
	case s.Tasks:
		row.Cause, row.Action = CauseZombie, ActReport
		row.Reason += "; the task has to be ended in its application"
	case s.Mark == nil:
		row.Action = ActReport
		row.Reason += "; sbx may not write these records"
	}
	return row
}

// recordedEnded judges a sandbox that need not exist any more.
func (e *Engine) recordedEnded(row Row, r Record, box sandbox.Sandbox, there bool, s Source, now time.Time) (Row, bool) {
	switch {
	case !there || box.State == sandbox.StateStopped || box.State.Ended():
		return row, false
	case box.State == sandbox.StateTerminating:
		return row.is(Both, CauseEnding, ActNone, sandbox.Unknown, "recorded as %s, and on its way to the end", r.RawState), true
	}
	if r.KeepAlive {
		return e.keptAlive(row, r, box, s, now), true
	}
	row = row.is(Differs, CauseLeak, ActTerminate, sandbox.True, "recorded as %s, and it is %s", r.RawState, box.State)
	return e.suspect(row, s, now), true
}

// keptAlive judges one that outlives its task on purpose, for as long as its
// record allows.
func (e *Engine) keptAlive(row Row, r Record, box sandbox.Sandbox, s Source, now time.Time) Row {
	now = box.Clock(now)
	from, known := born(box, now)
	if !known {
		from, known = r.CreatedAt, !r.CreatedAt.IsZero()
	}
	switch {
	case r.KeepFor <= 0:
		return row.is(Both, CauseKept, ActNone, sandbox.False, "kept alive on purpose, without a limit")
	case !known:
		return row.is(Both, CauseKept, ActReport, sandbox.Unknown, "kept alive on purpose, and its age is not known")
	case now.Sub(from) <= r.KeepFor:
		return row.is(Both, CauseKept, ActNone, sandbox.False, "kept alive on purpose until %s", from.Add(r.KeepFor).UTC().Format(time.RFC3339))
	}
	row = row.is(Differs, CauseOverdue, ActTerminate, sandbox.True, "kept alive, but for longer than the %s of its record", sandbox.FormatDuration(r.KeepFor))
	return e.suspect(row, s, now)
}

// unclear is a record that does not say whether its sandbox should live.
func unclear(row Row, r Record, box sandbox.Sandbox, there bool) Row {
	if there && living(box.State) {
		return row.is(Both, CauseUnclear, ActNone, sandbox.Unknown, "recorded as %q, which does not say whether it should live", r.RawState)
	}
	return row.is(classOf(there), CauseUnclear, ActReport, sandbox.Unknown, "recorded as %q, and it does not live", r.RawState)
}

// unrecorded judges a sandbox that no record names.
func (e *Engine) unrecorded(row Row, box sandbox.Sandbox, s Source, now time.Time) (Row, bool) {
	switch {
	case box.ID == "" || box.State.Ended(): // gone by its id, or over
		return row, false
	case box.State == sandbox.StateTerminating:
		return row.is(RealOnly, CauseEnding, ActNone, sandbox.Unknown, "on no record, and on its way to the end"), true
	}
	action := ActTerminate
	if e.Rules.Adopt {
		action = ActAdopt
	}
	row = row.is(RealOnly, CauseOrphan, action, sandbox.True, "it is %s, and on no record", box.State)
	return e.suspect(row, s, now), true
}
