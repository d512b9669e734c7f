//go:build unix

package cli_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sbx/internal/poll"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/dockertest"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/monotasktest"
	"sbx/internal/testkit/omoiostest"
	"sbx/internal/testkit/stagedfleet"
	"sbx/internal/testkit/verceltest"
	"sbx/internal/testkit/wiretest"
)

// world is a fake of one provider's API, as scripts use it.
type world interface {
	Listen() string
	Break(faults ...wiretest.Fault)
	Heal()
	Calls(route string) []wiretest.Call
	Changes() int
	// Environment is what switches a profile on that reaches an address.
	Environment(address string) map[string]string
}

// inhabited is a world with the ways to set its stage: the words that a script
// may put behind `remote NAME`.
type inhabited struct {
	world

	words map[string]func(args []string) string // gives a value for the variable BOX, or ""
}

// remotes are the worlds of one script.
type remotes struct {
	t      testscript.T
	mu     sync.Mutex
	failed bool
	ends   []func()
	worlds map[string]inhabited
	stage  *stagedfleet.Fleet
}

// remotesKey is where a script keeps them.
type remotesKey struct{}

// prepare lets a script have worlds, which fail it where they are asked what
// they do not know.
func prepare(e *testscript.Env) {
	r := &remotes{t: e.T(), worlds: map[string]inhabited{}}
	e.Values[remotesKey{}] = r
	e.Defer(func() {
		for _, end := range slices.Backward(r.ends) {
			end()
		}
		if r.failed {
			r.t.FailNow()
		}
	})
}

// Helper has nothing to do: a script has lines of its own.
func (r *remotes) Helper() {}

// Errorf fails the script when it is over: fakes run beside it.
func (r *remotes) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.t.Log(fmt.Sprintf(format, args...))
}

// FailNow fails the script.
func (r *remotes) FailNow() { r.t.FailNow() }

// Cleanup keeps f for the end of the script.
func (r *remotes) Cleanup(f func()) { r.ends = append(r.ends, f) }

// remote starts a provider's fake or sets its stage:
//
//	remote e2b                       start it and put it into the environment
//	remote e2b seed [paused] ...     a sandbox; its id is in $BOX
//	remote e2b break ROUTE TROUBLE   status=500 body=X hang html garbage late times=N after=N past=ROUTE delay=D
//	remote e2b heal
//	remote e2b quiet                 no life-changing call has come since the last quiet
//	remote e2b called ROUTE N        that many calls come, a program in the background has time for them
//	remote e2b repeats ROUTE N       at most so many addresses were called again
func remote(ts *testscript.TestScript, neg bool, args []string) {
	r, ok := ts.Value(remotesKey{}).(*remotes)
	if !ok || neg || len(args) == 0 {
		ts.Fatalf("usage: remote NAME [WORD...]")
	}
	w, known := r.worlds[args[0]]
	if !known {
		w = settle(ts, r, args[0])
		address := w.Listen()
		for key, value := range w.Environment(address) {
			ts.Setenv(key, value)
		}
		ts.Setenv(strings.ToUpper(args[0])+"_ADDRESS", address)
		r.worlds[args[0]] = w
	}
	if len(args) == 1 {
		return
	}
	if word, own := w.words[args[1]]; own {
		if box := word(args[2:]); box != "" {
			ts.Setenv("BOX", box)
		}
		return
	}
	act(ts, w, args[1], args[2:])
}

// callsUpTo counts the calls of a route once they are want or the time for them is over.
func callsUpTo(want int, route string, w inhabited) int {
	deadline, pauses := time.Now().Add(callsLimit), poll.NewBackoff(10*time.Millisecond, 300*time.Millisecond)
	for {
		got := len(w.Calls(route))
		if got >= want || time.Now().After(deadline) {
			return got
		}
		<-pauses.After()
	}
}

// callsLimit is how long the calls of a program that runs in the background may take to come.
const callsLimit = time.Minute

