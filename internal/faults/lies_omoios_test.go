package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/providers/omoios"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/omoiostest"
	"sbx/internal/testkit/schedule"
	"sbx/internal/testkit/wiretest"
)

// The routes of OmoiOS that a look reads.
const (
	omoiHistory = "GET /api/v1/sandboxes/{id}/trajectory"
	omoiTaskOf  = "GET /api/v1/sandboxes/{id}/task"
	omoiLive    = "GET /api/v1/sandboxes/monitoring/status"
	omoiTasks   = "GET /api/v1/tasks"
)

// worker is an agent that reports to OmoiOS.
type worker struct {
	id    string // OmoiOS's, of its sandbox
	works bool   // reports some work every two minutes
}

// control is an OmoiOS with the workers of a cloud, whose sandboxes are idle by all other signs: agents wait for
// answers. Every worker sends heartbeats while its sandbox runs.
type control struct {
	f     *omoiostest.Fake
	c     *cloud
	byBox map[string]*worker
	token string
}

// onOmoiOS is E2B with an OmoiOS beside it. That creates its sandboxes with the label of their task.
func onOmoiOS(t wiretest.T, token string) (*cloud, *control) {
	c := onE2B(t, e2b.Type(), e2btest.Options{PageSize: 2})
	k := &control{f: omoiostest.New(t, omoiostest.Options{}), c: c, byBox: map[string]*worker{}, token: token}
	busy, add := c.works, c.add
	c.add = func(age time.Duration, labels map[string]string) string {
		n := len(k.byBox) + 1
		task := fmt.Sprintf("%08x-2f1b-4c56-9c2e-6f0a9fee0001", 0x886da5fe+n)
		all := map[string]string{"task_id": task}
		maps.Copy(all, labels)
		id, w := add(age, all), &worker{id: fmt.Sprintf("omoios-%s-%06x", task[:8], n)}
		k.byBox[id] = w
		k.f.AddTask(omoiostest.Task{ID: task, Status: "running", Sandbox: w.id, Created: time.Now().Add(-age)})
		k.report(w, "agent.started", age-time.Second)
		return id
	}
	c.works = func(id string, does bool) {
		busy(id, true)
		if w := k.byBox[id]; w != nil {
			w.works = does
		}
	}
	c.attach = func() providers.Source {
		s, err := omoios.Type().Attach(context.Background(), providers.Profile{
			Name: "omoi", Type: omoios.TypeName, Settings: map[string]string{"url": "http://omoios", "token": token, providers.OptionAttach: "prod"},
		}, providers.Deps{Now: time.Now, Net: httpx.Net{Dial: k.f.Dial}})
		require.NoError(t, err)
		closer, ok := s.(interface{ Close() })
		require.True(t, ok)
		t.Cleanup(closer.Close)
		return s
	}
	return c, k
}

// report adds an event of some time ago.
func (k *control) report(w *worker, event string, ago time.Duration) {
	k.f.Add(omoiostest.Event{Sandbox: w.id, Type: event, At: time.Now().Add(-ago), Data: map[string]any{"tool": "Bash"}})
}

// settle gives each worker its past, and makes them go on. One of the old has done nothing for long and beats; of the
// others one may have been resumed after a long pause, and one may wait for its next message.
func (k *control) settle(r *rand.Rand, w *world) {
	w.settleWork()
	resumed, waits := r.IntN(2) == 0, r.IntN(2) == 0
	for id, one := range k.byBox {
		k.c.idles(id)
		switch {
		case w.stuck[id]:
			k.report(one, "agent.tool_use", 30*time.Minute)
		case id == w.old[1] && resumed:
			k.report(one, "agent.tool_use", 30*time.Minute)
			k.report(one, "agent.started", time.Minute)
		case id == w.old[2] && waits:
			one.works = false
			k.report(one, "agent.tool_use", 30*time.Minute)
			k.report(one, "agent.waiting", 29*time.Minute)
		default:
			k.report(one, "agent.tool_use", time.Minute)
		}
		k.report(one, "agent.heartbeat", time.Second)
	}
	go k.goOn()
}

// goOn is what the workers report until the test ends.
func (k *control) goOn() {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-k.f.Ended():
			return
		}
		for id, w := range k.byBox {
			if !k.c.runs(id) {
				continue
			}
			if w.works && n%4 == 0 {
				k.report(w, "agent.tool_use", 0)
			}
			k.report(w, "agent.heartbeat", 0)
		}
	}
}

