package runlog

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"sbx/internal/providers/local/plain"
)

// LastActivity is when the program last wrote something that was stored, from
// the files' times alone; false when it has written nothing yet.
func LastActivity(dir string) (time.Time, bool) {
	var last time.Time
	for _, path := range []string{olderPath(dir), currentPath(dir)} {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, !last.IsZero()
}

// pair is the two files of a log as they stood at one moment; a missing one is nil.
type pair struct {
	older, current *os.File
}

// openAttempts bounds the retries of openPair. A rotation needs 64 KiB of
// output and an attempt three system calls, so a second attempt is rare.
const openAttempts = 16

// openPair opens both files so that no rotation lies between them: the current
// one is still the current one after the older one was opened.
func openPair(dir string) (pair, error) { return openPairBy(openIfThere, dir) }

func openPairBy(open func(string) (*os.File, error), dir string) (pair, error) {
	for attempt := 1; ; attempt++ {
		current, err := open(currentPath(dir))
		if err != nil {
			return pair{}, err
		}
		older, err := open(olderPath(dir))
		p := pair{older, current}
		if err != nil {
			p.close()
			return pair{}, err
		}
		if attempt == openAttempts || isCurrent(dir, current) {
			return p, nil
		}
		p.close()
	}
}

func openIfThere(path string) (*os.File, error) {
	file, err := plain.Open(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // as pair says
	}
	return file, err
}

// isCurrent says that the file is the one that the Writer appends to; a nil
// file is, when there is none.
func isCurrent(dir string, file *os.File) bool {
	there, err := os.Stat(currentPath(dir))
	if err != nil {
		return file == nil
	}
	return same(file, there)
}

func same(file *os.File, info fs.FileInfo) bool {
	if file == nil || info == nil {
		return false
	}
	own, err := file.Stat()
	return err == nil && os.SameFile(own, info)
}

func (p pair) close() {
	for _, file := range []*os.File{p.older, p.current} {
		if file != nil {
			file.Close()
		}
	}
}

func sizeOf(file *os.File) (int64, error) {
	if file == nil {
		return 0, nil
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