// act does what every world can.
func act(ts *testscript.TestScript, w inhabited, word string, args []string) {
	switch word {
	case "break":
		w.Break(trouble(ts, args))
	case "heal":
		w.Heal()
	case "called":
		want, err := strconv.Atoi(args[1])
		ts.Check(err)
		if got := callsUpTo(want, args[0], w); got != want {
			ts.Fatalf("%s was called %d times, want %d", args[0], got, want)
		}
	case "repeats":
		most, err := strconv.Atoi(args[1])
		ts.Check(err)
		times := map[string]int{}
		for _, c := range w.Calls(args[0]) {
			times[c.URL]++
		}
		maps.DeleteFunc(times, func(_ string, n int) bool { return n == 1 })
		if len(times) > most {
			ts.Fatalf("%s was called again for %v, at most %d may be", args[0], times, most)
		}
	case "quiet":
		for _, c := range w.Calls("") {
			if c.At.IsZero() {
				ts.Fatalf("a call without a time")
			}
		}
		if n := w.Changes(); n != 0 {
			ts.Fatalf("%d calls changed a sandbox's life", n)
		}
	default:
		ts.Fatalf("remote knows no word %s", word)
	}
}

// trouble reads a fault.
func trouble(ts *testscript.TestScript, args []string) wiretest.Fault {
	f := wiretest.Fault{Route: args[0]}
	for _, word := range args[1:] {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "status":
			f.Status, f.Body = n, `{"message":"planted"}`
		case "body":
			f.Body = value
		case "hang":
			f.Trouble = wiretest.TroubleHang
		case "html":
			f.Status, f.Header, f.Body = http.StatusOK, map[string]string{"Content-Type": "text/html"}, "<html>sign in</html>"
		case "garbage":
			f.Status, f.Body = http.StatusOK, "][ no json"
		case "late":
			f.Late = true
		case "times":
			f.Times = n
		case "after":
			f.After = n
		case "past":
			f.Past = value
		case "delay":
			delay, err := time.ParseDuration(value)
			ts.Check(err)
			f.Delay = delay
		default:
			ts.Fatalf("break knows no %s", key)
		}
	}
	return f
}

// settle makes the world of a provider.
func settle(ts *testscript.TestScript, r *remotes, name string) inhabited {
	makers := map[string]func(*remotes) inhabited{
		"e2b":     func(r *remotes) inhabited { return e2bWorld(e2btest.New(r, e2btest.Options{})) },
		"novita":  func(r *remotes) inhabited { return e2bWorld(e2btest.New(r, e2btest.Options{Novita: true})) },
		"daytona": func(r *remotes) inhabited { return daytonaWorld(daytonatest.New(r, daytonatest.Options{})) },
		"docker":  func(r *remotes) inhabited { return dockerWorld(dockertest.New(r, dockertest.Options{})) },
		"kubernetes": func(r *remotes) inhabited {
			return kubernetesWorld(kubernetestest.New(r, kubernetestest.Options{}), r)
		},
		"vercel":   func(r *remotes) inhabited { return vercelWorld(verceltest.New(r, verceltest.Options{})) },
		"monotask": func(r *remotes) inhabited { return monotaskWorld(monotasktest.New(r, monotasktest.Options{})) },
		"omoios":   func(r *remotes) inhabited { return omoiosWorld(omoiostest.New(r, omoiostest.Options{})) },
	}
	maker, ok := makers[name]
	if !ok {
		ts.Fatalf("there is no world %s, only %v", name, slices.Sorted(maps.Keys(makers)))
	}
	return maker(r)
}

// ago reads age=10m out of words; 0 without.
func ago(args []string) time.Duration {
	for _, word := range args {
		if text, ok := strings.CutPrefix(word, "age="); ok {
			d, _ := time.ParseDuration(text)
			return d
		}
	}
	return 0
}

func e2bWorld(f *e2btest.Fake) inhabited {
	return inhabited{f, map[string]func([]string) string{
		"seed": func(args []string) string {
			return f.Add(e2btest.Seed{Paused: slices.Contains(args, "paused"), Age: ago(args), Logs: []string{"process_start", "Error: connect ETIMEDOUT 10.0.0.1:443"}})
		},
		"fill": func(args []string) string {
			n, _ := strconv.Atoi(args[0])
			for range n {
				f.Add(e2btest.Seed{Age: time.Hour})
			}
			return ""
		},
		"ghost": func([]string) string {
			f.Change(func(o *e2btest.Options) { o.HostFor = e2btest.Forever })
			return ""
		},
		"deaf": func([]string) string { f.Change(func(o *e2btest.Options) { o.KeepsAlive = true }); return "" },
		"honest": func([]string) string {
			f.Change(func(o *e2btest.Options) { o.HostFor, o.KeepsAlive = 0, false })
			return ""
		},
		"closed": func(args []string) string { f.CloseEnvd(args[0]); return "" },
		"runs":   func(args []string) string { f.Run(args[0], "sh", "-c", strings.Join(args[1:], " ")); return "" },
		"uses": func(args []string) string {
			percent, _ := strconv.ParseFloat(args[1], 64)
			f.Use(args[0], percent)
			return ""
		},
	}}
}

