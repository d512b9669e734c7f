package cli

import (
	"bytes"
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
)

// factsWorld is a program that has one more type of provider, of which no code has
// heard: what happens to its profile "box" follows from its facts alone.
type factsWorld struct {
	t     *testing.T
	fake  *fake.Provider
	types []providers.Type
	state string
	home  string
}

func newFactsWorld(t *testing.T, kind providers.Type) *factsWorld {
	t.Helper()
	root := t.TempDir()
	w := &factsWorld{t: t, home: filepath.Join(root, "home"), state: filepath.Join(root, "state"), fake: fake.New(fake.Options{Name: "box", Type: "boxes", Now: factsNoon})}
	require.NoError(t, os.MkdirAll(filepath.Join(w.home, ".config", "sbx"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(w.home, ".config", "sbx", "config.yaml"), []byte("providers: {box: {type: boxes}}\nuse: [box]\n"), 0o600))
	kind.Name, kind.Help = "boxes", "containers"
	kind.Open = func(context.Context, providers.Profile, providers.Deps) (providers.Provider, error) {
		return daemon{w.fake.Bare(), w.fake}, nil
	}
	w.types = append(Types(), kind)
	return w
}

// daemon keeps no records of its own, and lists all that it has.
type daemon struct {
	providers.Provider
	providers.Verifier
}

func (d daemon) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	q.All = true
	return d.Provider.List(ctx, q)
}

// remoteFacts is what the facts of a remote daemon are: no host is special to it, an end
// destroys everything, and what has ended by itself stays listed.
func remoteFacts() providers.Facts {
	return providers.Facts{EndKeeps: providers.EndKeepsNothing, CreateSettles: 7 * time.Second}
}

func factsNoon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func (w *factsWorld) process(line string, out, errs *bytes.Buffer) process.Process {
	return process.Process{
		Args: append([]string{"sbx"}, strings.Fields(line)...), Home: w.home, Workdir: w.home, PID: 4711, Host: "h1", Now: factsNoon,
		Environ: []string{"SBX_STATE_DIR=" + w.state, "HOME=" + w.home, "TERM=xterm"}, Stdin: process.Stream{Reader: strings.NewReader("")},
		Stdout: process.Stream{Writer: out}, Stderr: process.Stream{Writer: errs},
	}
}

func (w *factsWorld) run(line string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Run(w.process(line, &out, &errs), w.types)
	return code, out.String(), errs.String()
}

func (w *factsWorld) app() *app {
	var out, errs bytes.Buffer
	return newApp(w.t.Context(), completeProcess(w.process("ls", &out, &errs)), w.types)
}

func TestFactsHideWhatHasEnded(t *testing.T) {
	t.Parallel()
	w := newFactsWorld(t, providers.Type{Facts: remoteFacts()})
	w.fake.Add(
		fake.Seed{Sandbox: sandbox.Sandbox{ID: "runs"}},
		fake.Seed{Sandbox: sandbox.Sandbox{ID: "over", State: sandbox.StateTerminated, EndedAt: factsNoon().Add(-time.Minute)}},
	)
	for line, want := range map[string]string{
		"ls -o name": "box/runs\n", "ls --all -o name --sort id": "box/over\nbox/runs\n", "ls --state terminated -o name": "box/over\n",
	} {
		code, shown, stderr := w.run(line)
		require.Equal(t, 0, code, stderr)
		assert.Equal(t, want, shown)
	}
}

func TestTasksGoByTheFacts(t *testing.T) {
	t.Parallel()
	here := remoteFacts()
	here.HostBound = true
	for name, tc := range map[string]struct {
		kind           providers.Type
		bound, deletes bool
		settles        time.Duration
	}{
		"a remote daemon":             {providers.Type{Facts: remoteFacts()}, false, true, 7 * time.Second},
		"this machine's":              {providers.Type{Facts: here}, true, true, 7 * time.Second},
		"a cluster, always there":     {providers.Type{Always: true, Facts: remoteFacts()}, false, true, 7 * time.Second},
		"one that states nothing":     {providers.Type{}, false, true, time.Minute},
		"one that keeps records only": {providers.Type{Facts: providers.Facts{EndKeeps: providers.EndKeepsRecord}}, false, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newFactsWorld(t, tc.kind).app()
			f, err := a.openProfiles(t.Context(), "box")
			require.NoError(t, err)
			o, err := a.taskOptions(t.Context(), ops.TaskParts{Fleet: f, Store: store.Memory(factsNoon)})
			require.NoError(t, err)
			assert.Equal(t, tc.bound, o.HostBound("box"))
			assert.Equal(t, tc.deletes, o.DeleteOnEnd("box"))
			assert.Equal(t, tc.settles, o.SettleTime("box"))
			assert.False(t, o.ReadsProveEnds("box"), "it has a proof of its own")
			assert.Equal(t, []any{true, false, 3 * time.Second}, []any{o.HostBound("local"), o.DeleteOnEnd("local"), o.SettleTime("local")})
			assert.Equal(t, []any{false, true, time.Minute}, []any{o.HostBound("gone"), o.DeleteOnEnd("gone"), o.SettleTime("gone")}, "of what is not configured nothing is known")
		})
	}
}

