package local

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// startLimit is how long a supervisor may take to report the start of the program; it needs
// milliseconds.
const startLimit = 15 * time.Second

// Create starts a sandbox. When it returns, the program runs inside its limits and the
// record says so; a failed start leaves a `failed` record with the reason, except where a
// required limit was refused.
func (c *Client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := c.checkSpec(spec); err != nil {
		return sandbox.Sandbox{}, err
	}
	id := newID()
	op := "create " + id
	wrap, err := c.isolationArgs(spec, id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	lock, err := c.store.Prepare(id)
	if err != nil {
		return sandbox.Sandbox{}, c.classifyError(op, err)
	}
	defer lock.Close() // the supervisor keeps holding it
	if spec.Tied {
		to, err := thisProcess()
		if err == nil {
			err = c.store.Tie(id, to)
		}
		if err != nil {
			return sandbox.Sandbox{}, errors.Join(c.classifyError(op, err), c.store.Remove(id))
		}
	}
	r := c.newRecord(id, spec)
	ready, err := c.launchSupervisor(ctx, wire.Order{
		Root: c.store.Root, Record: r, Env: c.buildEnvironment(id, spec), RequireHard: spec.RequireHardLimit, Wrap: wrap,
		InScope: c.needsScope(), TimeScale: int(c.deps.TimeScale),
	}, lock)
	switch {
	case err != nil:
		return sandbox.Sandbox{}, c.classifyError(op, err)
	case ready.Fail != nil:
		if ready.Fail.Kind == wire.FailSoftLimit || ready.Fail.Kind == wire.FailDisk { // refused, or no space for a reason
			if err := c.store.Remove(id); err != nil {
				return sandbox.Sandbox{}, c.classifyError(op, err)
			}
		}
		return sandbox.Sandbox{}, c.startError(op, ready.Fail)
	}
	return c.toSandbox(*ready.Record, true), nil
}

// launchSupervisor starts the supervisor, and once more without the systemd scope when that
// failed: the watchdog limits memory as well, less strictly, and the record says so.
func (c *Client) launchSupervisor(ctx context.Context, order wire.Order, lock *os.File) (wire.Ready, error) {
	ready, err := c.startSupervisor(ctx, order, lock)
	if err == nil || !order.InScope || ctx.Err() != nil {
		return ready, err
	}
	c.deps.Notice(c.name + ": no systemd scope could be created: " + err.Error())
	order.InScope = false
	return c.startSupervisor(ctx, order, lock)
}

var _ providers.Vetter = (*Client)(nil)

// Vet implements providers.Vetter.
func (c *Client) Vet(spec sandbox.Spec) error {
	if err := c.checkSpec(spec); err != nil {
		return err
	}
	if _, err := c.isolationArgs(spec, "vet"); err != nil {
		return err
	}
	return c.checkMemoryFits(cmp.Or(spec.MemoryBytes, c.defaults.memoryBytes))
}

// checkSpec refuses what could never start, before anything is created.
func (c *Client) checkSpec(spec sandbox.Spec) error {
	for flag, set := range map[string]bool{
		"--template": spec.Template != "", "--snapshot": spec.Snapshot != "", "--image": spec.Image != "", "--disk": spec.DiskBytes > 0,
	} {
		if set {
			return fault.New(fault.KindUnsupported, "the local provider has no %s", flag).At(c.name, "create").
				WithHint("local runs a program of this machine on this machine's disk")
		}
	}
	switch {
	case !isSupported():
		return fault.New(fault.KindUnsupported, "local sandboxes need Linux or macOS").At(c.name, "create").
			WithHint("use WSL2, or a remote provider with --provider")
	case len(spec.Command) == 0 || spec.Command[0] == "":
		return fault.Usage("no command to run").At(c.name, "create").WithHint("write it after two dashes: sbx create -- sleep 60")
	case spec.MemoryBytes != 0 && spec.MemoryBytes < minMemory:
		return fault.Usage("a memory limit of %d KiB is too small for any program", spec.MemoryBytes>>10).At(c.name, "create").WithHint("set 4M or more")
	case spec.CPU < 0 || spec.CPU > maxCPU || (spec.CPU > 0 && spec.CPU < minCPU):
		return fault.Usage("%g is not a valid number of cores", spec.CPU).At(c.name, "create").WithHint("from %g to %d", minCPU, maxCPU)
	case describedBytes(spec) > maxDescribed:
		return fault.Usage("command, names and labels have %d KiB, the limit is %d KiB", describedBytes(spec)>>10, maxDescribed>>10).At(c.name, "create").
			WithHint("put long input into a file that the program reads")
	case spec.PIDs < 0:
		return fault.Usage("%d is not a valid process limit", spec.PIDs).At(c.name, "create").WithHint("set a number above 0")
	}
	if err := providers.CheckText(spec.Command, spec.Env); err != nil {
		return fault.Placed(err, c.name, "create")
	}
	if spec.Workdir != "" {
		if info, err := os.Stat(spec.Workdir); err != nil || !info.IsDir() {
			return providers.NoWorkdir(fault.Usage(
				"there is no folder %q for the working directory", spec.Workdir,
			).At(c.name, "create").WithHint("name an existing folder with --workdir"))
		}
	}
	return nil
}

// maxDescribed limits the bytes of a spec in the record: an eighth of the largest readable
// record, since JSON may need six bytes for one byte.
const maxDescribed = record.MaxBytes / 8

// describedBytes is how many bytes of a spec go into the record.
func describedBytes(spec sandbox.Spec) int64 {
	n := len(spec.Name) + len(spec.TaskID) + len(spec.AgentType) + len(spec.Workdir)
	for _, words := range [][]string{spec.Command, envNames(spec.Env)} {
		for _, w := range words {
			n += len(w)
		}
	}
	for key, value := range spec.Labels {
		n += len(key) + len(value)
	}
	return int64(n)
}

// minMemory is less than any dynamically linked program needs to start; minCPU is the
// smallest quota of the kernel (1 ms of every 100 ms).
const (
	minMemory = 4 * sandbox.MiB
	minCPU    = 0.01
)

// newRecord is the record of a sandbox that is about to start.
func (c *Client) newRecord(id string, spec sandbox.Spec) record.Record {
	workdir := c.store.Work(id)
	if spec.Workdir != "" {
		if abs, err := filepath.Abs(spec.Workdir); err == nil {
			workdir = abs
		}
	}
	now := c.now().UTC()
	r := record.Record{
		Schema: record.Schema, Version: c.deps.Version, ID: id, Name: spec.Name, State: sandbox.StateProvisioning,
		Command: spec.Command, EnvNames: envNames(spec.Env), Workdir: workdir, Labels: maps.Clone(spec.Labels),
		TaskID: spec.TaskID, AgentType: spec.AgentType, KeepAfterExit: spec.KeepAfterExit, CreatedAt: now,
		Limits: record.Limits{
			MemoryBytes: cmp.Or(spec.MemoryBytes, c.defaults.memoryBytes),
			CPU:         cmp.Or(spec.CPU, c.defaults.cpu),
			PIDs:        cmp.Or(spec.PIDs, c.defaults.pids),
			TTLSeconds:  cmp.Or(spec.TTL, c.defaults.ttl).Seconds(),
			OutputBytes: c.defaults.outputBytes,
		},
	}
	r.Note(now, "created", "")
	return r
}

func envNames(env []string) []string {
	var out []string
	for _, entry := range env {
		key, _, _ := strings.Cut(entry, "=")
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// inheritedVariables are the only variables that a sandbox inherits from its creator; all
// others are cleared, credentials in particular.
func inheritedVariables() []string { return []string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"} }

// fallbackPath is the PATH of a sandbox whose creator has none, as under cron.
const fallbackPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// buildEnvironment builds the program's environment: the inherited variables, its own home
// and temporary folder, the marker, and the requested variables.
func (c *Client) buildEnvironment(id string, spec sandbox.Spec) []string {
	env := []string{"HOME=" + c.store.Work(id), "TMPDIR=" + c.store.Temp(id), "TERM=dumb"}
	for _, key := range inheritedVariables() {
		if value, ok := c.deps.Lookup(key); ok {
			env = append(env, key+"="+value)
		} else if key == "PATH" {
			env = append(env, key+"="+fallbackPath)
		}
	}
	env = append(env, spec.Env...)
	return append(env, wire.MarkerKey+"="+id)
}

// isolationArgs returns the command words before the program for --isolate.
func (c *Client) isolationArgs(spec sandbox.Spec, id string) ([]string, error) {
	switch spec.Isolate {
	case "":
		return nil, nil
	case "bwrap":
	default:
		return nil, fault.Usage("no isolation tool %q", spec.Isolate).At(c.name, "create").WithHint("local supports: bwrap")
	}
	path, err := findTool("bwrap", c.deps.Lookup)
	if err != nil {
		return nil, fault.New(fault.KindUnsupported, "bubblewrap is not installed").At(c.name, "create").
			WithHint("install the package bubblewrap, or leave --isolate out")
	}
	args := []string{
		path, "--die-with-parent", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
		"--tmpfs", c.store.Root, "--bind", c.store.Work(id), c.store.Work(id), "--bind", c.store.Temp(id), c.store.Temp(id),
	}
	if spec.Workdir != "" {
		abs, err := filepath.Abs(spec.Workdir)
		if err != nil {
			return nil, c.classifyError("create", err)
		}
		return append(args, "--bind", abs, abs, "--chdir", abs, "--"), nil
	}
	return append(args, "--chdir", c.store.Work(id), "--"), nil
}

func findTool(name string, lookup func(string) (string, bool)) (string, error) {
	path, ok := lookup("PATH")
	if !ok {
		path = fallbackPath
	}
	for _, folder := range filepath.SplitList(path) {
		file := filepath.Join(folder, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", os.ErrNotExist
}