// source is the world of a control plane, which runs nothing.
type source struct{ *omoiostest.Fake }

func (source) Environment(address string) map[string]string {
	return map[string]string{"OMOIOS_URL": address, "OMOIOS_TOKEN": omoiostest.Token}
}

func omoiosWorld(f *omoiostest.Fake) inhabited {
	return inhabited{source{f}, map[string]func([]string) string{
		"works": func(args []string) string {
			at := time.Now().Add(-ago(args))
			f.Add(
				omoiostest.Event{Sandbox: args[0], Type: "agent.tool_use", Data: map[string]any{"tool": "Bash"}, At: at},
				omoiostest.Event{Sandbox: args[0], Type: "agent.heartbeat"},
			)
			return ""
		},
		"waits": func(args []string) string {
			f.Add(omoiostest.Event{Sandbox: args[0], Type: "agent.waiting", At: time.Now().Add(-ago(args))})
			return ""
		},
		"task": func(args []string) string {
			f.AddTask(omoiostest.Task{ID: args[0], Sandbox: args[1], Status: args[2], Created: time.Now().Add(-ago(args))})
			return ""
		},
		"down": func([]string) string {
			f.Change(func(o *omoiostest.Options) { o.DatabaseDown = true })
			return ""
		},
	}}
}

func daytonaWorld(f *daytonatest.Fake) inhabited {
	return inhabited{f, map[string]func([]string) string{
		"seed": func(args []string) string {
			s := daytonatest.Seed{Age: ago(args), Ephemeral: slices.Contains(args, "ephemeral"), Endless: slices.Contains(args, "endless")}
			for _, word := range args {
				if task, ok := strings.CutPrefix(word, "task="); ok { // as OmoiOS's spawner labels it
					s.Labels = map[string]string{"task_id": task, "project": "demo"}
				}
			}
			if slices.Contains(args, "stopped") {
				s.State = "stopped"
			}
			return f.Add(s)
		},
		"rests": func([]string) string {
			f.Change(func(o *daytonatest.Options) { o.Rests = true })
			return ""
		},
		"deaf": func([]string) string { f.Change(func(o *daytonatest.Options) { o.Deaf = true }); return "" },
		"honest": func([]string) string {
			f.Change(func(o *daytonatest.Options) { *o = daytonatest.Options{Now: o.Now, PageSize: o.PageSize} })
			return ""
		},
	}}
}

func dockerWorld(f *dockertest.Fake) inhabited {
	return inhabited{f, map[string]func([]string) string{
		"seed":     func(args []string) string { return f.Add(dockerSeed(args)) },
		"rests":    func([]string) string { f.Change(func(o *dockertest.Options) { o.Rests = true }); return "" },
		"killmain": func(args []string) string { f.Kill(args[0]); return "" },
	}}
}

// cutCommand parts the words of a seed and the command behind --; nil for none.
func cutCommand(args []string) (words, command []string) {
	if at := slices.Index(args, "--"); at >= 0 {
		return args[:at], args[at+1:]
	}
	return args, nil
}

// dockerSeed reads the words of a seed; what stands behind -- runs in it.
func dockerSeed(args []string) dockertest.Seed {
	s := dockertest.Seed{Age: ago(args), OOM: slices.Contains(args, "oom")}
	args, s.Command = cutCommand(args)
	for _, word := range args {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "state":
			s.State = value
		case "code":
			s.Code, _ = strconv.Atoi(value)
		case "name":
			s.Name = value
		case "restart":
			s.Restart = value
		case "error":
			s.Error = value
		}
	}
	return s
}

// clusterWorld is a cluster whose kubeconfig is a file.
type clusterWorld struct {
	*kubernetestest.Fake
	t wiretest.T
}

