package faults_test

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/daytona"
	"sbx/internal/providers/docker"
	"sbx/internal/providers/e2b"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/providers/monotask"
	"sbx/internal/providers/vercel"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/dockertest"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/monotasktest"
	"sbx/internal/testkit/verceltest"
	"sbx/internal/testkit/wiretest"
)

// cloud is a provider with its fake, with three sandboxes on two pages.
type cloud struct {
	server *wiretest.Server
	p      providers.Provider
	id     string // that is read and ended
	other  string // another one
	secret string // of its requests; "" = they have none

	list, get, create string // routes
	stop, destroy     string // without and with --delete
	second            string // what stands in the address of a second page; "" = there is one
	inside            map[string]string
	bare              bool // a list is an array and nothing around it
	gone              bool // the API documents 410

	runs        func(id string) bool // whether it does, whatever the API says
	count       func() int           // how many run
	ignoresEnds func(does bool)      // an end is accepted from now on, and does not happen
	slow        func()               // from now on it happens 200 ms later
	// orphans refuses a terminate, while the record is dropped and the machine runs; nil = the fake
	// has no machine beside its records.
	orphans func()

	// What the world of lies needs beside.
	kind     providers.Type
	settings map[string]string
	more     map[source][]string                                      // routes of further sources
	owned    string                                                   // of the profile's configuration; "" = what sbx made
	add      func(age time.Duration, labels map[string]string) string // one more sandbox
	stops    []string                                                 // of a body, what says that it runs and what says that it has stopped, in turn
	// nodeFails makes the node refuse an end whose record the API has dropped, from list and host, too; nil = these
	// read another store.
	nodeFails func(does bool)
	// works makes the program of a sandbox work, or makes the sandbox stuck by a verdict that the program has for the
	// provider.
	works  func(id string, does bool)
	extend string                  // the route that moves an end; "" = there is none
	ends   func() string           // one more sandbox, which ends in half an hour
	keeps  func(does bool)         // a later end is acknowledged from now on, and does not happen
	costly bool                    // each look runs real processes
	idles  func(id string)         // from now on it uses no processor time; nil = works decides
	looks  []string                // routes inside that only a look reads
	whose  bool                    // figures say whose they are
	attach func() providers.Source // a control plane beside it; nil = none
}

// leak is memory that grows to its limit within half an hour.
const leakMiB, leakMiBPerMinute, leakLimitMiB = 30 << 10, 60, 32 << 10

const late = 200 * time.Millisecond

func open(t wiretest.T, kind providers.Type, settings map[string]string, f *wiretest.Server) providers.Provider {
	p, err := kind.Open(context.Background(), providers.Profile{Name: "prod", Type: kind.Name, Settings: settings},
		providers.Deps{Now: time.Now, Net: httpx.Net{Dial: f.Dial}})
	require.NoError(t, err)
	return p
}

func clouds() map[string]func(t wiretest.T) *cloud {
	return map[string]func(t wiretest.T) *cloud{
		"e2b": func(t wiretest.T) *cloud { return onE2B(t, e2b.Type(), e2btest.Options{PageSize: 2}) },
		"novita": func(t wiretest.T) *cloud {
			return onE2B(t, e2b.NovitaType(), e2btest.Options{PageSize: 2, Novita: true})
		},
		"daytona": onDaytona, "docker": onDocker, "kubernetes": onKubernetes, "vercel": onVercel, "monotask": onMonoTask,
	}
}

