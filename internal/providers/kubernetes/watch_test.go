package kubernetes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/tiertest"
	"sbx/internal/testkit/wiretest"
)

const refresh = 2 * time.Second // of the dashboard

// listed reads a list to its end, in the order of ids.
func listed(ctx context.Context, p providers.Provider, q providers.Query) (all []sandbox.Sandbox, failed error) {
	for row, err := range p.List(ctx, q) {
		if err != nil {
			failed = err
			continue
		}
		all = append(all, row)
	}
	slices.SortFunc(all, func(a, b sandbox.Sandbox) int { return strings.Compare(a.ID, b.ID) })
	return all, failed
}

// looks counts the requests to the fake.
type looks struct{ lists, watches, discovery int }

func looksAt(f *kubernetestest.Fake) (n looks) {
	for _, c := range f.Calls("") {
		switch {
		case strings.Contains(c.URL, "watch="):
			n.watches++
		case strings.Contains(c.URL, "limit="):
			n.lists++
		default:
			n.discovery++
		}
	}
	return n
}

// live lists with Live after some time, when everything has come that was under way.
func live(t *testing.T, c *kubernetes.Client, after time.Duration) []sandbox.Sandbox {
	t.Helper()
	pass(after)
	rows, err := listed(t.Context(), c, providers.Query{Live: true})
	require.NoError(t, err)
	synctest.Wait()
	return rows
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func states(rows []sandbox.Sandbox) map[string]sandbox.State {
	all := map[string]sandbox.State{}
	for _, row := range rows {
		all[row.ID] = row.State
	}
	return all
}

func newView(t *testing.T, o kubernetestest.Options) (*kubernetestest.Fake, *kubernetes.Client) {
	t.Helper()
	o.Virtual = true
	f := kubernetestest.New(t, o)
	c := dialed(t, f)
	t.Cleanup(c.Close)
	return f, c
}

// With Live 60 refreshes read each list once; without, 60 times. The kinds are pods, jobs and sandboxes.
func TestRequestsOfRefreshes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		live bool
		want looks
	}{
		"with a view": {true, looks{lists: 4, watches: 4, discovery: 4}},
		"without":     {false, looks{lists: 240, discovery: 4}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f, c := newView(t, kubernetestest.Options{})
			f.Add(kubernetestest.Seed{Kind: "job"})
			for range 60 {
				pass(refresh)
				rows, err := listed(t.Context(), c, providers.Query{Live: tc.live})
				require.NoError(t, err)
				require.Len(t, rows, 1)
			}
			assert.Equal(t, tc.want, looksAt(f))
		})
	}
}

// A change reaches the next list without a request.
func TestAChangeReachesTheView(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, c := newView(t, kubernetestest.Options{})
		pod := f.Add(kubernetestest.Seed{})
		require.Equal(t, map[string]sandbox.State{pod: sandbox.StateRunning}, states(live(t, c, 0)))
		read := looksAt(f)
		job := f.Add(kubernetestest.Seed{Kind: "job"})
		box := f.Add(kubernetestest.Seed{Kind: "sandbox"})
		assert.Equal(t, map[string]sandbox.State{pod: sandbox.StateRunning, job: sandbox.StateRunning, box: sandbox.StateRunning}, states(live(t, c, refresh)))
		f.Update(job, kubernetestest.Seed{Phase: "Succeeded"})
		f.Expire(pod)
		assert.Equal(t, map[string]sandbox.State{job: sandbox.StateTerminated, box: sandbox.StateRunning}, states(live(t, c, refresh)))
		f.Replace(box)
		rows := live(t, c, refresh)
		assert.NotContains(t, states(rows), box, "another one has its name")
		assert.Len(t, rows, 2)
		assert.Equal(t, read, looksAt(f), "nothing was requested")
	})
}

// A label that an object gets or loses brings it into the view of a profile with this label, or out of it.
func TestLabelsOfAView(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
		mine := map[string]string{"team": "a"}
		in, out := f.Add(kubernetestest.Seed{Kind: "sandbox", Labels: mine}), f.Add(kubernetestest.Seed{Kind: "sandbox", Labels: map[string]string{"team": "b"}})
		settings := kubernetestest.Settings(t, base)
		settings["label"] = "team=a"
		c := open(t, settings, netOf(f))
		defer c.Close()
		require.Equal(t, map[string]sandbox.State{in: sandbox.StateRunning}, states(live(t, c, 0)))
		f.Update(in, kubernetestest.Seed{Phase: "Running"})
		f.Update(out, kubernetestest.Seed{Phase: "Running", Labels: mine})
		assert.Equal(t, map[string]sandbox.State{out: sandbox.StateRunning}, states(live(t, c, refresh)))
		assert.Equal(t, 4, looksAt(f).lists)
	})
}