// Environment names the kubeconfig.
func (c clusterWorld) Environment(address string) map[string]string {
	return map[string]string{"KUBECONFIG": kubernetestest.Config(c.t, address)}
}

func kubernetesWorld(f *kubernetestest.Fake, t wiretest.T) inhabited {
	return inhabited{clusterWorld{f, t}, map[string]func([]string) string{
		"seed": func(args []string) string { return f.Add(clusterSeed(args)) },
		"lostnode": func([]string) string {
			f.Change(func(o *kubernetestest.Options) { o.LostNode = true })
			return ""
		},
		"deny": func(args []string) string {
			f.Change(func(o *kubernetestest.Options) { o.Deny, _ = strconv.Atoi(args[0]) })
			return ""
		},
	}}
}

// clusterSeed reads the words of a seed; what stands behind -- runs in it.
func clusterSeed(args []string) kubernetestest.Seed {
	s := kubernetestest.Seed{Age: ago(args)}
	args, s.Command = cutCommand(args)
	for _, word := range args {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "kind":
			s.Kind = value
		case "name":
			s.Name = value
		case "owner":
			s.Owner = value
		case "replicas":
			s.Replicas, _ = strconv.Atoi(value)
		case "ready":
			s.Ready, _ = strconv.Atoi(value)
		}
	}
	return s
}

func vercelWorld(f *verceltest.Fake) inhabited {
	return inhabited{f, map[string]func([]string) string{
		"seed": func(args []string) string {
			s := verceltest.Seed{Age: ago(args), Persistent: slices.Contains(args, "persistent")}
			if slices.Contains(args, "stopped") {
				s.Status = "stopped"
			}
			return f.Add(s)
		},
		"rests": func([]string) string { f.Change(func(o *verceltest.Options) { o.Rests = true }); return "" },
		"slow": func([]string) string {
			f.Change(func(o *verceltest.Options) { o.StopFor = verceltest.Forever })
			return ""
		},
	}}
}

func monotaskWorld(f *monotasktest.Fake) inhabited {
	return inhabited{f, map[string]func([]string) string{
		"seed": func(args []string) string { return f.Add(monotaskBox(args)) },
		"ends": func(args []string) string { f.End(args[0]); return "" },
		"slow": func([]string) string {
			f.Change(func(o *monotasktest.Options) { o.EndFor = monotasktest.Forever })
			return ""
		},
		"lists":     func([]string) string { f.Change(func(o *monotasktest.Options) { o.Lists = true }); return "" },
		"keeps":     func([]string) string { f.Change(func(o *monotasktest.Options) { o.Kept = true }); return "" },
		"forgets":   func([]string) string { f.Change(func(o *monotasktest.Options) { o.Forgets = true }); return "" },
		"miscounts": func([]string) string { f.Change(func(o *monotasktest.Options) { o.Miscount = true }); return "" },
		"honest": func([]string) string {
			f.Change(func(o *monotasktest.Options) { *o = monotasktest.Options{Now: o.Now} })
			return ""
		},
	}}
}

// monotaskBox is the sandbox of the words age=30m agent=NAME status=WORD cpu=100 operations=3000 (a
// second) log=LINE; without log it has logged an error.
func monotaskBox(args []string) monotasktest.Box {
	box := monotasktest.Box{AgentType: "IMPLEMENTATION", TaskID: "t-42", Created: time.Now().Add(-ago(args))}
	var lines []any
	figures := func() *monotasktest.Resources {
		if box.Resources == nil {
			box.Resources = &monotasktest.Resources{MemoryMB: 120}
		}
		return box.Resources
	}
	for _, word := range args {
		key, value, _ := strings.Cut(word, "=")
		number, _ := strconv.ParseFloat(value, 64)
		switch key {
		case "agent":
			box.AgentType = value
		case "status":
			box.Status = value
		case "cpu":
			figures().CPUPercent = number
		case "operations":
			figures().OperationsPerSecond = number
		case "log":
			lines = append(lines, map[string]string{"timestamp": box.Created.Add(time.Minute).UTC().Format(time.RFC3339), "level": "info", "message": value})
		}
	}
	if box.Logs = lines; lines == nil {
		box.Logs = []any{map[string]string{"timestamp": "2026-11-20T12:00:00Z", "level": "error", "message": "Error: connect ETIMEDOUT 10.0.0.1:443"}}
	}
	return box
}
