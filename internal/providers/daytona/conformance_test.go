package daytona_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/daytona"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
	"sbx/internal/testkit/wiretest/apispec"
)

func open(t wiretest.T, address string, n httpx.Net) *daytona.Client {
	p, err := daytona.Type().Open(context.Background(), providers.Profile{Name: "prod", Type: daytona.TypeName, Settings: daytonatest.Settings(address)},
		providers.Deps{Now: time.Now, Net: n})
	require.NoError(t, err)
	c, ok := p.(*daytona.Client)
	require.True(t, ok)
	return c
}

func subject(o daytonatest.Options) providertest.Config {
	o.PageSize = 2
	var fakes providertest.Fakes[*daytonatest.Fake]
	return providertest.Config{
		New: fakes.New(func(t providertest.T) (*daytonatest.Fake, providers.Provider) {
			f := daytonatest.New(t, o)
			return f, open(t, f.Listen(), httpx.Net{})
		}),
		Paused:  fakes.Add(func(f *daytonatest.Fake) string { return f.Add(daytonatest.Seed{State: "paused"}) }),
		Foreign: fakes.Add(func(f *daytonatest.Fake) string { return f.Add(daytonatest.Seed{}) }),
		Many:    5, Limit: time.Minute, Secrets: []string{daytonatest.Token},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]daytonatest.Options{"at once": {}, "slow, with an old daemon": {StartFor: 50 * time.Millisecond, EndFor: 50 * time.Millisecond, Old: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "at once" {
				apispec.SkipWhereDescribed(t)
			}
			providertest.Run(t, subject(o))
		})
	}
}

func TestProgramsUnderEachShell(t *testing.T) {
	t.Parallel()
	wiretest.EachShell(t, func(t *testing.T, shell string) {
		t.Helper()
		providertest.RunPrograms(t, subject(daytonatest.Options{Shell: shell}))
	})
}

// TestContract compares every request of the suite, and every answer of the fake, with Daytona's
// descriptions.
func TestContract(t *testing.T) {
	t.Parallel()
	contract := apispec.LoadContract(t, filepath.Join("testdata", "contract-exemptions.txt"),
		apispec.Spec{File: "daytona/api.json", Server: "/api"}, apispec.Spec{File: "daytona/toolbox.json", Server: "/toolbox/{id}"})
	providertest.Run(t, subject(daytonatest.Options{Wire: wiretest.Options{Contract: contract}}))
}

func TestLiarsTurnTheSuiteRed(t *testing.T) {
	t.Parallel()
	providertest.RunLies(t, time.Second, map[string]providertest.Lie{
		"says yes and does nothing": {Config: subject(daytonatest.Options{Deaf: true}), Check: "terminate_ends"},
		"reading lengthens a life":  {Config: subject(daytonatest.Options{Touches: true}), Check: "reading_changes_nothing"},
		"a later end is not kept": {
			Config: subject(daytonatest.Options{KeepsEnd: true}), Check: "extend_moves_the_end_and_never_shortens",
			Said: "another read shows the later end",
		},
		"a later end is an earlier": {
			Config: subject(daytonatest.Options{Shortens: true}), Check: "extend_moves_the_end_and_never_shortens",
			Said: "another read shows the later end",
		},
		"a later end is cut short": {
			Config: subject(daytonatest.Options{Longest: 15 * time.Minute}), Check: "extend_moves_the_end_and_never_shortens",
			Said: "another read shows the later end",
		},
		"a cursor comes again": {Config: subject(daytonatest.Options{Loops: true}), Check: "list_reads_every_page_once"},
	})
}

func TestBadDays(t *testing.T) {
	t.Parallel()
	wiretest.RunBadDays(t, func(wt wiretest.T) wiretest.Subject {
		f := daytonatest.New(wt, daytonatest.Options{PageSize: 2})
		id := f.Add(daytonatest.Seed{})
		f.Add(daytonatest.Seed{})
		f.Add(daytonatest.Seed{State: "stopped"})
		return wiretest.Subject{
			Server: f.Server, P: open(t, "http://daytona/api", httpx.Net{Dial: f.Dial}), ID: id, Rows: 3, First: 2, SecondBy: "cursor=", Asked: 200, Marks: []string{"nextCursor"}, Secrets: []string{daytonatest.Token},
			List: "GET /api/sandbox", Get: "GET /api/sandbox/{id}", Terminate: "POST /api/sandbox/{id}/stop",
		}
	})
}

func TestKills(t *testing.T) {
	t.Parallel()
	wiretest.RunKills(t, func(t *testing.T) wiretest.Victim {
		t.Helper()
		f := daytonatest.New(t, daytonatest.Options{})
		id := f.Add(daytonatest.Seed{})
		return wiretest.Victim{
			Server: f.Server, P: open(t, f.Listen(), httpx.Net{}), ID: id, Stream: "POST /toolbox/{id}/process/execute",
			Processes: func() []*wiretest.Running { return f.Processes(id) },
		}
	})
}
