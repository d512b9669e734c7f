package local

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/plain"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// TypeName is the provider type's name, and its profile's unless configured
// otherwise.
const TypeName = "local"

// createSettles is far longer than a create takes (milliseconds).
const createSettles = 3 * time.Second

// Client is the local provider.
type Client struct {
	name     string
	store    record.Store
	defaults defaults
	deps     providers.Deps
	age      func(identity.Process) (time.Duration, bool) // by a monotonic clock
}

var (
	_ providers.Provider      = (*Client)(nil)
	_ providers.LogReader     = (*Client)(nil)
	_ providers.ProcessLister = (*Client)(nil)
	_ providers.UsageReader   = (*Client)(nil)
	_ providers.Launcher      = (*Client)(nil)
	_ providers.Commander     = (*Client)(nil)
	_ providers.Prober        = (*Client)(nil)
	_ providers.EventReader   = (*Client)(nil)
	_ providers.Sweeper       = (*Client)(nil)
	_ providers.Checker       = (*Client)(nil)
	_ providers.Recorder      = (*Client)(nil)
	_ providers.ExitReader    = (*Client)(nil)
	_ providers.LabelEditor   = (*Client)(nil)
	_ providers.Extender      = (*Client)(nil)
)

// Type describes the local provider and its settings.
func Type() providers.Type {
	return providers.Type{
		Name:   TypeName,
		Help:   "real processes of this machine with real limits; no account needed, no security boundary",
		Always: true,
		Facts: providers.Facts{
			HostBound: true, HostProcesses: true, InStateDir: true, SizedByProfile: true, OwnsAll: true, LaunchDefault: true,
			CreateSettles: createSettles, EndKeeps: providers.EndKeepsRecord,
		},
		KeepsRecords: true,
		TellsQuota:   reportsQuota,
		LabelsIn:     "`--label` of `sbx create` and `sbx run`",
		LifeSigns: []providers.LifeSign{
			{Ability: "logs", Shows: "output of the program, with times", Misses: ""},
			{Ability: "", Shows: "time of the program's last output", Misses: ""},
			{Ability: "usage", Shows: "CPU time and operations of the process tree", Misses: "processes that wait; an idle CPU proves nothing"},
			{Ability: "processes", Shows: "whether a command of `sbx exec` runs; its output is in no log", Misses: "other ways to run commands in the sandbox"},
			{Ability: "probe", Shows: "whether supervisor and stub answer", Misses: "whether the program is active"},
		},
		Options: []providers.Option{
			{Name: "memory", Default: "512M", Kind: providers.OptionSize, Help: "default memory limit"},
			{Name: "cpu", Default: "2", Kind: providers.OptionText, Help: "default number of cores"},
			{Name: "pids", Default: "512", Kind: providers.OptionCount, Help: "default process limit"},
			{Name: "ttl", Default: "10m", Kind: providers.OptionDuration, Help: "default lifetime"},
			{Name: "output", Default: "16M", Kind: providers.OptionSize, Help: "how much of a sandbox's newest output stays on disk"},
		},
		Open: openClient,
	}
}

func openClient(_ context.Context, p providers.Profile, d providers.Deps) (providers.Provider, error) {
	defaults, err := readDefaults(p)
	if err != nil {
		return nil, err
	}
	return &Client{
		name: p.Name, defaults: defaults, deps: d, age: identity.Process.Age,
		store: record.Store{Root: filepath.Join(d.StateDir, p.Name)},
	}, nil
}

// Name is the profile's name.
func (c *Client) Name() string { return c.name }

// Type is "local".
func (c *Client) Type() string { return TypeName }

func (c *Client) now() time.Time { return c.deps.Now() }

// newID makes an id of 10 lower-case letters and digits, with 50 random bits, that is valid
// in shells, paths and cgroup names.
func newID() string { return strings.ToLower(rand.Text()[:10]) }

// openSupervisor opens the living supervisor: by the record, or by the signed lock where the
// record is unreadable.
func (c *Client) openSupervisor(id string, r record.Record) (*identity.Handle, error) {
	p := r.Supervisor
	if p.PID == 0 {
		holder, ok := c.store.Holder(id)
		if !ok {
			return nil, identity.ErrDead
		}
		p = holder
	}
	return identity.Open(p)
}