// After trouble the view is not shown any more: the next list reads the API, and a new view begins.
func TestBadDaysOfAView(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		trouble func(f *kubernetestest.Fake)
		after   time.Duration // until the client can know
	}{
		"the server ends the watches": {func(f *kubernetestest.Fake) { f.CutWatches(false) }, 0},
		"the connections break":       {func(f *kubernetestest.Fake) { f.CutWatches(true) }, 0},
		"the versions are too old": {func(f *kubernetestest.Fake) {
			f.Inject(`{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}` + "\n")
		}, 0},
		"no JSON":                       {func(f *kubernetestest.Fake) { f.Inject("<html>\n") }, 0},
		"an empty line":                 {func(f *kubernetestest.Fake) { f.Inject("\n") }, 0},
		"an event of no known type":     {func(f *kubernetestest.Fake) { f.Inject(`{"type":"MOVED","object":{}}` + "\n") }, 0},
		"an event without an object":    {func(f *kubernetestest.Fake) { f.Inject(`{"type":"ADDED"}` + "\n") }, 0},
		"an object without a unique id": {func(f *kubernetestest.Fake) { f.Inject(`{"type":"DELETED","object":{"metadata":{"name":"a"}}}` + "\n") }, 0},
		"an object that cannot be read": {func(f *kubernetestest.Fake) { f.Inject(`{"type":"ADDED","object":{"metadata":{"uid":7}}}` + "\n") }, 0},
		"a line without an end":         {func(f *kubernetestest.Fake) { f.Inject(strings.Repeat("x", 5<<20)) }, 0},
		"more objects than are kept":    {func(f *kubernetestest.Fake) { f.Inject(manyAdded(50_001)) }, 0},
		"silence":                       {func(f *kubernetestest.Fake) { f.Change(func(o *kubernetestest.Options) { o.SilentWatches = true }) }, 92 * time.Second},
		"a part of a line, then silence": {func(f *kubernetestest.Fake) {
			f.Change(func(o *kubernetestest.Options) { o.SilentWatches = true })
			f.Inject(`{"type":`)
		}, 92 * time.Second},
		"another version of the sandboxes": {func(f *kubernetestest.Fake) { f.Change(func(o *kubernetestest.Options) { o.NoCRD = true }) }, 61 * time.Second},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f, c := newView(t, kubernetestest.Options{})
			f.Add(kubernetestest.Seed{})
			require.Len(t, live(t, c, 0), 1)
			require.Len(t, live(t, c, 11*time.Second), 1)
			require.Equal(t, looks{4, 4, 2}, looksAt(f))
			tc.trouble(f)
			pass(tc.after)
			f.Change(func(o *kubernetestest.Options) { o.SilentWatches = false })
			f.Add(kubernetestest.Seed{})
			rows, err := listed(t.Context(), c, providers.Query{Live: true})
			require.NoError(t, err)
			assert.Len(t, rows, 2, "the change that no watch has brought")
			again := looksAt(f)
			assert.Greater(t, again.lists, 4, "the API was read")
			require.Len(t, live(t, c, refresh), 2)
			assert.Equal(t, again.lists, looksAt(f).lists, "a new view has begun")
			assert.Equal(t, again.lists, looksAt(f).watches)
		})
	}
}