func onE2B(t wiretest.T, kind providers.Type, o e2btest.Options) *cloud {
	f := e2btest.New(t, o)
	lasting := e2btest.Seed{Left: 20 * time.Hour} // by itself one ends after an hour, which a task may take
	c := &cloud{
		server: f.Server, p: open(t, kind, e2btest.Settings("http://e2b"), f.Server), id: f.Add(lasting), other: f.Add(lasting), secret: e2btest.Key,
		list: "GET /v2/sandboxes", get: "GET /sandboxes/{id}", create: "POST /sandboxes", stop: "DELETE /sandboxes/{id}", destroy: "DELETE /sandboxes/{id}",
		second: "nextToken=", bare: true,
		inside:      map[string]string{"exec": "POST /process.Process/Start", "logs": "POST /process.Process/Start", "exit": "POST /process.Process/Start", "usage": "GET /sandboxes/{id}/metrics"},
		runs:        f.VMRuns,
		ignoresEnds: func(does bool) { f.Change(func(o *e2btest.Options) { o.KeepsAlive = does }) },
		slow:        func() { f.Change(func(o *e2btest.Options) { o.HostFor = late }) },
		orphans:     func() { f.Change(func(o *e2btest.Options) { o.Orphans = 500 }) },
	}
	f.Add(lasting)
	c.extend, c.ends = "POST /sandboxes/{id}/timeout", func() string { return f.Add(e2btest.Seed{Left: 30 * time.Minute}) }
	c.keeps = func(does bool) { f.Change(func(o *e2btest.Options) { o.KeepsEnd = does }) }
	c.count, c.kind, c.settings = f.Running, kind, e2btest.Settings("http://e2b")
	c.more = map[source][]string{sourceHost: {"GET /health"}}
	c.stops = []string{`"state":"running"`, `"state":"paused"`}
	c.nodeFails = func(does bool) { f.Change(func(o *e2btest.Options) { o.Orphans = map[bool]int{true: 500}[does] }) }
	c.works = func(id string, does bool) { f.Use(id, map[bool]float64{true: 30, false: 100}[does]) } // a busy loop prints nothing
	c.idles = func(id string) { f.Use(id, 0.2) }
	c.add = func(age time.Duration, labels map[string]string) string {
		return f.Add(e2btest.Seed{Age: age, Left: 20 * time.Hour, Metadata: labels})
	}
	return c
}

func onDaytona(t wiretest.T) *cloud {
	f := daytonatest.New(t, daytonatest.Options{PageSize: 2})
	lasting := daytonatest.Seed{Endless: true} // by itself one stops after fifteen idle minutes, which a task may take
	c := &cloud{
		server: f.Server, p: open(t, daytona.Type(), daytonatest.Settings("http://daytona/api"), f.Server), id: f.Add(lasting), other: f.Add(lasting), secret: daytonatest.Token,
		list: "GET /api/sandbox", get: "GET /api/sandbox/{id}", create: "POST /api/sandbox", stop: "POST /api/sandbox/{id}/stop", destroy: "DELETE /api/sandbox/{id}",
		second:      "cursor=",
		inside:      map[string]string{"exec": "POST /toolbox/{id}/process/execute", "logs": "POST /toolbox/{id}/process/execute", "exit": "POST /toolbox/{id}/process/execute", "usage": "GET /toolbox/{id}/system/metrics"},
		runs:        f.Runs,
		ignoresEnds: func(does bool) { f.Change(func(o *daytonatest.Options) { o.Deaf = does }) },
		slow:        func() { f.Change(func(o *daytonatest.Options) { o.EndFor = late }) },
		orphans:     func() { f.Change(func(o *daytonatest.Options) { o.Hides = true }) },
	}
	f.Add(lasting)
	c.extend, c.ends = "POST /api/sandbox/{id}/ttl/{minutes}", func() string { return f.Add(daytonatest.Seed{Left: 30 * time.Minute}) }
	c.keeps = func(does bool) { f.Change(func(o *daytonatest.Options) { o.KeepsEnd = does }) }
	c.count, c.kind, c.settings = f.Running, daytona.Type(), daytonatest.Settings("http://daytona/api")
	c.stops = []string{`"state":"started"`, `"state":"stopped"`, `"state":"stopping"`, `"state":"stopped"`, `"desiredState":"started"`, `"desiredState":"stopped"`}
	c.add = func(age time.Duration, labels map[string]string) string {
		return f.Add(daytonatest.Seed{Age: age, Labels: labels, Endless: true})
	}
	c.looks = []string{"GET /toolbox/{id}/version", "GET /toolbox/{id}/process/session/entrypoint/logs"}
	c.works = func(id string, does bool) {
		if !does {
			f.Kill(id) // memory ran out inside, and it stays `started`
		}
	}
	return c
}

