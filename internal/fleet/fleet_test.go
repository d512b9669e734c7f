package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// of makes a fleet of fakes with default options.
func of(fakes ...providers.Provider) *fleet.Fleet { return with(fleet.Options{}, fakes...) }

func with(o fleet.Options, fakes ...providers.Provider) *fleet.Fleet {
	members := make([]fleet.Member, 0, len(fakes))
	for _, p := range fakes {
		members = append(members, fleet.Member{Provider: p})
	}
	return fleet.New(members, o)
}

// box is a running sandbox to seed a fake with.
func box(id, name string) fake.Seed {
	return fake.Seed{Sandbox: sandbox.Sandbox{ID: id, Name: name}}
}

// stocked is a fake with running sandboxes of the given ids.
func stocked(name string, ids ...string) *fake.Provider {
	p := fake.New(fake.Options{Name: name, PageSize: 2})
	for _, id := range ids {
		p.Add(box(id, ""))
	}
	return p
}

func refs(items []sandbox.Sandbox) []string {
	out := make([]string, 0, len(items))
	for _, s := range items {
		out = append(out, s.Ref().String())
	}
	return out
}

// advance lets virtual time pass.
func advance(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	f := of(stocked("prod"), stocked("staging"), stocked("local"))
	for name, tc := range map[string]struct {
		names []string
		want  []string
		hint  string
	}{
		"all":            {nil, []string{"prod", "staging", "local"}, ""},
		"one":            {[]string{"local"}, []string{"local"}, ""},
		"order is ours":  {[]string{"local", "prod"}, []string{"prod", "local"}, ""},
		"twice is once":  {[]string{"prod", "prod"}, []string{"prod"}, ""},
		"a slip":         {[]string{"stagign"}, nil, "did you mean staging? allowed: prod, staging, local"},
		"one is unknown": {[]string{"prod", "nowhere"}, nil, "allowed: prod, staging, local"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := f.Narrow(tc.names)
			if tc.hint != "" {
				assert.Equal(t, fault.KindUsage, fault.KindOf(err))
				assert.Equal(t, tc.hint, fault.HintOf(err))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tc.want, got.Names())
		})
	}
}

func TestAbilities(t *testing.T) {
	t.Parallel()
	rows := of(stocked("all"), fake.New(fake.Options{Name: "some", Type: "e2b"}).Only("logs")).Abilities()
	require.Len(t, rows, 2)
	for i, want := range providers.Abilities() {
		assert.Equal(t, fleet.AbilityCell{Name: want.Name, Has: true}, rows[0].Abilities[i])
		cell := fleet.AbilityCell{Name: want.Name, Has: true}
		if want.Name != "logs" {
			cell = fleet.AbilityCell{Name: want.Name, Reason: "a provider of type e2b has no " + want.Name}
		}
		assert.Equal(t, cell, rows[1].Abilities[i])
	}
}

// heard is a Sink that records the events; the fleet calls it from one goroutine at a time, so
// it needs no lock (-race would detect it).
type heard struct{ notes []string }

func (h *heard) Note(e sandbox.Event, ref sandbox.Ref) {
	h.notes = append(h.notes, ref.String()+" "+e.Event+" "+e.Detail)
}

func TestSinkHearsWhatIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sink := &heard{}
		p := stocked("prod", "aaaa", "bbbb")
		p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "lost"}, Leftover: true})
		f := with(fleet.Options{Sink: sink}, p)
		_, err := f.Sweep(t.Context())
		require.NoError(t, err)
		end(t, f, fleet.EndOptions{By: "alice", Recheck: unread()}, "prod/aaaa", "prod/bbbb")
		assert.ElementsMatch(t, []string{
			"prod/lost sweep its control process had died",
			"prod/aaaa terminate alice", "prod/bbbb terminate alice",
			"prod/aaaa verified ", "prod/bbbb verified ",
		}, sink.notes)
	})
}
