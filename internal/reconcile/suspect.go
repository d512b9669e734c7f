package reconcile

import (
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// suspect applies every rule that keeps a living sandbox from being ended. What
// wants no look of anybody becomes ActNone, the rest ActReport.
func (e *Engine) suspect(row Row, s Source, now time.Time) Row {
	box := row.Box
	if why := e.Rules.Protected(box); why != "" {
		return row.kept(ActNone, why)
	}
	now = box.Clock(now)
	if !e.Rules.Owned(row.Ref.Provider, box.Labels) {
		if row.Action == ActAdopt {
			return row.kept(ActReport, "it is not owned: --provider "+row.Ref.Provider+" says that all of this profile is yours")
		}
		return row.kept(ActReport, "it is not owned: somebody else's records may have it")
	}
	from, known := born(box, now)
	switch {
	case box.State == sandbox.StateUnknown:
		return row.kept(ActReport, "its state is not known")
	case !known:
		return row.kept(ActReport, "its age is not known")
	case now.Sub(from) <= e.Rules.CreateGrace:
		return row.kept(ActNone, "it is younger than "+sandbox.FormatDuration(e.Rules.CreateGrace)+": its record may still be written")
	case !s.AsOf.IsZero() && !from.Before(s.AsOf.Add(-e.Rules.CreateGrace)):
		return row.kept(ActNone, "it is younger than the records, which are of "+s.AsOf.UTC().Format(time.RFC3339))
	case row.Action == ActAdopt && s.Adopt == nil:
		return row.kept(ActReport, "records of "+s.Name+" take none from sbx")
	case row.Action == ActAdopt:
		return row
	}
	return e.mayEnd(row, from)
}

// endable says that a sandbox of this state may be asked to end: one that is stopped
// only where a delete goes further.
func (e *Engine) endable(state sandbox.State) bool {
	return living(state) || state == sandbox.StateStopped && e.Rules.Delete
}

// mayEnd applies the rules for what is not only to be put on record.
func (e *Engine) mayEnd(row Row, from time.Time) Row {
	if why := otherGeneration(row, from); why != "" {
		row.Cause = CauseReused
		return row.kept(ActReport, why)
	}
	if row.Box.State == sandbox.StateStopped && !e.Rules.Delete {
		return row.kept(ActReport, "it is stopped, and only a delete goes further")
	}
	if why := e.alive(row); why != "" {
		return row.kept(ActReport, why)
	}
	return row
}

// kept leaves a suspect alone; why stands before what it is.
func (r Row) kept(action Action, why string) Row {
	r.Action, r.Verdict = action, sandbox.Unknown
	if r.Reason != "" {
		why += "; " + r.Reason
	}
	r.Reason = why
	return r
}

// born is when the sandbox last began to live. Unknown, and in the future, prove
// nothing.
func born(s sandbox.Sandbox, now time.Time) (time.Time, bool) {
	at := s.CreatedAt
	if s.StartedAt.After(at) {
		at = s.StartedAt
	}
	if at.IsZero() {
		at = s.FirstSeenAt
	}
	return at, !at.IsZero() && !at.After(now)
}

// otherGeneration says that the sandbox began after the last word of the record
// that is to condemn it: an id or a name was used again, or it was started anew.
func otherGeneration(row Row, from time.Time) string {
	if len(row.Records) == 0 {
		return ""
	}
	r := row.Records[0]
	switch last := r.last(); {
	case last.IsZero() && r.SandboxID != row.Box.ID:
		return "the record goes by a name and has no time: it may mean another"
	case !last.IsZero() && from.After(last):
		return "it began after the record's last word: the record speaks of another, or does not know of the start"
	}
	return ""
}

// alive says by what the sandbox shows life now, by its record and by what a look has
// shown; "" = by nothing that is known.
func (e *Engine) alive(row Row) string {
	now := e.Now()
	switch v := e.Diagnose(row); {
	case row.Box.State != sandbox.StateRunning:
		return ""
	case row.Box.LastActivityAt.After(row.Box.Clock(now)):
		return "its last activity lies in the future"
	case v.Activity == sandbox.True && v.Signs == "":
		return "the provider says that it works"
	case v.Activity == sandbox.True:
		return "it shows life" + v.Signs
	}
	return ""
}

// Diagnose is the one judgement of how the sandbox of a row fares.
func (e *Engine) Diagnose(row Row) triage.Verdict {
	limits, now := e.Rules.Thresholds(row.Box), e.Now()
	if row.seen == nil {
		return triage.Judge(row.Box, triage.Signals{}, limits, now)
	}
	o := *row.seen
	o.Sandbox = row.Box
	return o.Judge(limits, now)
}