func onDocker(t wiretest.T) *cloud {
	f := dockertest.New(t, dockertest.Options{Virtual: true})
	c := &cloud{
		server: f.Server, p: open(t, docker.Type(), dockertest.Settings("http://docker"), f.Server), id: f.Add(dockertest.Seed{}), other: f.Add(dockertest.Seed{}), secret: "",
		list: "GET /v1.47/containers/json", get: "GET /v1.47/containers/{id}/json", create: "POST /v1.47/containers/create", stop: "POST /v1.47/containers/{id}/stop", destroy: "DELETE /v1.47/containers/{id}",
		inside:      map[string]string{"exec": "POST /v1.47/exec/{id}/start", "logs": "POST /v1.47/exec/{id}/start", "exit": "POST /v1.47/exec/{id}/start", "usage": "GET /v1.47/containers/{id}/stats"},
		runs:        f.Runs,
		ignoresEnds: func(does bool) { f.Change(func(o *dockertest.Options) { o.Deaf = does }) },
		slow:        func() { f.Change(func(o *dockertest.Options) { o.EndFor = late }) },
		orphans:     func() { f.Change(func(o *dockertest.Options) { o.Orphans = 500 }) },
	}
	f.Add(dockertest.Seed{})
	c.count, c.kind, c.settings = f.Running, docker.Type(), dockertest.Settings("http://docker")
	c.stops = []string{`"Status":"running"`, `"Status":"exited"`, `"Running":true`, `"Running":false`, `"State":"running"`, `"State":"exited"`}
	c.more = map[source][]string{sourceLog: {"GET /v1.47/events"}}
	c.add = func(age time.Duration, labels map[string]string) string {
		return f.Add(dockertest.Seed{Age: age, Labels: labels})
	}
	c.looks, c.whose = []string{"GET /v1.47/containers/{id}/logs"}, true
	c.works = func(id string, does bool) {
		figures := dockertest.Figures{CPUPercent: 30, MemoryMiB: 200, LimitMiB: leakLimitMiB}
		if !does {
			figures = dockertest.Figures{CPUPercent: 0.5, MemoryMiB: leakMiB, MemoryMiBPerMinute: leakMiBPerMinute, LimitMiB: leakLimitMiB}
		}
		f.Show(id, figures)
	}
	return c
}

func onKubernetes(t wiretest.T) *cloud {
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, NoCRD: true, PageSize: 2, Scrape: 15 * time.Second})
	const pods = "/api/v1/namespaces/{ns}/pods"
	c := &cloud{
		server: f.Server, p: open(t, kubernetes.Type(), kubernetestest.Settings(t, "http://kubernetes"), f.Server), id: f.Add(kubernetestest.Seed{}), other: f.Add(kubernetestest.Seed{}), secret: "", // over plain HTTP
		list: "GET " + pods, get: "GET " + pods + "/{name}", create: "POST /apis/batch/v1/namespaces/{ns}/jobs", stop: "DELETE " + pods + "/{name}", destroy: "DELETE " + pods + "/{name}",
		second:      "continue=",
		inside:      map[string]string{"exec": "GET " + pods + "/{name}/exec", "logs": "GET " + pods + "/{name}/exec", "exit": "GET " + pods + "/{name}/exec", "usage": "GET /apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods/{name}"},
		runs:        f.Runs,
		ignoresEnds: func(does bool) { f.Change(func(o *kubernetestest.Options) { o.Deaf = does }) },
		slow:        func() { f.Change(func(o *kubernetestest.Options) { o.EndFor = late }) },
		orphans:     func() { f.Change(func(o *kubernetestest.Options) { o.Orphans = 500 }) },
	}
	f.Add(kubernetestest.Seed{})
	c.extend, c.ends = "PATCH /apis/batch/v1/namespaces/{ns}/jobs/{name}", func() string { return f.Add(kubernetestest.Seed{Kind: "job", Ends: 30 * time.Minute}) }
	c.keeps = func(does bool) { f.Change(func(o *kubernetestest.Options) { o.KeepsEnd = does }) }
	c.count, c.kind, c.settings = f.Running, kubernetes.Type(), kubernetestest.Settings(t, "http://kubernetes")
	c.stops = []string{`"phase":"Running"`, `"phase":"Succeeded"`}
	c.add = func(age time.Duration, labels map[string]string) string {
		return f.Add(kubernetestest.Seed{Age: age, Annotations: labels})
	}
	c.looks, c.whose = []string{"GET " + pods + "/{name}/log"}, true
	c.works = func(id string, does bool) {
		figures := kubernetestest.Figures{CPUPercent: 30, MemoryMiB: 200, LimitMiB: leakLimitMiB}
		if !does {
			figures = kubernetestest.Figures{CPUPercent: 0.5, MemoryMiB: leakMiB, MemoryMiBPerMinute: leakMiBPerMinute, LimitMiB: leakLimitMiB}
		}
		f.Show(id, figures)
	}
	return c
}

