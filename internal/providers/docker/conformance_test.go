package docker_test

import (
	"testing"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/dockertest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

// base is the address of a fake that is dialed in-process.
const base = "http://docker:2375"

func subject(o dockertest.Options) providertest.Config {
	var fakes providertest.Fakes[*dockertest.Fake]
	sleeps := func(f *dockertest.Fake) string { return f.Add(dockertest.Seed{Command: []string{"sleep", "600"}}) }
	return providertest.Config{
		New: fakes.New(func(t providertest.T) (*dockertest.Fake, providers.Provider) {
			f := dockertest.New(t, o)
			return f, open(t, dockertest.Settings(f.Listen()), httpx.Net{})
		}),
		Paused:  fakes.Add(func(f *dockertest.Fake) string { return f.Add(dockertest.Seed{State: "paused"}) }),
		Foreign: fakes.Add(sleeps),
		Orphan: fakes.Add(func(f *dockertest.Fake) string {
			id := sleeps(f)
			f.Lose(id)
			return id
		}),
		Many: 5, Limit: time.Minute,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]dockertest.Options{"docker": {}, "podman": {Podman: true, API: "1.41"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, subject(o))
		})
	}
}

func TestLiarsTurnTheSuiteRed(t *testing.T) {
	t.Parallel()
	providertest.RunLies(t, time.Second, map[string]providertest.Lie{
		"says yes and does nothing":          {Config: subject(dockertest.Options{Deaf: true}), Check: "terminate_ends"},
		"what has ended is shown as running": {Config: subject(dockertest.Options{Ended: true}), Check: "ended_is_not_listed_as_running"},
	})
}

func TestBadDays(t *testing.T) {
	t.Parallel()
	wiretest.RunBadDays(t, func(wt wiretest.T) wiretest.Subject {
		f := dockertest.New(wt, dockertest.Options{Virtual: true})
		id := f.Add(dockertest.Seed{})
		f.Add(dockertest.Seed{})
		f.Add(dockertest.Seed{State: "exited"})
		return wiretest.Subject{
			Server: f.Server, P: open(wt, dockertest.Settings(base), httpx.Net{Dial: f.Dial}), ID: id, Rows: 3,
			List: "GET /v1.47/containers/json", Get: "GET /v1.47/containers/{id}/json", Terminate: "POST /v1.47/containers/{id}/stop",
		}
	})
}

func TestKills(t *testing.T) {
	t.Parallel()
	wiretest.RunKills(t, func(t *testing.T) wiretest.Victim {
		t.Helper()
		f := dockertest.New(t, dockertest.Options{})
		id := f.Add(dockertest.Seed{})
		return wiretest.Victim{
			Server: f.Server, P: open(t, dockertest.Settings(f.Listen()), httpx.Net{}), ID: id, Stream: "POST /v1.47/exec/{id}/start",
			Processes: func() []*wiretest.Running { return f.Processes(id) },
		}
	})
}

func inside() []string {
	return []string{"POST /v1.47/containers/{id}/exec", "POST /v1.47/exec/{id}/start", "GET /v1.47/exec/{id}/json"}
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct {
		labels map[string]string
		inside []string // a log of the engine that nothing writes is followed for ever, and is not inside
	}{"of others": {}, "of sbx": {map[string]string{sandbox.LabelRun: "main"}, inside()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wiretest.RunSilence(t, func(wt wiretest.T) wiretest.Subject {
				f := dockertest.New(wt, dockertest.Options{Virtual: true})
				return wiretest.Subject{Server: f.Server, P: open(wt, dockertest.Settings(base), httpx.Net{Dial: f.Dial}), ID: f.Add(dockertest.Seed{Labels: s.labels}), Inside: s.inside}
			})
		})
	}
}

func TestLosses(t *testing.T) {
	t.Parallel()
	wiretest.RunLosses(t, func(t *testing.T) wiretest.Subject {
		t.Helper()
		f := dockertest.New(t, dockertest.Options{})
		return wiretest.Subject{Server: f.Server, P: open(t, dockertest.Settings(f.Listen()), httpx.Net{}), Inside: inside()[1:]}
	})
}

func TestRefusedCreates(t *testing.T) {
	t.Parallel()
	wiretest.RunRefusals(t, func(wt wiretest.T) wiretest.Subject {
		f := dockertest.New(wt, dockertest.Options{Virtual: true})
		return wiretest.Subject{Server: f.Server, P: open(wt, dockertest.Settings(base), httpx.Net{Dial: f.Dial}), Create: "POST /v1.47/containers/create"}
	})
}
