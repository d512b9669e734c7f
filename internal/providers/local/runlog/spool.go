package runlog

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"sbx/internal/providers/local/plain"
)

// retryAfter is how long the spool does not write after an error.
const retryAfter = time.Second

// spool is the two files of a Writer: it appends complete records, keeps both files together
// under the cap, and continues after a full or failing disk.
type spool struct {
	dir     string
	half    int64 // half of the cap: the largest size of one file
	file    *os.File
	size    int64
	torn    bool   // the file ends inside a record
	before  amount // of the output in earlier files
	here    amount // of the output in this file
	noHead  bool   // the head with before could not be written yet
	retryAt time.Time
	err     error                               // of the last attempt
	write   func(*os.File, []byte) (int, error) // (*os.File).Write, or a test's
}

func newSpool(dir string, capBytes int64) *spool {
	return &spool{dir: dir, half: max(capBytes, MinCapBytes) / 2, write: (*os.File).Write}
}

// appendBatch stores a batch of complete records with the given amount of output, and returns
// how many of its bytes are on disk; after an error the last record there may be torn, which
// stays, because a reader may have read it. Within retryAfter of an error it does not write,
// unless forced.
func (s *spool) appendBatch(batch []byte, holds amount, now time.Time, force bool) int {
	if !force && now.Before(s.retryAt) {
		return 0
	}
	kept, err := s.tryAppend(batch, holds)
	s.err = err
	if err != nil {
		s.retryAt = now.Add(retryAfter)
	}
	return kept
}

func (s *spool) tryAppend(batch []byte, holds amount) (int, error) {
	if err := s.openFile(); err != nil {
		return 0, err
	}
	if s.size > 0 && s.size+int64(len(batch))+1 > s.half { // 1 for endTornRecord
		if err := s.rotateFiles(); err != nil {
			return 0, err
		}
	}
	if err := s.endTornRecord(); err != nil {
		return 0, err
	}
	if err := s.writeHead(); err != nil {
		return 0, err
	}
	n, err := s.write(s.file, batch)
	s.size += int64(n)
	s.torn = n > 0 && batch[n-1] != '\n'
	if n < len(batch) {
		holds = countPiece(batch[:n])
	}
	s.here.addNext(holds)
	return n, err
}

// writeHead begins a file after a rotation with the amount of output before it, so that a
// reader knows what is missing once that is removed.
func (s *spool) writeHead() error {
	if !s.noHead {
		return nil
	}
	n, err := s.write(s.file, appendHead(nil, s.before))
	s.size += int64(n)
	s.noHead, s.torn = err != nil, err != nil && n > 0
	return err
}

// endTornRecord ends a torn record, so that the next one starts on a line of its own.
func (s *spool) endTornRecord() error {
	if !s.torn {
		return nil
	}
	n, err := s.write(s.file, []byte{'\n'})
	s.size += int64(n)
	s.torn = err != nil
	return err
}

// openFile continues the current file or makes a new one.
func (s *spool) openFile() error {
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
			return errors.Join(err, s.closeFile())
		}
		s.noHead = false
		var last [1]byte
		_, err := file.ReadAt(last[:], s.size-1)
		s.torn = err != nil || last[0] != '\n'
	}
	return nil
}

// rotateFiles renames the current file to the older one and starts a new one. The file is
// closed first, because some systems do not rename open files.
func (s *spool) rotateFiles() error {
	if err := s.closeFile(); err != nil {
		return err
	}
	err := os.Rename(currentPath(s.dir), olderPath(s.dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.before.addNext(s.here)
	s.here, s.noHead = amount{}, true
	return s.openFile()
}

func (s *spool) closeFile() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
