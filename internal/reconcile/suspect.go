package reconcile

import (
	"time"

	"sbx/internal/sandbox"
)

// suspect applies every rule that keeps a living sandbox from being ended. What
// wants no look of anybody becomes ActNone, the rest ActReport. Explicit says that
// somebody wrote down its end: then signs of life do not excuse it.
func (e *Engine) suspect(row Row, s Source, now time.Time, explicit bool) Row {
	box, now := row.Box, e.younger(row.Ref.Provider, now)
	if why := e.Rules.Protected(box); why != "" {
		return row.kept(ActNone, why)
	}
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
	return e.mayEnd(row, from, now, explicit)
}

// sameStart is how far the start of a sandbox may lie behind that of its own record: two
// writes of one create, and times in whole seconds.
const sameStart = 2 * time.Second

// explicit says that a record has written down the end of this very sandbox. One that
// came to be after its record may be another to which the id was given, or one that
// waited for its turn: then signs of life excuse it.
func (e *Engine) explicit(row Row) bool {
	if row.Cause != CauseLeak || len(row.Records) == 0 {
		return false
	}
	made, recorded := row.Box.CreatedAt, row.Records[0].CreatedAt
	// Whose clock the record goes by is not known: the later reading of the start counts.
	if skew, _ := e.Fleet.Skew(row.Ref.Provider); skew < 0 {
		made = made.Add(-skew)
	}
	return !row.Box.CreatedAt.IsZero() && !recorded.IsZero() && !made.After(recorded.Add(sameStart))
}

// endable says that a sandbox of this state may be asked to end: one that is stopped
// only where a delete goes further.
func (e *Engine) endable(state sandbox.State) bool {
	return living(state) || state == sandbox.StateStopped && e.Rules.Delete
}

// mayEnd applies the rules for what is not only to be put on record.
func (e *Engine) mayEnd(row Row, from, now time.Time, explicit bool) Row {
	if why := otherGeneration(row, from); why != "" {
		row.Cause = CauseReused
		return row.kept(ActReport, why)
	}
	if row.Box.State == sandbox.StateStopped && !e.Rules.Delete {
		return row.kept(ActReport, "it is stopped, and only a delete goes further")
	}
	if why := e.alive(row.Box, now); why != "" && !explicit {
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

// younger is the time by which a profile's sandboxes are judged: of this machine's
// clock and the profile's, the one that makes them younger, and what they did last
// more recent.
func (e *Engine) younger(profile string, now time.Time) time.Time {
	skew, _ := e.Fleet.Skew(profile)
	return now.Add(min(0, skew))
}

// alive says by what the sandbox shows life now; "" = by nothing that is known.
func (e *Engine) alive(s sandbox.Sandbox, now time.Time) string {
	if s.State != sandbox.StateRunning {
		return ""
	}
	limit := e.Rules.Thresholds(s).Inactivity
	idle, known := s.Idle(now)
	switch {
	case s.Activity == sandbox.True:
		return "the provider says that it works"
	case s.LastActivityAt.After(now):
		return "its last activity lies in the future"
	case known && idle <= limit:
		return "it showed life " + sandbox.FormatDuration(idle) + " ago"
	}
	return ""
}
