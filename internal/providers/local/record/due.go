package record

import (
	"os"
	"path/filepath"
	"time"
)

// SetDue leaves on a sandbox's lock, as the file's modification time, when its
// time is over. It spares those who look after many sandboxes the reading of
// records; the record stays the truth. It is called by the holder of the lock.
func (s Store) SetDue(id string, at time.Time) error {
	return os.Chtimes(filepath.Join(s.Dir(id), lockFile), time.Time{}, at)
}

// Due says before when a sandbox's time is certainly not over; false for one
// that has been brought to its end. A lock that nobody set a time on bears the
// time of its signature, which is never too late.
func (s Store) Due(id string) (time.Time, bool) {
	info, err := os.Lstat(filepath.Join(s.Dir(id), lockFile))
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}
