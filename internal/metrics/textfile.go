package metrics

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
)

// modeTextfile lets the collector read, which runs as another user.
const modeTextfile = 0o644

// WriteTextfile puts the set where a textfile collector reads it, as one step: a
// reader and a crash see the old or the new file, never a part. Its name must end
// in .prom, since the collector passes over others in silence (fault.KindUsage);
// what the file system refuses is fault.KindUnknown, a full disk
// fault.KindUnavailable.
func WriteTextfile(path string, s Set) error {
	if err := CheckTextfile(path); err != nil {
		return err
	}
	if err := hostfile.Replace(path, []byte(s.Text()), modeTextfile); err != nil {
		return unwritableFile(err)
	}
	return nil
}

// CheckTextfile refuses a path that no collector would read, and what is no file, before a run begins.
func CheckTextfile(path string) error {
	if base := filepath.Base(path); !strings.HasSuffix(base, ".prom") || strings.HasPrefix(base, ".") {
		return fault.Usage("%q is not a name for a metrics file", path).
			WithHint("the textfile collector reads only files that end in .prom: write it like /var/lib/node_exporter/sbx.prom")
	}
	return hostfile.CheckOutput(path)
}

func unwritableFile(err error) error {
	kind, hint := fault.KindUnknown, "check that the folder exists and that you may write to it"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind, hint = fault.KindUnavailable, "the disk is full: the file keeps its last content"
	case errors.Is(err, syscall.EROFS):
		hint = "the file system is read-only; under systemd add the folder to ReadWritePaths"
	case errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		hint = "name a file, not a folder"
	}
	return fault.New(kind, "the metrics cannot be written: %w", err).WithHint("%s", hint)
}