func onVercel(t wiretest.T) *cloud {
	f := verceltest.New(t, verceltest.Options{PageSize: 2})
	lasting := verceltest.Seed{Left: 20 * time.Hour} // by itself one ends after five minutes, which a task may take
	c := &cloud{
		server: f.Server, p: open(t, vercel.Type(), verceltest.Settings("http://vercel"), f.Server), id: f.Add(lasting), other: f.Add(lasting), secret: verceltest.Token,
		list: "GET /v2/sandboxes", get: "GET /v2/sandboxes/sessions/{id}", create: "POST /v2/sandboxes", stop: "POST /v2/sandboxes/sessions/{id}/stop", destroy: "DELETE /v2/sandboxes/{name}",
		second: "cursor=", gone: true,
		inside:      map[string]string{"exec": "POST /v2/sandboxes/sessions/{id}/cmd", "logs": "POST /v2/sandboxes/sessions/{id}/cmd", "exit": "POST /v2/sandboxes/sessions/{id}/cmd", "usage": "POST /v2/sandboxes/sessions/{id}/cmd"},
		runs:        f.Runs,
		ignoresEnds: func(does bool) { f.Change(func(o *verceltest.Options) { o.Deaf = does }) },
		slow:        func() { f.Change(func(o *verceltest.Options) { o.StopFor = late }) },
		orphans:     func() { f.Change(func(o *verceltest.Options) { o.Orphans = 500 }) },
	}
	f.Add(lasting)
	c.extend, c.ends = "POST /v2/sandboxes/sessions/{id}/extend-timeout", func() string { return f.Add(verceltest.Seed{Left: 30 * time.Minute}) }
	c.keeps = func(does bool) { f.Change(func(o *verceltest.Options) { o.KeepsEnd = does }) }
	c.count, c.kind, c.settings = f.Running, vercel.Type(), verceltest.Settings("http://vercel")
	c.stops = []string{`"status":"running"`, `"status":"stopped"`, `"status":"stopping"`, `"status":"stopped"`}
	c.more = map[source][]string{sourceHost: {"GET /v2/sandboxes/{name}"}}
	c.costly = true
	c.works = func(id string, does bool) {
		figures := verceltest.Figures{CPUPercent: 30, MemoryMiB: 200, LimitMiB: leakLimitMiB}
		if !does {
			figures = verceltest.Figures{CPUPercent: 0.5, MemoryMiB: leakMiB, MemoryMiBPerMinute: leakMiBPerMinute, LimitMiB: leakLimitMiB}
		}
		f.Show(id, figures)
	}
	c.add = func(age time.Duration, labels map[string]string) string {
		tags := map[string]string{}
		for key, value := range labels {
			tags[strings.ReplaceAll(key, "/", "-")] = value
		}
		return f.Add(verceltest.Seed{Age: age, Tags: tags, Left: 20 * time.Hour})
	}
	return c
}

func onMonoTask(t wiretest.T) *cloud {
	f := monotasktest.New(t, monotasktest.Options{})
	c := &cloud{
		server: f.Server, p: open(t, monotask.Type(), map[string]string{"url": "http://worker", "token": monotasktest.Token}, f.Server), id: f.Add(monotasktest.Box{}), other: f.Add(monotasktest.Box{}), secret: monotasktest.Token,
		list: "GET /api/sandbox/list", get: "GET /api/sandbox/{id}", stop: "DELETE /api/sandbox/{id}", destroy: "DELETE /api/sandbox/{id}", bare: true,
		inside:      map[string]string{"logs": "GET /api/sandbox/{id}/logs", "usage": "GET /api/sandbox/{id}/resources"},
		runs:        f.Runs,
		ignoresEnds: func(does bool) { f.Change(func(o *monotasktest.Options) { o.Deaf = does }) },
		slow:        func() { f.Change(func(o *monotasktest.Options) { o.EndFor = late }) },
		orphans:     func() { f.Change(func(o *monotasktest.Options) { o.Orphans = 500 }) },
	}
	f.Add(monotasktest.Box{})
	c.count, c.kind, c.owned = f.Running, monotask.Type(), "all"
	c.stops = []string{`"status":"running"`, `"status":"terminated"`}
	c.settings = map[string]string{"url": "http://worker", "token": monotasktest.Token}
	c.add = func(age time.Duration, _ map[string]string) string {
		return f.Add(monotasktest.Box{Created: time.Now().Add(-age)})
	}
	c.works = func(id string, does bool) {
		f.Set(id, func(b *monotasktest.Box) {
			b.Resources = &monotasktest.Resources{MemoryMB: 120}
			if does {
				b.Resources = &monotasktest.Resources{CPUPercent: 40, MemoryMB: 120, OperationsPerSecond: 5}
			}
		})
	}
	return c
}

// stranger is an id of the same form that no sandbox has.
func stranger(id string) string {
	last := "0"
	if strings.HasSuffix(id, last) {
		last = "1"
	}
	return id[:len(id)-1] + last
}
