package runlog

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"sbx/internal/providers/local/plain"
)

// LastActivity is when the program last wrote output that was stored, by the times of the
// files; false when it has written nothing yet.
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

// filePair is the two files of a log at one moment; a missing one is nil.
type filePair struct {
	older, current *os.File
}

// openAttempts limits the retries of openPair. A rotation needs 64 KiB of output and an attempt
// three system calls, so a second attempt is rare.
const openAttempts = 16

// openPair opens both files without a rotation in between: the current one is still current
// after the older one was opened.
func openPair(dir string) (filePair, error) { return openPairBy(openIfThere, dir) }

func openPairBy(open func(string) (*os.File, error), dir string) (filePair, error) {
	for attempt := 1; ; attempt++ {
		current, err := open(currentPath(dir))
		if err != nil {
			return filePair{}, err
		}
		older, err := open(olderPath(dir))
		p := filePair{older, current}
		if err != nil {
			p.closeFiles()
			return filePair{}, err
		}
		if attempt == openAttempts || isCurrent(dir, current) {
			return p, nil
		}
		p.closeFiles()
	}
}

func openIfThere(path string) (*os.File, error) {
	file, err := plain.Open(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // see filePair
	}
	return file, err
}

// isCurrent reports whether the Writer appends to this file; a nil file is current when there
// is none.
func isCurrent(dir string, file *os.File) bool {
	there, err := os.Stat(currentPath(dir))
	if err != nil {
		return file == nil
	}
	return sameFile(file, there)
}

func sameFile(file *os.File, info fs.FileInfo) bool {
	if file == nil || info == nil {
		return false
	}
	own, err := file.Stat()
	return err == nil && os.SameFile(own, info)
}

func (p filePair) closeFiles() {
	for _, file := range []*os.File{p.older, p.current} {
		if file != nil {
			file.Close()
		}
	}
}

func openFileSize(file *os.File) (int64, error) {
	if file == nil {
		return 0, nil
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
