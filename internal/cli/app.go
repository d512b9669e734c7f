package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sbx/internal/commands"
	"sbx/internal/config"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/journal"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/ops/recall"
	"sbx/internal/output"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/runbooks"
)

// app makes the parts of one run, each once and only when a verb asks for it.
type app struct {
	process process.Process
	types   []providers.Type
	globals commands.Globals
	began   atomic.Bool     // a verb has: the flags are read
	ctx     context.Context //nolint:containedctx // ends the run: its signals, and once a verb began its --timeout too

	warnState   sync.Once
	waits       fleet.Waits
	history     *fleetHistory // nil = no fleet was opened
	historyOnce sync.Once

	env     *ops.Env // one for all operations: it collects what they have seen, and what is to be sent
	printer func() (*output.Printer, error)
	config  func() (*config.Config, error)
}

func newApp(ctx context.Context, p process.Process, types []providers.Type) *app {
	a := &app{process: p, types: types, ctx: ctx}
	a.printer = sync.OnceValues(a.newPrinter)
	a.config = sync.OnceValues(a.newConfig)
	a.env = a.newEnv()
	return a
}

func (a *app) commandDeps() *commands.Deps {
	return &commands.Deps{
		Env: a.env, Globals: &a.globals, Printer: a.printer, Runbooks: runbooks.Files,
		Size:        a.watchTerminalSize,
		RawTerminal: a.rawTerminal,
		Play:        a.play,
		Began: func(ctx context.Context) {
			a.ctx = ctx
			a.began.Store(true)
		},
	}
}

// play is commands.Deps's. The run has a configuration and a printer of its own.
func (a *app) play(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p := a.process
	p.Args = append(slices.Clone(p.Args[:1]), args...)
	p.Stdin, p.Stdout, p.Stderr = process.Stream{}, process.Stream{Writer: stdout}, process.Stream{Writer: stderr}
	p.EndBy = nil
	p.Signals = func() (<-chan os.Signal, func()) {
		signals := make(chan os.Signal, 1)
		stop := context.AfterFunc(ctx, func() { signals <- os.Interrupt })
		return signals, func() { stop() }
	}
	return Run(p, a.types) //nolint:contextcheck // its signals end it
}

// newEnv is what operations need from outside, whichever skin asks for them.
func (a *app) newEnv() *ops.Env {
	return &ops.Env{
		Process: a.process, Version: buildVersion(), Types: a.types,
		Config:   a.config,
		Input:    a.configInput,
		Program:  programPath,
		Fleet:    func(ctx context.Context) (*fleet.Fleet, error) { return a.openFleet(ctx, (*config.Config).Selected) },
		Only:     a.openProfiles,
		Store:    a.openStore,
		Journals: func() (journal.Disk, error) { return a.openJournals("runs") },
		Endings:  func() (journal.Disk, error) { return a.openJournals("endings") },
		Lock:     a.lockBulkRuns,

		RunbookRuns:    func() (journal.Disk, error) { return a.openJournals(runbookRuns) },
		LockRunbookRun: a.lockRunbookRun,

		KeepEvent:  func(e history.Event) { a.openHistory().recorder.AddEvent(e) },
		Incidents:  a.openIncidents,
		Shared:     a.openShared,
		Notifier:   a.openNotifier,
		Control:    a.openControlPlane,
		Tasks:      a.taskOptions,
		Alive:      a.ownerAlive,
		PushTarget: a.pushTarget,
		Background: a.startBackgroundRunner,
	}
}

// programPath is the path of this binary, by which a drill starts it again to play
// its sandboxes.
func programPath() (string, error) { return os.Executable() }

func (a *app) newPrinter() (*output.Printer, error) {
	format, err := output.ParseFormat(a.ctx, a.globals.Output)
	if err != nil {
		return nil, err
	}
	noColor := a.globals.NoColor
	if v := a.process.Getenv(config.EnvNoColor); v != "" && v != "0" && v != "false" {
		noColor = true
	}
	return output.New(a.process, output.Options{
		Format: format, Columns: a.globals.Columns, NoColor: noColor, Quiet: a.globals.Quiet, Verbose: a.globals.Verbose,
		Awaited: a.waits.Awaited,
	}), nil
}

// reportError prints an error that no document has shown. A program's own exit code
// needs no words.
func (a *app) reportError(err error) {
	if _, own := errors.AsType[launch.ProgramExit](err); own {
		return
	}
	a.anyPrinter().Report(err)
}

// anyPrinter is the printer that the flags ask for; where they were read in part or not at all, the plainest one.
func (a *app) anyPrinter() *output.Printer {
	if a.began.Load() {
		if p, err := a.printer(); err == nil {
			return p
		}
	}
	return output.New(a.process, output.Options{NoColor: true, Verbose: a.globals.Verbose, Format: a.wantedFormat()})
}

// wantedFormat is the format that argv asks for, although reading the flags may have
// ended before it, as after an unknown flag. No file of it is read.
func (a *app) wantedFormat() output.Format {
	return output.FormatOf(cmp.Or(a.globals.Output, askedFormat(a.process.Args)))
}