// manyAdded are the events of so many new objects.
func manyAdded(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"type":"ADDED","object":{"metadata":{"name":"a","uid":"%d"}}}`+"\n", i)
	}
	return b.String()
}

// A view whose watches fail at once is tried again after a pause; until then each list reads the API.
func TestWatchesThatFailAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, c := newView(t, kubernetestest.Options{NoCRD: true})
		f.Add(kubernetestest.Seed{})
		for _, err := range c.List(t.Context(), providers.Query{Live: true}) { // between list and watch
			require.NoError(t, err)
			f.Compact()
		}
		synctest.Wait()
		require.Equal(t, 2, looksAt(f).watches, "of pods and jobs")
		for range 4 {
			require.Len(t, live(t, c, refresh), 1)
		}
		assert.Equal(t, looks{10, 2, 1}, looksAt(f))
		require.Len(t, live(t, c, refresh), 1)
		require.Len(t, live(t, c, refresh), 1)
		assert.Equal(t, looks{12, 4, 1}, looksAt(f), "the second view holds")
	})
}

// While a watch is not accepted, nothing proves that the view is kept current.
func TestWatchThatIsNotAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, c := newView(t, kubernetestest.Options{NoCRD: true})
		f.Break(wiretest.Fault{Contains: "watch=1", Trouble: wiretest.TroubleHang})
		for n := range 3 {
			live(t, c, refresh)
			assert.Equal(t, 2*(n+1), looksAt(f).lists)
		}
	})
}

// Where RBAC refuses a watch, each list reads the API, with one note.
func TestRefusedWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, NoCRD: true, Refuse: []string{"watch jobs"}})
		f.Add(kubernetestest.Seed{})
		var notes []string
		p, err := kubernetes.Type().Open(t.Context(), providers.Profile{Name: "prod", Type: kubernetes.TypeName, Settings: kubernetestest.Settings(t, base)},
			providers.Deps{Net: netOf(f), Notice: func(text string) { notes = append(notes, text) }})
		require.NoError(t, err)
		c, _ := p.(*kubernetes.Client)
		defer c.Close()
		for range 60 {
			require.Len(t, live(t, c, refresh), 1)
		}
		refused := func() (n int) {
			for _, call := range f.Calls("GET /apis/batch/v1/namespaces/{ns}/jobs") {
				n += strings.Count(call.URL, "watch=")
			}
			return n
		}
		assert.Equal(t, 120, looksAt(f).lists)
		assert.Equal(t, 1, refused())
		require.Len(t, notes, 1)
		assert.Contains(t, notes[0], `prod: watch jobs: HTTP 403`)
		assert.Contains(t, notes[0], "each refresh reads the whole list")
		live(t, c, 10*time.Minute)
		assert.Equal(t, 2, refused(), "it may be allowed meanwhile")
		assert.Len(t, notes, 1)
	})
}

// An incomplete list begins no view.
func TestIncompleteListsBeginNoView(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o    kubernetestest.Options
		kind fault.Kind
	}{
		"a kind is refused":          {kubernetestest.Options{Refuse: []string{"list jobs"}}, fault.KindAuth},
		"pages of several moments":   {kubernetestest.Options{PageSize: 1, Moves: true}, fault.KindUnavailable},
		"a list that was read twice": {kubernetestest.Options{PageSize: 1, Expired: 1}, fault.KindNone},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f, c := newView(t, tc.o)
			f.Add(kubernetestest.Seed{})
			f.Add(kubernetestest.Seed{})
			_, err := listed(t.Context(), c, providers.Query{Live: true})
			synctest.Wait()
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Zero(t, looksAt(f).watches)
		})
	}
	bubble.Run(t, "a client that is closed", func(t *testing.T) {
		f, c := newView(t, kubernetestest.Options{})
		f.Add(kubernetestest.Seed{})
		for _, err := range c.List(t.Context(), providers.Query{Live: true}) {
			require.NoError(t, err)
			c.Close()
		}
		synctest.Wait()
		assert.Zero(t, looksAt(f).watches)
	})
	bubble.Run(t, "a reader that stops", func(t *testing.T) {
		f, c := newView(t, kubernetestest.Options{})
		f.Add(kubernetestest.Seed{})
		f.Add(kubernetestest.Seed{Kind: "job"})
		for _, err := range c.List(t.Context(), providers.Query{Live: true}) {
			require.NoError(t, err)
			break
		}
		synctest.Wait()
		assert.Zero(t, looksAt(f).watches)
	})
}

// Decisions read the API, also while a view exists.
func TestListsWithoutLiveReadTheAPI(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, c := newView(t, kubernetestest.Options{})
		f.Add(kubernetestest.Seed{})
		live(t, c, 0)
		require.Len(t, live(t, c, refresh), 1)
		require.Equal(t, 4, looksAt(f).lists)
		f.Change(func(o *kubernetestest.Options) { o.SilentWatches = true })
		f.Add(kubernetestest.Seed{})
		assert.Len(t, live(t, c, refresh), 1, "the watch is late")
		rows, err := listed(t.Context(), c, providers.Query{})
		require.NoError(t, err)
		assert.Len(t, rows, 2)
		assert.Equal(t, 8, looksAt(f).lists)
	})
}

// A view that nothing uses ends, and so does that of a client that is closed: no request and no goroutine is left.
func TestEndsOfAView(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *kubernetes.Client){
		"closed": (*kubernetes.Client).Close,
		"unused": func(*kubernetes.Client) { pass(5*time.Minute + time.Second) },
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f, c := newView(t, kubernetestest.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			_, err := listed(ctx, c, providers.Query{Live: true})
			require.NoError(t, err)
			cancel()
			pass(4 * time.Minute)
			require.Equal(t, 4, f.Watches(), "they do not end with the list")
			require.Equal(t, 4, strings.Count(stacks(), "(*Client).watch("))
			end(c)
			assert.NotContains(t, stacks(), "(*Client).watch(")
			synctest.Wait()
			assert.Zero(t, f.Watches())
			live(t, c, 0)
			live(t, c, refresh)
			if name == "closed" {
				assert.Zero(t, f.Watches(), "nothing begins after Close")
			} else {
				assert.Equal(t, 4, f.Watches())
			}
		})
	}
}

// stacks are the stacks of the goroutines of this bubble.
func stacks() string {
	text := make([]byte, 16<<20)
	all := strings.Split(string(text[:runtime.Stack(text, true)]), "\n\n")
	_, own, _ := strings.Cut(strings.Split(all[0], "]")[0], "synctest bubble ")
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return !strings.Contains(strings.Split(s, "]")[0], "synctest bubble "+own) }), "\n\n")
}

// After each of some hundred changes, the view has the rows of a list of the API.
func TestViewsHaveTheRowsOfTheList(t *testing.T) {
	t.Parallel()
	seeds := uint64(1)
	if tiertest.IsLong("two more random worlds of a view: one is in the gate") {
		seeds = 3
	}
	for seed := range seeds {
		bubble.Run(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			f, c := newView(t, kubernetestest.Options{PageSize: 7})
			settings := kubernetestest.Settings(t, base)
			settings["label"] = "team"
			team := open(t, settings, netOf(f))
			defer team.Close()
			asking := dialed(t, f)
			defer asking.Close()
			plain := map[*kubernetes.Client]*kubernetes.Client{c: asking, team: open(t, settings, netOf(f))}
			defer plain[team].Close()
			w := &world{f: f, random: rand.New(rand.NewPCG(seed, 1))}
			for range 300 {
				w.step()
				pass(100 * time.Millisecond)
				for viewed, asked := range plain {
					want, err := listed(t.Context(), asked, providers.Query{})
					require.NoError(t, err)
					got, err := listed(t.Context(), viewed, providers.Query{Live: true})
					require.NoError(t, err)
					require.Equal(t, want, got, "after %v", w.last)
				}
			}
			assert.Equal(t, 8, looksAt(f).watches, "one for each kind and client, for all steps")
			assert.Greater(t, len(w.ids), 20, "enough was left to compare")
		})
	}
}

// world changes a cluster at random.
type world struct {
	f      *kubernetestest.Fake
	random *rand.Rand
	ids    []string // that may exist
	owners []string // claims and pools
	last   string
}

func (w *world) one(words ...string) string { return words[w.random.IntN(len(words))] }

func (w *world) seed() kubernetestest.Seed {
	s := kubernetestest.Seed{Phase: w.one("Running", "Pending", "Succeeded", "Failed", "Frozen"), Suspended: w.random.IntN(5) == 0, Code: w.random.IntN(3)}
	if w.random.IntN(2) == 0 {
		s.Labels = map[string]string{"team": w.one("a", "b")}
	}
	if s.Phase == "Pending" {
		s.Waiting = "ImagePullBackOff"
	}
	return s
}

func (w *world) step() {
	if len(w.ids) < 30 || w.random.IntN(3) == 0 {
		s := w.seed()
		s.Kind, s.NoPod = w.one("pod", "job", "sandbox", "sandbox"), w.random.IntN(6) == 0
		switch {
		case w.random.IntN(20) == 0:
			w.owners = append(w.owners, w.f.Add(kubernetestest.Seed{Kind: w.one("claim", "pool")}))
		case s.Kind == "sandbox" && len(w.owners) > 0 && w.random.IntN(3) == 0:
			s.Owner = w.one(w.owners...)
		}
		id := w.f.Add(s)
		w.last, w.ids = "add "+id, append(w.ids, id)
		return
	}
	at := w.random.IntN(len(w.ids))
	id := w.ids[at]
	switch w.random.IntN(4) {
	case 0:
		w.last = "expire " + id
		w.f.Expire(id)
		w.ids = slices.Delete(w.ids, at, at+1)
	case 1:
		w.last = "replace " + id
		w.ids[at] = w.f.Replace(id)
	default:
		w.last = "update " + id
		w.f.Update(id, w.seed())
	}
}

func TestWatchRights(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, Refuse: []string{"watch pods"}})
	c := dialed(t, f)
	defer c.Close()
	for _, check := range c.Check(t.Context()) {
		if check.Check == "rights" {
			assert.Contains(t, check.Message, "watch pods (sbx ls --watch)")
		}
	}
}
