package stagedfleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"sbx/internal/providers/e2b/e2btest"
	"sbx/internal/providers/monotask/monotasktest"
	"sbx/internal/providers/wiretest"
	"sbx/internal/sandbox"
)

// Role is what a sandbox of the stage does.
type Role string

// The roles. Stuck and Unjudged say what a judgement must find.
const (
	Working      Role = "working"      // old enough to be stuck, and its figures show work
	Young        Role = "young"        // younger than any limit
	Paused       Role = "paused"       // by its owner
	BusyLoop     Role = "busy_loop"    // both cores at their limit for more than an hour
	Leak         Role = "leak"         // memory near its limit, growing, and nothing else moves
	NoAnswer     Role = "no_answer"    // the VM runs, and nothing inside answers
	Provisioning Role = "provisioning" // not started after half an hour
	Waiting      Role = "waiting"      // an idle processor and a live process: hung, or waiting for a model
)

// Stuck says that the role can be proved to be stuck.
func (r Role) Stuck() bool {
	return slices.Contains([]Role{BusyLoop, Leak, NoAnswer, Provisioning}, r)
}

// Unjudged says that nothing tells whether a sandbox of the role works.
func (r Role) Unjudged() bool { return r == Waiting }

// Options shape a stage; the zero value is the incident of every run.
type Options struct {
	Seed uint64 // of ages, teams and tasks; 0 = 1
	// Idle leaves out the processes in the VMs, which cost a real one each. Then the
	// process list of a VM is empty.
	Idle    bool
	Latency time.Duration // of every answer
}

// Member is one sandbox of the stage.
type Member struct {
	Ref  sandbox.Ref
	Role Role
	Task string // as its creator wrote it into the provider's metadata; "" = none
}

// Fleet is the stage. Its servers end with the test.
type Fleet struct {
	E2B, Novita *e2btest.Fake
	MonoTask    *monotasktest.Fake
	Members     []Member

	random *rand.Rand
	now    time.Time
	o      Options
}

// cast says how many play a role at one provider.
type cast struct {
	role  Role
	count int
}

// casts are the members of each provider: 300, of which 26 are stuck and 10 cannot be judged.
// MonoTask tells figures of the moment alone, so that nothing but a start that never ends
// can be proved there; what it cannot tell is judged by age, as its profile says. Novita's
// quota is nearly full: 48 of 50.
func casts() (e2b, novita, monotask []cast) {
	e2b = []cast{{Working, 150}, {Young, 62}, {Paused, 5}, {BusyLoop, 9}, {Leak, 4}, {NoAnswer, 4}, {Waiting, 7}}
	novita = []cast{{Working, 30}, {Young, 9}, {BusyLoop, 3}, {Leak, 2}, {NoAnswer, 1}, {Waiting, 3}}
	monotask = []cast{{Working, 5}, {Young, 3}, {Provisioning, 3}}
	return e2b, novita, monotask
}

// New sets the stage.
func New(t wiretest.T, o Options) *Fleet {
	wire := wiretest.Options{Latency: o.Latency}
	seed := max(o.Seed, 1)
	f := &Fleet{
		E2B:      e2btest.New(t, e2btest.Options{Wire: wire}),
		Novita:   e2btest.New(t, e2btest.Options{Wire: wire, Novita: true, Capacity: 50}),
		MonoTask: monotasktest.New(t, monotasktest.Options{Wire: wire}),
		random:   rand.New(rand.NewPCG(seed, seed)), //nolint:gosec // the same stage in every run
		now:      time.Now(), o: o,
	}
	e2b, novita, monotask := casts()
	f.vms("e2b", f.E2B, e2b)
	f.vms("novita", f.Novita, novita)
	f.workers("monotask", f.MonoTask, monotask)
	return f
}

