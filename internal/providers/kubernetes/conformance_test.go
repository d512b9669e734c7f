package kubernetes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/wiretest"
)

// base is the address of a fake that is dialed in-process.
const base = "http://kubernetes:6443"

const (
	podsRoute = "/api/v1/namespaces/{ns}/pods"
	execRoute = "GET " + podsRoute + "/{name}/exec"
)

func open(t wiretest.T, settings map[string]string, n httpx.Net) *kubernetes.Client {
	p, err := kubernetes.Type().Open(context.Background(), providers.Profile{Name: "prod", Type: kubernetes.TypeName, Settings: settings}, providers.Deps{Now: time.Now, Net: n})
	require.NoError(t, err)
	c, ok := p.(*kubernetes.Client)
	require.True(t, ok)
	return c
}

// dialed is a client of a fake in-process.
func dialed(t wiretest.T, f *kubernetestest.Fake) *kubernetes.Client {
	return open(t, kubernetestest.Settings(t, base), httpx.Net{Dial: f.Dial})
}

func subject(o kubernetestest.Options) providertest.Config {
	var fakes providertest.Fakes[*kubernetestest.Fake]
	sleeps := func(f *kubernetestest.Fake) string {
		return f.Add(kubernetestest.Seed{Command: []string{"sleep", "600"}})
	}
	c := providertest.Config{
		New: fakes.New(func(t providertest.T) (*kubernetestest.Fake, providers.Provider) {
			f := kubernetestest.New(t, o)
			return f, open(t, kubernetestest.Settings(t, f.Listen()), httpx.Net{})
		}),
		Foreign: fakes.Add(sleeps),
		Paused: fakes.Add(func(f *kubernetestest.Fake) string {
			return f.Add(kubernetestest.Seed{Kind: "sandbox", Suspended: true, NoPod: true})
		}),
		Orphan: fakes.Add(func(f *kubernetestest.Fake) string {
			id := sleeps(f)
			f.Lose(id)
			return id
		}),
		Secrets: []string{kubernetestest.Token},
		Many:    5, Limit: time.Minute,
	}
	if o.NoCRD { // nothing else can be suspended without a pod
		c.Paused = nil
	}
	return c
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]kubernetestest.Options{"jobs": {NoCRD: true, PageSize: 2}, "sandboxes": {PageSize: 2}, "old sandboxes": {Alpha: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.Run(t, subject(o))
		})
	}
}

func TestLiarsTurnTheSuiteRed(t *testing.T) {
	t.Parallel()
	moving := subject(kubernetestest.Options{Moves: true, PageSize: 2})
	moving.Limit = 5 * time.Second // a list that is never whole is begun again until its time is over
	providertest.RunLies(t, time.Second, map[string]providertest.Lie{
		"says yes and does nothing":          {Config: subject(kubernetestest.Options{Deaf: true}), Check: "terminate_ends"},
		"what has ended is shown as running": {Config: subject(kubernetestest.Options{Ended: true}), Check: "terminate_ends"},
		"a node that confirms no end":        {Config: subject(kubernetestest.Options{LostNode: true}), Check: "verify_proves_an_end"},
		"a later end is not kept": {
			Config: subject(kubernetestest.Options{KeepsEnd: true}), Check: "extend_moves_the_end_and_never_shortens",
			Said: "another read shows the later end",
		},
		"each page is of another moment": {Config: moving, Check: "list_reads_every_page_once"},
	})
}

func TestBadDays(t *testing.T) {
	t.Parallel()
	wiretest.RunBadDays(t, func(wt wiretest.T) wiretest.Subject {
		f := kubernetestest.New(wt, kubernetestest.Options{Virtual: true, NoCRD: true, PageSize: 2})
		id := f.Add(kubernetestest.Seed{Name: "first"})
		f.Add(kubernetestest.Seed{})
		f.Add(kubernetestest.Seed{})
		return wiretest.Subject{
			Server: f.Server, P: dialed(wt, f), ID: id, Shown: "first", Rows: 3, First: 2, SecondBy: "continue=", Secrets: []string{kubernetestest.Token},
			List: "GET " + podsRoute, Get: "GET " + podsRoute + "/{name}", Terminate: "DELETE " + podsRoute + "/{name}",
		}
	})
}

func TestKills(t *testing.T) {
	t.Parallel()
	wiretest.RunKills(t, func(t *testing.T) wiretest.Victim {
		t.Helper()
		f := kubernetestest.New(t, kubernetestest.Options{})
		id := f.Add(kubernetestest.Seed{})
		return wiretest.Victim{
			Server: f.Server, P: open(t, kubernetestest.Settings(t, f.Listen()), httpx.Net{}), ID: id, Stream: execRoute,
			Processes: func() []*wiretest.Running { return f.Processes(id) },
		}
	})
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct {
		seed   kubernetestest.Seed
		inside []string // a log of the kubelet that nothing writes is followed for ever, and is not inside
	}{
		"of others":  {seed: kubernetestest.Seed{}},
		"of sbx":     {kubernetestest.Seed{Annotations: map[string]string{sandbox.LabelRun: "main"}}, []string{execRoute}},
		"of a claim": {seed: kubernetestest.Seed{Kind: "sandbox"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wiretest.RunSilence(t, func(wt wiretest.T) wiretest.Subject {
				f := kubernetestest.New(wt, kubernetestest.Options{Virtual: true})
				seed := s.seed
				if strings.HasSuffix(name, "claim") {
					seed.Owner = f.Add(kubernetestest.Seed{Kind: "claim"})
				}
				return wiretest.Subject{Server: f.Server, P: dialed(wt, f), ID: f.Add(seed), Inside: s.inside}
			})
		})
	}
}

func TestLosses(t *testing.T) {
	t.Parallel()
	wiretest.RunLosses(t, func(t *testing.T) wiretest.Subject {
		t.Helper()
		f := kubernetestest.New(t, kubernetestest.Options{NoCRD: true})
		return wiretest.Subject{Server: f.Server, P: open(t, kubernetestest.Settings(t, f.Listen()), httpx.Net{}), Inside: []string{execRoute}}
	})
}

func TestRefusedCreates(t *testing.T) {
	t.Parallel()
	wiretest.RunRefusals(t, func(wt wiretest.T) wiretest.Subject {
		f := kubernetestest.New(wt, kubernetestest.Options{Virtual: true, NoCRD: true})
		return wiretest.Subject{Server: f.Server, P: dialed(wt, f), Create: "POST /apis/batch/v1/namespaces/{ns}/jobs"}
	})
}
