package commands

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/ops/launch"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// factsBench has a profile "box" of a type that no code has heard of, and launches there.
func factsBench(t *testing.T, facts providers.Facts) (*bench, *Deps, *config.Config) {
	t.Helper()
	b := newBench(fake.New(fake.Options{Name: "box", Type: "docker"})).configure(t, "providers: {box: {type: docker}}\nlaunch: box\nuse: [box]\n")
	b.types, b.workdir = []providers.Type{{Name: "docker", Facts: facts}}, b.home
	d, _ := b.assemble(process.Process{Args: []string{"sbx"}, Environ: b.env, Home: b.home, Workdir: b.workdir, Now: atNoon})
	c, err := d.Config()
	require.NoError(t, err)
	return b, d, c
}

// remoteDocker is a daemon elsewhere: its ends destroy everything, and it lists what has
// ended by itself.
func remoteDocker() providers.Facts {
	return providers.Facts{EndKeeps: providers.EndKeepsNothing}
}

func TestAnEmptyListAdvisesADrillWhereOneCanBeStaged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		facts providers.Facts
		want  string
	}{
		"containers": {remoteDocker(), "no sandboxes; `sbx ls --all` also shows ended ones"},
		"processes":  {providers.Facts{HostBound: true, HostProcesses: true}, "no sandboxes; only `box` is configured: start one with `sbx create -- COMMAND`, or stage an incident with `sbx drill`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, _ := factsBench(t, tc.facts)
			assert.Contains(t, b.run(t, "ls").stderr, tc.want)
		})
	}
}

// TestWhereATaskRunsDecidesItsFolderAndItsSize: a folder of this machine is meant only
// where sandboxes see its files, and who chooses a size is said where no profile does.
func TestWhereATaskRunsDecidesItsFolderAndItsSize(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		facts    providers.Facts
		absolute bool
		says     bool
	}{
		"containers elsewhere":             {remoteDocker(), false, true},
		"containers with sizes of its own": {providers.Facts{HostBound: true, SizedByProfile: true}, false, false},
		"processes of this machine":        {providers.Facts{HostBound: true, HostProcesses: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, d, c := factsBench(t, tc.facts)
			said := &saidNotes{}
			req := launch.Request{Config: c, Sandbox: sandbox.Spec{Command: []string{"true"}, Workdir: "work"}}
			prepared, err := req.Prepare(t.Context(), d.Env, said)
			require.NoError(t, err)
			want := "work"
			if tc.absolute {
				want = filepath.Join(b.workdir, "work")
			}
			assert.Equal(t, want, prepared.Spec.Workdir)
			assert.Equal(t, want, prepared.Sandbox.Workdir)
			assert.Equal(t, tc.says, slices.Contains(said.notes, "no memory and cpu size is set: the provider decides"), said.notes)
			r := b.run(t, "doctor -o json")
			assert.Equal(t, tc.says, strings.Contains(r.stdout, "the provider chooses memory and cpu of a task at box"), r.stdout)
		})
	}
}

// saidNotes keeps what an operation says.
type saidNotes struct{ notes []string }

func (s *saidNotes) Note(text string)          { s.notes = append(s.notes, text) }
func (s *saidNotes) Warn(text string)          { s.notes = append(s.notes, text) }
func (s *saidNotes) Redact(text string) string { return text }