// Listen serves the three APIs on loopback, and gives the environment that switches
// their profiles on.
func (f *Fleet) Listen() map[string]string {
	env := map[string]string{}
	maps.Copy(env, f.E2B.Environment(f.E2B.Listen()))
	maps.Copy(env, f.Novita.Environment(f.Novita.Listen()))
	maps.Copy(env, f.MonoTask.Environment(f.MonoTask.Listen()))
	return env
}

// Refs are the sandboxes whose role is chosen, sorted.
func (f *Fleet) Refs(chosen func(Role) bool) []string {
	var refs []string
	for _, m := range f.Members {
		if chosen(m.Role) {
			refs = append(refs, m.Ref.String())
		}
	}
	slices.Sort(refs)
	return refs
}

// age is how old a sandbox of a role is.
func (f *Fleet) age(r Role) time.Duration {
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(f.random.Int64N(int64(most-least))).Truncate(time.Second)
	}
	switch r {
	case Young:
		return between(20*time.Second, 4*time.Minute)
	case Provisioning:
		return between(25*time.Minute, 45*time.Minute)
	case Working, Paused:
		return between(15*time.Minute, 90*time.Minute)
	case BusyLoop, Leak, NoAnswer, Waiting:
	}
	return between(time.Hour, 14*time.Hour)
}

// task invents who works in a sandbox, as people of an SDK write it down.
func (f *Fleet) task() (task, agent, team string) {
	agents, teams := []string{"coder", "reviewer", "planner"}, []string{"search", "growth", "billing"}
	return fmt.Sprintf("T-%d", 4000+len(f.Members)), agents[f.random.IntN(len(agents))], teams[f.random.IntN(len(teams))]
}

// vms puts members into an API of E2B's kind.
func (f *Fleet) vms(profile string, fake *e2btest.Fake, casts []cast) {
	for _, c := range casts {
		for range c.count {
			task, agent, team := f.task()
			id := fake.Add(e2btest.Seed{
				Metadata: map[string]string{"task_id": task, "agent_type": agent, "team": team},
				Paused:   c.role == Paused, Age: f.age(c.role), Left: 20 * time.Hour,
			})
			fake.Show(id, f.figures(c.role))
			if c.role != Paused && !f.o.Idle {
				fake.Run(id, "sleep", "86400")
			}
			if c.role == NoAnswer {
				fake.CloseEnvd(id)
			}
			f.Members = append(f.Members, Member{sandbox.Ref{Provider: profile, ID: id}, c.role, task})
		}
	}
}

// figures are those of a VM.
func (f *Fleet) figures(r Role) e2btest.Figures {
	some := func(least, most float64) float64 { return least + f.random.Float64()*(most-least) }
	switch r {
	case BusyLoop:
		return e2btest.Figures{CPUPercent: some(98, 100), MemoryMiB: some(120, 200)}
	case Leak: // full in half an hour
		return e2btest.Figures{CPUPercent: some(0.1, 0.3), MemoryMiB: some(7700, 7800), MemoryMiBPerMinute: some(12, 13), MemoryTotalMiB: 8192}
	case NoAnswer, Waiting, Paused:
		return e2btest.Figures{CPUPercent: some(0, 0.2), MemoryMiB: some(120, 200)}
	case Working, Young, Provisioning:
	}
	return e2btest.Figures{CPUPercent: some(6, 40), MemoryMiB: some(120, 300)}
}

// workers puts members into MonoTask's API, which knows task and agent by itself.
func (f *Fleet) workers(profile string, fake *monotasktest.Fake, casts []cast) {
	for _, c := range casts {
		for range c.count {
			task, agent, _ := f.task()
			box := monotasktest.Box{
				TaskID: task, AgentType: agent, Created: f.now.Add(-f.age(c.role)),
				Resources: &monotasktest.Resources{CPUPercent: 20, MemoryMB: 130, OperationsPerSecond: 8},
			}
			if c.role == Provisioning {
				box.Status, box.Resources = "provisioning", &monotasktest.Resources{}
			}
			f.Members = append(f.Members, Member{sandbox.Ref{Provider: profile, ID: fake.Add(box)}, c.role, task})
		}
	}
}
