package local

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/plain"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
)

// classifyError maps errors of the state folder to the operator's possible actions.
func (c *Client) classifyError(op string, err error) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, record.ErrGarbage):
		return fault.New(fault.KindUnavailable, "%w", unreadableError{err}).At(c.name, op).
			WithHint("look at the file; `sbx terminate %s/ID --delete` ends the sandbox and removes its record", c.name)
	case errors.Is(err, plain.ErrNotPlain): // a file other than the record
		return fault.New(fault.KindUnavailable, "%w", err).At(c.name, op).WithHint("look at what stands there; the program may have put it there")
	case record.IsDiskFull(err):
		return fault.New(fault.KindUnavailable, "%w", err).At(c.name, op).WithHint("%s", c.freeSpace())
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return fault.Usage("%w", err).At(c.name, op).
			WithHint("the state folder %s must be yours to write; SBX_STATE_DIR names another", c.deps.StateDir)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fault.New(fault.KindUnavailable, "%w", err).At(c.name, op).WithHint("raise the limit of open files: `ulimit -n` shows it")
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EIO):
		return fault.New(fault.KindUnavailable, "%w", err).At(c.name, op)
	}
	return fault.New(fault.KindOf(err), "%w", err).At(c.name, op)
}

// unreadableError is an unreadable record as the contract defines it.
type unreadableError struct{ error }

func (u unreadableError) Unwrap() []error { return []error{u.error, providers.ErrUnreadable} }

// cannotWrite reports whether a write failed for lack of space or permission.
func cannotWrite(err error) bool {
	return record.IsDiskFull(err) || errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}

func (c *Client) freeSpace() string {
	return "free space under " + c.deps.StateDir + ", or point SBX_STATE_DIR elsewhere"
}

// startError maps failed starts.
func (c *Client) startError(op string, fail *wire.Fail) error {
	kind, hint := fault.KindLauncher, ""
	switch fail.Kind {
	case wire.FailNotFound:
		kind = fault.KindCommandNotFound
		if hint = "the sandbox sees the PATH of whoever creates it; name the program by its full path"; strings.Contains(fail.Message, "/") {
			hint = "a path without a leading slash is looked up from the sandbox's working directory"
		}
	case wire.FailNotExecutable:
		kind, hint = fault.KindNotExecutable, "chmod +x it, or name its interpreter: -- sh FILE"
	case wire.FailWorkdir:
		hint = "name an existing folder with --workdir"
	case wire.FailSoftLimit:
		kind, hint = fault.KindRefused, "`sbx doctor` says what this machine offers; without --require-hard-limit a watchdog holds the limit"
	case wire.FailDisk:
		kind, hint = fault.KindUnavailable, c.freeSpace()
	case wire.FailIsolation, wire.FailLauncher:
	}
	err := fault.New(kind, "%s", fail.Message).At(c.name, op)
	err.Hint = hint
	return err
}
