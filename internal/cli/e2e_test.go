//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sbx/internal/cli"
	"sbx/internal/drill"
	"sbx/internal/process"
	"sbx/internal/providers/local"
	"sbx/internal/testkit/documentstest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/tiertest"
)

// TestMain lets the test binary be sbx: for scripts, which call it by name, and
// for the supervisors, stubs and drill programs that it starts of itself.
func TestMain(m *testing.M) {
	if status, done := local.Reexec(os.Args); done {
		syscall.Exit(status) // not os.Exit: the race detector would make every end of a sandbox wait a second
	}
	if len(os.Args) == 3 && os.Args[1] == drill.ProgramArg {
		os.Exit(run())
	}
	if signal.Ignored(syscall.SIGHUP) && strings.HasSuffix(os.Args[0], ".test") { // below nohup: scripts send it, and children inherit what is ignored
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	testscript.Main(providertest.Wide{M: m}, map[string]func(){
		"sbx": func() { os.Exit(run()) },
		// The same program under another name, as a packager may install it.
		"boxes": func() { os.Exit(run()) },
	})
}

// run is cmd/sbx/main.go.
//
// What it prints is held against the schemas: a document that no schema allows makes it exit
// with a code that no script expects.
func run() int {
	var printed bytes.Buffer
	code := runMain(io.MultiWriter(os.Stdout, &printed))
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // the verb is over: its code is that of this process
	if err := documentstest.Check(printed.Bytes(), os.Args); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 99
	}
	return code
}

func runMain(stdout io.Writer) int {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return cli.Main(process.Process{
		Args: os.Args, Environ: os.Environ(), UID: os.Getuid(), PID: os.Getpid(), Now: time.Now,
		Stdin:  process.Stream{Reader: os.Stdin, File: os.Stdin},
		Stdout: process.Stream{Writer: stdout, File: os.Stdout},
		Stderr: process.Stream{Writer: os.Stderr, File: os.Stderr},
		Signals: func() (<-chan os.Signal, func()) {
			c := make(chan os.Signal, 2)
			signal.Notify(c, os.Interrupt, syscall.SIGTERM)
			if !signal.Ignored(syscall.SIGHUP) { // nohup means what it says
				signal.Notify(c, syscall.SIGHUP)
			}
			return c, func() { signal.Stop(c) }
		},
		OnQuit: func(restore func()) func() {
			c := make(chan os.Signal, 1)
			signal.Notify(c, syscall.SIGQUIT)
			go func() {
				<-c
				restore()
				signal.Reset(syscall.SIGQUIT)
				_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
			}()
			return func() { signal.Stop(c) }
		},
		At: crashAt, Host: os.Getenv("SBX_TEST_HOST"), // none: this machine's
		TimeScale: 4, // five would exceed the time that a provider has
	})
}

// crashAt ends this process with -9 at the named point that SBX_TEST_CRASH_AT says,
// or freezes it at that of SBX_TEST_FREEZE_AT until somebody continues it.
func crashAt(point string) {
	if os.Getenv("SBX_TEST_CRASH_AT") == point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // what follows is never reached
	}
	if os.Getenv("SBX_TEST_FREEZE_AT") == point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		<-time.After(100 * time.Millisecond) // threads stop one by one, and this one may be the last
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds:                verbs(),
		Condition:           condition,
	})
}

// TestTaskLives plays one script at each provider whose machines run real shells; the condition
// [provider:NAME] is for what one of them alone has.
func TestTaskLives(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"e2b", "daytona", "vercel", "docker", "kubernetes"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			testscript.Run(t, testscript.Params{
				Dir: filepath.Join("testdata", "remote"), RequireExplicitExec: true, RequireUniqueNames: true, Cmds: verbs(),
				Setup: func(e *testscript.Env) error {
					e.Setenv("PROVIDER", provider)
					if err := setup(e); err != nil || !slices.Contains([]string{"docker", "kubernetes"}, provider) {
						return err
					}
					config := filepath.Join(e.Getenv("XDG_CONFIG_HOME"), "sbx", "config.yaml")
					if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
						return err
					}
					return os.WriteFile(config, []byte("providers: {"+provider+": {type: "+provider+", image: 'sbxtest:1'}}\n"), 0o600) // that of the fakes
				},
				Condition: func(name string) (bool, error) {
					if only, ok := strings.CutPrefix(name, "provider:"); ok {
						return only == provider, nil
					}
					return condition(name)
				},
			})
		})
	}
}

// setup gives each script a home of its own with nothing in it, and ends
// whatever the script leaves.
func setup(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	e.Setenv("HOME", home)
	e.Setenv("SBX_STATE_DIR", filepath.Join(e.WorkDir, "state"))
	e.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	e.Setenv("TERM", "dumb")
	e.Setenv("SELF", executable())
	e.Setenv("AGENT", agent)
	e.Setenv("SBX_TEST_POSTGRES", os.Getenv("SBX_TEST_POSTGRES"))
	e.Setenv("SBX_TEST_KUBERNETES", os.Getenv("SBX_TEST_KUBERNETES"))
	e.Setenv("GORACE", promptRace())
	prepare(e)
	e.Defer(func() { endAll(filepath.Join(e.WorkDir, "state")) })
	launchable(e)
	return nil
}

// agent is a shell text that does what an agent does: it commits.
const agent = `set -e; rm -rf .git; git init -q -b main .; echo done > result; git add result; git -c user.name=a -c user.email=a@example.com commit -q -m work; echo committed`

// promptRace are options of the race detector under which a program ends at
// once, not a second late.
func promptRace() string { return strings.TrimSpace("atexit_sleep_ms=0 " + os.Getenv("GORACE")) }

func executable() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// condition knows what the scripts may ask of the machine.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Getuid() == 0, nil
	case "hard":
		return hardLimits(), nil
	case "kernellog":
		return tiertest.ReadsKernelLog(), nil
	case "mounts":
		return mayMount(), nil
	case "long":
		return tiertest.IsLong("scripts say why by themselves, at their skip"), nil
	case "postgres":
		return os.Getenv("SBX_TEST_POSTGRES") != "", nil
	case "cluster":
		return os.Getenv("SBX_TEST_KUBERNETES") != "", nil
	}
	if tool, ok := strings.CutPrefix(name, "tool:"); ok {
		for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
			if info, err := os.Stat(filepath.Join(dir, tool)); err == nil && info.Mode()&0o111 != 0 {
				return true, nil
			}
		}
		return false, nil
	}
	return false, os.ErrInvalid
}
