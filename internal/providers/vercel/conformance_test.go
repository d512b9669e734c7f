package vercel_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/vercel"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/tiertest"
	"sbx/internal/testkit/verceltest"
	"sbx/internal/testkit/wiretest"
	"sbx/internal/testkit/wiretest/apispec"
)

func open(t wiretest.T, address string, n httpx.Net) *vercel.Client {
	p, err := vercel.Type().Open(context.Background(), providers.Profile{Name: "prod", Type: vercel.TypeName, Settings: verceltest.Settings(address)},
		providers.Deps{Now: time.Now, Net: n})
	require.NoError(t, err)
	c, ok := p.(*vercel.Client)
	require.True(t, ok)
	return c
}

func subject(o verceltest.Options) providertest.Config {
	o.PageSize = 2
	var fakes providertest.Fakes[*verceltest.Fake]
	return providertest.Config{
		New: fakes.New(func(t providertest.T) (*verceltest.Fake, providers.Provider) {
			f := verceltest.New(t, o)
			return f, open(t, f.Listen(), httpx.Net{})
		}),
		Foreign: fakes.Add(func(f *verceltest.Fake) string { return f.Add(verceltest.Seed{}) }),
		Many:    5, Limit: time.Minute, Secrets: []string{verceltest.Token},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	apispec.SkipWhereDescribed(t)
	providertest.Run(t, subject(verceltest.Options{}))
}

// TestConformanceWithoutNames: only the rows of the list have the name of a session.
func TestConformanceWithoutNames(t *testing.T) {
	t.Parallel()
	tiertest.SkipUnlessLong(t, "the whole conformance suite once more, with lists that have no names")
	providertest.Run(t, subject(verceltest.Options{Nameless: true}))
}

// spec is the published description of the API.
func spec() apispec.Spec {
	return apispec.Spec{
		File: "vercel/endpoints-derived.json", Schemas: "vercel/sandbox-sdk-3.5.0.response-schemas.json",
		Answers: map[string]string{
			"listSandboxes": "SandboxesPaginationResponse", "getNamedSandbox": "SandboxAndSessionResponse", "getSession": "SessionAndRoutesResponse",
			"extendSessionTimeout": "SessionResponse",
			"stopSession":          "StopSessionResponse", "deleteSandbox": "UpdateSandboxResponse", "killSessionCommand": "CommandResponse",
			"getSessionCommand": "CommandResponse", "getSessionSnapshot": "SnapshotResponse", "listSessionCommands": "", "writeSessionFiles": "", // the SDK has no schema of these
		},
	}
}

func TestProgramsUnderEachShell(t *testing.T) {
	t.Parallel()
	wiretest.EachShell(t, func(t *testing.T, shell string) {
		t.Helper()
		providertest.RunPrograms(t, subject(verceltest.Options{Shell: shell}))
	})
}

// TestContract compares every request of the suite, and every answer of the fake, with the
// published description of the API.
func TestContract(t *testing.T) {
	t.Parallel()
	contract := apispec.LoadContract(t, filepath.Join("testdata", "contract-exemptions.txt"), spec())
	providertest.Run(t, subject(verceltest.Options{StopFor: 30 * time.Millisecond, Wire: wiretest.Options{Contract: contract}}))
}

func TestLiarsTurnTheSuiteRed(t *testing.T) {
	t.Parallel()
	providertest.RunLies(t, time.Second, map[string]providertest.Lie{
		"says yes and does nothing": {Config: subject(verceltest.Options{Deaf: true}), Check: "terminate_ends"},
		"lists what has stopped":    {Config: subject(verceltest.Options{Hides: true}), Check: "ended_is_not_listed_as_running"},
		"a later end is not kept": {
			Config: subject(verceltest.Options{KeepsEnd: true}), Check: "extend_moves_the_end_and_never_shortens",
			Said: "another read shows the later end",
		},
		"a later end is an earlier": {
			Config: subject(verceltest.Options{Shortens: true}), Check: "extend_moves_the_end_and_never_shortens",
			Said: "another read shows the later end",
		},
		"a cursor comes again": {Config: subject(verceltest.Options{Loops: true}), Check: "list_reads_every_page_once"},
	})
}

func TestBadDays(t *testing.T) {
	t.Parallel()
	wiretest.RunBadDays(t, func(wt wiretest.T) wiretest.Subject {
		f := verceltest.New(wt, verceltest.Options{PageSize: 2})
		id := f.Add(verceltest.Seed{})
		f.Add(verceltest.Seed{})
		f.Add(verceltest.Seed{Persistent: true, Status: "stopped"})
		c := open(t, "http://vercel", httpx.Net{Dial: f.Dial})
		return wiretest.Subject{
			Server: f.Server, P: c, ID: id, Rows: 3, First: 2, SecondBy: "cursor=", Asked: 100, Marks: []string{"pagination"}, Secrets: []string{verceltest.Token},
			List: "GET /v2/sandboxes", Get: "GET /v2/sandboxes/sessions/{id}", Terminate: "POST /v2/sandboxes/sessions/{id}/stop",
			// The API documents 410; for a stop it is checked, since the record shows a running session.
			Expect: map[string]fault.Kind{"get 410": fault.KindGone},
		}
	})
}
