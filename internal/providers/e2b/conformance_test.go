package e2b_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
	"sbx/internal/testkit/wiretest/apispec"
)

// open opens a profile on a fake, over loopback.
func open(t providertest.T, f *e2btest.Fake, kind providers.Type) providers.Provider {
	p, err := kind.Open(t.Context(), providers.Profile{Name: "prod", Type: kind.Name, Settings: e2btest.Settings(f.Listen())},
		providers.Deps{Now: time.Now, Net: httpx.Net{Agent: "sbx/test"}})
	require.NoError(t, err)
	return p
}

// subject tests one dialect against a fake of its own for each check.
func subject(kind providers.Type, o e2btest.Options) providertest.Config {
	var fakes providertest.Fakes[*e2btest.Fake]
	o.PageSize = 2
	return providertest.Config{
		New: fakes.New(func(t providertest.T) (*e2btest.Fake, providers.Provider) {
			f := e2btest.New(t, o)
			return f, open(t, f, kind)
		}),
		Paused:  fakes.Add(func(f *e2btest.Fake) string { return f.Add(e2btest.Seed{Paused: true}) }),
		Foreign: fakes.Add(func(f *e2btest.Fake) string { return f.Add(e2btest.Seed{}) }),
		Orphan: fakes.Add(func(f *e2btest.Fake) string {
			id := f.Add(e2btest.Seed{})
			f.Forget(id)
			return id
		}),
		Many:    5,
		Limit:   time.Minute,
		Secrets: []string{e2btest.Key},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	apispec.SkipWhereDescribed(t)
	providertest.Run(t, subject(e2b.Type(), e2btest.Options{}))
}

func TestNovitaConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, subject(e2b.NovitaType(), e2btest.Options{Novita: true}))
}

func TestProgramsUnderEachShell(t *testing.T) {
	t.Parallel()
	wiretest.EachShell(t, func(t *testing.T, shell string) {
		t.Helper()
		providertest.RunPrograms(t, subject(e2b.Type(), e2btest.Options{Shell: shell}))
	})
}

// TestLiarsTurnTheSuiteRed: the suite finds each wrong cloud, in both dialects, by the right check.
func TestLiarsTurnTheSuiteRed(t *testing.T) {
	t.Parallel()
	lies := map[string]providertest.Lie{}
	for _, kind := range []providers.Type{e2b.Type(), e2b.NovitaType()} {
		lie := func(o e2btest.Options, check, said string) providertest.Lie {
			o.Novita = kind.Name == e2b.NovitaTypeName
			return providertest.Lie{Config: subject(kind, o), Check: check, Said: said}
		}
		lies[kind.Name+" says yes and keeps it alive"] = lie(e2btest.Options{KeepsAlive: true}, "terminate_ends", "not ended")
		lies[kind.Name+" hides the last row"] = lie(e2btest.Options{HidesLast: true}, "list_reads_every_page_once", "4 of 5 running")
		lies[kind.Name+" a page token comes again"] = lie(e2btest.Options{Loops: true}, "list_reads_every_page_once", "a page token occurred twice")
		lies[kind.Name+" reading wakes"] = lie(e2btest.Options{Wakes: true}, "reading_wakes_nothing", "a read woke a paused sandbox")
		const extends, says = "extend_moves_the_end_and_never_shortens", "another read shows the later end"
		lies[kind.Name+" a later end is not kept"] = lie(e2btest.Options{KeepsEnd: true}, extends, says)
		lies[kind.Name+" a later end is an earlier one"] = lie(e2btest.Options{Shortens: true}, extends, says)
		lies[kind.Name+" reading lengthens a life"] = lie(e2btest.Options{Lengthens: true}, "reading_changes_nothing", "a read changed the sandbox's life")
	}
	providertest.RunLies(t, 3*time.Second, lies)
}