// askedFormat finds the last value of -o in argv, in any of its spellings; ""
// without one. Words behind -- belong to another program.
func askedFormat(args []string) string {
	format := ""
	for i := 1; i < len(args) && args[i] != "--"; i++ {
		word := args[i]
		long, isLong := strings.CutPrefix(word, "--output=")
		short, isShort := strings.CutPrefix(word, "-o")
		switch {
		case word == "--output" || word == "-o":
			if i+1 < len(args) {
				i++
				format = args[i]
			}
		case isLong:
			format = long
		case isShort && !strings.HasPrefix(word, "--"):
			format = strings.TrimPrefix(short, "=")
		}
	}
	return format
}

func (a *app) newConfig() (*config.Config, error) {
	c, err := config.Load(a.ctx, a.configInput())
	if err != nil {
		return nil, err
	}
	if p, err := a.printer(); err == nil {
		p.Secrets = c.Secrets()
		for _, text := range c.Warnings {
			p.Warn(text)
		}
	}
	return c, nil
}

func (a *app) configInput() config.Input {
	in := config.Input{Process: a.process, Types: a.types, File: a.globals.Config, Flags: map[string]string{}}
	if len(a.globals.Providers) > 0 {
		in.Flags["provider"] = joinWords(a.globals.Providers)
	}
	maps.Copy(in.Flags, a.globals.Settings)
	return in
}

// stateFile is a path in the state directory; an error where it cannot be used.
func (a *app) stateFile(name string) (string, error) {
	c, err := a.config()
	if err != nil {
		return "", err
	}
	dir, err := c.State()
	return filepath.Join(dir, name), err
}

func (a *app) openJournals(folder string) (journal.Disk, error) { //nolint:ireturn // a simulation has another disk
	dir, err := a.stateFile(folder)
	return journal.Dir(dir), err
}

func (a *app) openIncidents() (incident.Folder, error) {
	dir, err := a.stateFile("incidents")
	return incident.Folder(dir), err
}

// openProfiles opens the named profiles, without names all, whatever is selected.
func (a *app) openProfiles(ctx context.Context, names ...string) (*fleet.Fleet, error) {
	return a.openFleet(ctx, func(c *config.Config) []config.Profile {
		if len(names) == 0 {
			return c.Profiles
		}
		return slices.DeleteFunc(slices.Clone(c.Profiles), func(p config.Profile) bool { return !slices.Contains(names, p.Name) })
	})
}

// sweepLimit bounds the tidying up that comes before a verb.
const sweepLimit = 15 * time.Second

// openFleet opens providers and brings leftovers of dead control processes to
// their end: the one thing that a reading verb may change, on `local` only.
func (a *app) openFleet(ctx context.Context, choose func(*config.Config) []config.Profile) (*fleet.Fleet, error) {
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	p, err := a.printer()
	if err != nil {
		return nil, err
	}
	kept := newKeptList(a.openStore, a.process.TimeScale.Limit(historyLimit))
	f := fleet.New(a.newOpener(c, p).openMembers(ctx, choose(c)), fleet.Options{
		Now: a.process.Now, Slots: c.Limits.Concurrency, EndRequests: endRequests{a.openStore, a.process.Now}, Acknowledged: func(ctx context.Context, ref sandbox.Ref) bool { return recall.Acknowledged(ctx, a.env, ref) },
		KeptUntil:  func(s sandbox.Sandbox) time.Time { return kept.keptUntil(ctx, s) },
		Thresholds: c.Thresholds.For,
		Absent:     func(name string) string { return config.AbsentProfileHint(a.types, c.Use, name) },
		History:    a.openHistory(), Sink: a.verboseSink(), Asking: a.waits.Begin, Names: a.newNameCache(c),
	})
	sweep, stop := context.WithTimeout(ctx, sweepLimit)
	defer stop()
	swept, err := f.Sweep(sweep)
	noteSwept(p, swept)
	a.env.RecordSwept(ctx, p, swept.Refs, "its supervisor had died, or its time limit was reached")
	a.env.RecordSwept(ctx, p, swept.Tied, "the command that made it was killed")
	if err != nil && ctx.Err() == nil {
		p.Warn("sweeping leftovers: " + err.Error())
	}
	return f, nil
}

// noteSwept says what a sweep has ended.
func noteSwept(p *output.Printer, swept providers.Swept) {
	for _, ref := range swept.Refs {
		p.Note(ref.String() + ": its supervisor had died; cleaned up")
	}
	var names []string
	for _, ref := range swept.Tied {
		names = append(names, ref.String())
	}
	if n := len(names); n > 0 {
		p.Note("the command that made " + sandbox.FormatCount(n, "sandbox", "sandboxes") + " was killed; ended and removed: " + strings.Join(names, ", "))
	}
}

// verboseSink writes what a verb does to sandboxes to stderr, with -v; nil without it.
func (a *app) verboseSink() sandbox.Sink { //nolint:ireturn // nil means none
	if trace := a.verboseTrace(); trace != nil {
		return eventTrace(trace)
	}
	return nil
}

// eventTrace is a sandbox.Sink that writes a line an event.
type eventTrace func(string)

// Note is sandbox.Sink's.
func (t eventTrace) Note(e sandbox.Event, ref sandbox.Ref) {
	line := ref.String() + " " + e.Event
	if e.Detail != "" {
		line += ": " + e.Detail
	}
	t(line)
}

// verboseTrace writes the requests of -v to stderr; nil without it.
func (a *app) verboseTrace() func(string) {
	p, err := a.printer()
	if err != nil || p.Verbose < 1 {
		return nil
	}
	return p.Trace
}
