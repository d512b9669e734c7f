package hostfile

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// appendLimit is how long the reader of a pipe may leave it full.
const appendLimit = time.Second

// Appended is a file that is open for more text at its end.
type Appended struct{ *os.File }

// Append opens a file at its end and makes it with perm where it does not exist. It never
// waits: a pipe without a reader is an error.
func Append(path string, perm fs.FileMode) (Appended, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|nonBlock, perm)
	if nonBlock != 0 && errors.Is(err, errNoReader) {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("this pipe has no reader")}
	}
	return Appended{f}, err
}

// Add writes text, in one step where the system can. A pipe that stays full is an
// error after a second.
func (a Appended) Add(text string) error {
	_ = a.SetWriteDeadline(time.Now().Add(appendLimit)) // a regular file has none and needs none
	_, err := a.WriteString(text)
	return err
}