// newControlLie is a lie of OmoiOS, by one of its routes or by its clock.
func (k *control) newControlLie(r *rand.Rand, w *world) lie {
	l := lie{times: []int{0, 0, 1, 2, 3, 5}[r.IntN(6)], from: sourceLog}
	route := []string{omoiHistory, omoiHistory, omoiTaskOf, omoiLive, omoiTasks}[r.IntN(5)]
	about := ""
	if r.IntN(2) == 0 && strings.Contains(route, "{id}") {
		about = k.byBox[w.old[r.IntN(3)]].id
	}
	status := statuses()[r.IntN(len(statuses()))]
	faults := map[string]wiretest.Fault{
		"status " + strconv.Itoa(status): {Status: status, Body: `{"detail":"no"}`},
		"late by seconds":                {Delay: time.Duration(1+r.IntN(8)) * time.Second},
		"cut":                            {Trouble: wiretest.TroubleTruncate},
		"stale":                          {Stale: true},
		"no rows":                        {Edit: editRows(func(string) int { return 0 })},
		"no row of work":                 {Edit: editRows(func(row string) int { return count(!strings.Contains(row, "tool_use")) })},
		"nothing":                        {Status: 200, Body: `{}`},
	}
	if about != "" {
		faults["another's body"] = wiretest.Fault{Other: k.byBox[w.old[0]].id}
		faults["another's events"] = wiretest.Fault{Other: k.byBox[w.old[0]].id, Edit: renamed(about)}
	}
	names := slices.Sorted(maps.Keys(faults))
	l.name = names[r.IntN(len(names))]
	one := faults[l.name]
	if r.IntN(4) == 0 {
		route, about = "", ""
		l.from = sourceClock
		drawn := clockLies(r)[r.IntN(4)]
		l.name, one = drawn.name, drawn.fault
	}
	l.about, one.Contains, one.Route, one.Times = about, about, route, l.times
	l.name = "OmoiOS " + route + ": " + l.name
	l.faults = []wiretest.Fault{one}
	return l
}

// renamed gives a history the name of a sandbox, and its heartbeats: the events are another's.
func renamed(id string) func([]byte) []byte {
	return func(body []byte) []byte {
		var page map[string]any
		if json.Unmarshal(body, &page) != nil {
			return body
		}
		page["sandbox_id"] = id
		beats, _ := page["heartbeat_summary"].(map[string]any)
		for _, one := range beats {
			if beat, is := one.(map[string]any); is {
				beat["sandbox_id"] = id
			}
		}
		text, err := json.Marshal(page)
		if err != nil {
			return body
		}
		return text
	}
}

// TestNoLieOfAControlPlaneCondemns plays TestNoLieCondemns where an OmoiOS is the only witness of work, and it lies, or the provider
// does: no worker that works, was resumed, or waits for a message is ended, and one that beats and does nothing is found.
//
//	SBX_SEEDS=20000 go test -count=1 -timeout 60m -run '^TestNoLieOfAControlPlaneCondemns$' ./internal/faults
func TestNoLieOfAControlPlaneCondemns(t *testing.T) {
	t.Parallel()
	schedule.Worlds(t, nil, liesSeeds, 1, playReports)
}

func playReports(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 49))
	token := []string{omoiostest.Token, ""}[r.IntN(2)]
	c, k := onOmoiOS(t, token)
	w := newWorld(t, c)
	w.history = &keptSamples{all: map[string][]sandbox.Usage{}}
	k.settle(r, w)
	l, server := k.newControlLie(r, w), k.f.Server
	if r.IntN(4) == 0 {
		l, server = newLie(r, c, w.ids()), c.server
	}
	w.trace = append(w.trace, "token: "+strconv.FormatBool(token != ""), l.String())
	server.Break(l.faults...)
	w.cleanUpStuck(t, 1+r.IntN(2))
	server.Heal()
	w.trace = append(w.trace, "the lying stops")
	w.cleanUpStuck(t, 2)
	for id := range w.stuck {
		assert.False(t, w.c.runs(id), "%s is stuck, and was not found in two looks%s", id, w.story())
	}
}
