package wiretest

import (
	"errors"
	"io/fs"
	"os/exec"
)

// NotFound says that Machine.Start found no such program.
func NotFound(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}