// checkExists is nil when the sandbox has a folder. A folder without access is another error
// than a missing one.
func (c *Client) checkExists(op, id string) error {
	if ref, err := sandbox.ParseRef(id); err != nil || !ref.Bare() {
		return c.notFound(id)
	}
	switch info, err := os.Lstat(c.store.Dir(id)); {
	case errors.Is(err, fs.ErrNotExist):
		return c.notFound(id)
	case err != nil:
		return c.classifyError(op+" "+id, err)
	case !info.IsDir():
		return c.notFound(id)
	}
	return nil
}

func (c *Client) notFound(id string) error {
	return fault.New(fault.KindNotFound, "no sandbox %q", id).At(c.name, "").
		WithHint("`sbx ls --all` lists all sandboxes; ended ones stay for 24 hours")
}

// defaults are the limits of a sandbox whose spec has none.
type defaults struct {
	memoryBytes int64
	cpu         float64 // cores
	pids        int64
	ttl         time.Duration
	outputBytes int64
}

func readDefaults(p providers.Profile) (defaults, error) {
	var d defaults
	var err error
	fail := func(key string, err error) (defaults, error) {
		return defaults{}, fault.Usage("providers.%s.%s: %w", p.Name, key, err)
	}
	if d.memoryBytes, err = sandbox.ParseSize(p.Settings["memory"]); err != nil {
		return fail("memory", err)
	}
	if d.outputBytes, err = sandbox.ParseSize(p.Settings["output"]); err != nil {
		return fail("output", err)
	}
	if d.ttl, err = sandbox.ParseDuration(p.Settings["ttl"]); err != nil {
		return fail("ttl", err)
	}
	if d.pids, err = strconv.ParseInt(p.Settings["pids"], 10, 32); err != nil || d.pids < 1 {
		return fail("pids", fault.Usage("%q is not a positive whole number", p.Settings["pids"]))
	}
	if d.cpu, err = strconv.ParseFloat(p.Settings["cpu"], 64); err != nil || !(d.cpu > 0 && d.cpu <= maxCPU) {
		return fail("cpu", fault.Usage("%q is not a number of cores", p.Settings["cpu"]))
	}
	return d, nil
}

// maxCPU is more than any machine has and far below the overflow of a quota file.
const maxCPU = 4096

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
			WithHint("check the file; `sbx terminate %s/ID --delete` terminates the sandbox and removes its record", c.name)
	case errors.Is(err, plain.ErrNotPlain): // a file other than the record
		return fault.New(fault.KindUnavailable, "%w", err).At(c.name, op).WithHint("check what is there; the program may have created it")
	case record.IsDiskFull(err):
		return fault.New(fault.KindUnavailable, "%w", err).At(c.name, op).WithHint("%s", c.freeSpace())
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return fault.Usage("%w", err).At(c.name, op).
			WithHint("the state folder %s must be writable for you; SBX_STATE_DIR names another", c.deps.StateDir)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fault.New(fault.KindUnavailable, "%w", err).At(c.name, op).WithHint("raise the limit of open files (`ulimit -n` shows it)")
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
	return "free space under " + c.deps.StateDir + ", or name another folder with SBX_STATE_DIR"
}

func (c *Client) startError(op string, fail *wire.Fail) error {
	kind, hint := fault.KindLauncher, ""
	switch fail.Kind {
	case wire.FailNotFound:
		kind = fault.KindCommandNotFound
		if hint = "the sandbox uses the PATH of the process that creates it; write the program's full path"; strings.Contains(fail.Message, "/") {
			hint = "a path without a leading slash is relative to the sandbox's working directory"
		}
	case wire.FailNotExecutable:
		kind, hint = fault.KindNotExecutable, "chmod +x it, or name its interpreter: -- sh FILE"
	case wire.FailWorkdir:
		hint = "name an existing folder with --workdir"
	case wire.FailSoftLimit:
		kind, hint = fault.KindRefused, "`sbx doctor` shows what this machine supports; without --require-hard-limit a watchdog enforces the limit"
	case wire.FailDisk:
		kind, hint = fault.KindUnavailable, c.freeSpace()
	case wire.FailIsolation, wire.FailLauncher:
	}
	err := fault.New(kind, "%s", fail.Message).At(c.name, op)
	err.Hint = hint
	if fail.Kind == wire.FailWorkdir {
		err = providers.NoWorkdir(err)
	}
	return err
}
