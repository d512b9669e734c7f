//go:build unix

package supervisor

import "time"

// Limits of the wait for a client that edits the sandbox, which takes microseconds. A client that is stopped while it
// holds the lock does not keep a sandbox from its end.
const (
	editWait  = time.Second
	editPause = 5 * time.Millisecond
)

// laterEnd is the timer of a later end that a client has stored meanwhile; nil = the sandbox ends now, and from now on
// no client can store one. The time between two ends is measured, so that a wall clock that was set changes nothing.
func (s *supervisor) laterEnd() <-chan time.Time {
	s.lockEdits()
	until := s.store.MovedEnd(s.rec.ID)
	more := until.Sub(s.rec.ExpiresAt)
	if more <= 0 {
		return nil
	}
	s.rec.Note(s.now(), "extended", "it ends at "+until.Format(time.RFC3339)+", before that "+s.rec.ExpiresAt.Format(time.RFC3339))
	s.rec.ExpiresAt = until
	s.rec.Limits.TTLSeconds += more.Seconds()
	if err := s.store.Write(s.rec); err != nil {
		s.logError("recording a later end", err)
	}
	_ = s.store.SetDue(s.rec.ID, until) // without it, sweeps read the record
	if s.endLock != nil {
		s.endLock.Close()
		s.endLock = nil
	}
	return time.After(more)
}

func (s *supervisor) lockEdits() {
	for limit := time.Now().Add(s.timeScale.Limit(editWait)); time.Now().Before(limit); {
		lock, got, err := s.store.TryLockEdit(s.rec.ID)
		if got || err != nil {
			s.endLock = lock
			return
		}
		<-time.After(editPause)
	}
}