// TestLocalEndsNeedNoProof: the kernel is asked, so that no request need be kept.
func TestLocalEndsNeedNoProof(t *testing.T) {
	t.Parallel()
	a := newFactsWorld(t, providers.Type{Facts: remoteFacts()}).app()
	f, err := a.openProfiles(t.Context(), "local")
	require.NoError(t, err)
	assert.True(t, f.ReadsProveEnds("local"))
	assert.False(t, f.ReadsProveEnds("box"), "it is no member")
}

func TestUnitsAreWalledInUnlessItsSandboxesAreProcesses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		facts providers.Facts
		open  bool
	}{
		"a remote daemon":        {remoteFacts(), false},
		"this machine's":         {providers.Facts{HostBound: true}, false},
		"processes of this host": {providers.Facts{HostBound: true, HostProcesses: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, units, stderr := newFactsWorld(t, providers.Type{Facts: tc.facts}).run("cron print --systemd --provider box")
			require.Equal(t, 0, code, stderr)
			assert.Equal(t, tc.open, strings.Contains(units, "since the profile of type boxes ends processes of this machine"), units)
			assert.Equal(t, !tc.open, strings.Contains(units, "ProtectProc=invisible"))
		})
	}
}

// TestFactsNeedNoStateDirectory unless it says so, even where it is always there.
func TestFactsNeedNoStateDirectory(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"in the daemon": false, "in the state directory": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFactsWorld(t, providers.Type{Always: true, Facts: providers.Facts{InStateDir: kept}})
			w.fake.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "runs"}})
			require.NoError(t, os.MkdirAll(w.state, 0o700))
			require.NoError(t, os.Chmod(w.state, 0o777)) // anybody could write there, which is refused
			code, shown, stderr := w.run("ls -o name")
			assert.Equal(t, !kept, strings.Contains(shown, "box/runs"), shown+stderr)
			if kept {
				assert.NotEqual(t, 0, code)
			}
		})
	}
}

// TestFactsOfRecordsOfAnotherHost are compared where every host sees the same sandboxes,
// and prove nothing where each sees its own.
func TestFactsOfRecordsOfAnotherHost(t *testing.T) {
	t.Parallel()
	for name, bound := range map[string]bool{"a remote daemon": false, "this machine's": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := remoteFacts()
			facts.HostBound = bound
			w := newFactsWorld(t, providers.Type{Facts: facts})
			w.fake.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "mine", CreatedAt: factsNoon().Add(-3 * time.Hour)}})
			st, err := w.app().openStore(true)
			require.NoError(t, err)
			for id, host := range map[string]string{"mine": "h1", "ghost": "h1", "theirs": "h2"} {
				require.NoError(t, st.PutRecord(t.Context(), store.Record{
					Provider: "box", ID: id, Host: host, State: sandbox.StateRunning, CreatedAt: factsNoon().Add(-3 * time.Hour), UpdatedAt: factsNoon().Add(-time.Hour),
				}))
			}
			require.NoError(t, st.Close())
			code, shown, stderr := w.run("reconcile --records store --check -o json")
			assert.Equal(t, fault.ExitCode(fault.New(fault.KindFound, "")), code, stderr)
			assert.Contains(t, shown, `"box/ghost"`)
			assert.Equal(t, !bound, strings.Contains(shown, `"box/theirs"`), shown)
			code, _, stderr = w.run("reconcile --records store --fix --yes -o json")
			assert.Equal(t, 0, code, stderr)
			st, err = w.app().openStore(true)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, st.Close()) })
			records, err := st.Records(t.Context(), "box")
			require.NoError(t, err)
			for _, r := range records {
				ended := r.ID == "ghost" || r.ID == "theirs" && !bound
				assert.Equal(t, ended, !r.EndedAt.IsZero(), r.ID)
			}
		})
	}
}
