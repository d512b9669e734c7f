package runlog

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"sbx/internal/providers/local/plain"
)

// retryAfter is how long the spool leaves a failing disk alone.
const retryAfter = time.Second

// spool is the two files behind a Writer: it appends whole records, keeps both
// files together under the cap, and gets over a disk that is full or ill.
type spool struct {
	dir     string
	half    int64 // of the cap: the most that one file holds
	file    *os.File
	size    int64
	torn    bool   // the file ends inside a record
	before  amount // of the output that was stored in the files before this one
	here    amount // of the output in this one
	noHead  bool   // the file has to begin with before, which could not be written yet
	retryAt time.Time
	err     error                               // of the last attempt
	write   func(*os.File, []byte) (int, error) // (*os.File).Write, or a test's bad disk
}

func newSpool(dir string, capBytes int64) *spool {
	return &spool{dir: dir, half: max(capBytes, MinCapBytes) / 2, write: (*os.File).Write}
}

// append stores a batch of whole records, which hold the given amount of output, and
// returns how many of its bytes are on disk; after a failure the last record there may
// be a torn one, which stays, because a reader may have seen it. Within retryAfter of a
// failure append does not try, unless forced.
func (s *spool) append(batch []byte, holds amount, now time.Time, force bool) int {
	if !force && now.Before(s.retryAt) {
		return 0
	}
	kept, err := s.try(batch, holds)
	s.err = err
	if err != nil {
		s.retryAt = now.Add(retryAfter)
	}
	return kept
}

func (s *spool) try(batch []byte, holds amount) (int, error) {
	if err := s.open(); err != nil {
		return 0, err
	}
	if s.size > 0 && s.size+int64(len(batch))+1 > s.half { // 1 for mend
		if err := s.rotate(); err != nil {
			return 0, err
		}
	}
	if err := s.mend(); err != nil {
		return 0, err
	}
	if err := s.writeHead(); err != nil {
		return 0, err
	}
	n, err := s.write(s.file, batch)
	s.size += int64(n)
	s.torn = n > 0 && batch[n-1] != '\n'
	if n < len(batch) {
		holds = amountOf(batch[:n])
	}
	s.here.join(holds)
	return n, err
}

// writeHead begins a file that follows others with how much was stored before it, so
// that a reader knows what is missing once those are removed.
func (s *spool) writeHead() error {
	if !s.noHead {
		return nil
	}
	n, err := s.write(s.file, appendHead(nil, s.before))
	s.size += int64(n)
	s.noHead, s.torn = err != nil, err != nil && n > 0
	return err
}

// mend ends a torn record, so that the next one starts on a line of its own.
func (s *spool) mend() error {
	if !s.torn {
		return nil
	}
	n, err := s.write(s.file, []byte{'\n'})
	s.size += int64(n)
	s.torn = err != nil
	return err
}

// open continues the current file or makes a new one.
func (s *spool) open() error {
	if s.file != nil {
		return nil
	}
	file, err := plain.Open(currentPath(s.dir), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.file, s.size, s.torn = file, info.Size(), false
	if s.size > 0 {
		if s.before, s.here, err = countStored(file, s.size); err != nil {
			return errors.Join(err, s.close())
		}
		s.noHead = false
		var last [1]byte
		_, err := file.ReadAt(last[:], s.size-1)
		s.torn = err != nil || last[0] != '\n'
	}
	return nil
}

// rotate makes the current file the older one, in place of that, and starts a
// new one. The file is closed first, because not every system renames open ones.
func (s *spool) rotate() error {
	if err := s.close(); err != nil {
		return err
	}
	err := os.Rename(currentPath(s.dir), olderPath(s.dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.before.join(s.here)
	s.here, s.noHead = amount{}, true
	return s.open()
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
