// Package stagedfleet stages an incident on fakes of three providers' APIs: 300 sandboxes, of which 26
// are provably stuck, and 10 look stuck and cannot be judged.
//
// It is for tests, measurements and demonstrations: the program cmd/staged-incident serves the same
// fleet on loopback. Every sandbox of a seed is the same in each run, apart from the time of the start.
package stagedfleet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/monotasktest"
	"sbx/internal/testkit/wiretest"
)

// Role is the behaviour of a sandbox.
type Role string

// The roles. Stuck and Unjudged are the expected findings.
const (
	Working      Role = "working"      // old enough to be stuck, and its figures show work
	Young        Role = "young"        // younger than any limit
	Paused       Role = "paused"       // by its owner
	BusyLoop     Role = "busy_loop"    // both cores at their limit for more than an hour
	Leak         Role = "leak"         // memory near its limit, growing, and nothing else moves
	NoAnswer     Role = "no_answer"    // the VM runs, and it does not respond
	Provisioning Role = "provisioning" // not started after half an hour
	Waiting      Role = "waiting"      // an idle processor and a live process: hung, or waiting for a model
)

// Stuck says that the role is provably stuck.
func (r Role) Stuck() bool {
	return slices.Contains([]Role{BusyLoop, Leak, NoAnswer, Provisioning}, r)
}

// Unjudged says that no sign shows whether a sandbox of the role works.
func (r Role) Unjudged() bool { return r == Waiting }

// Options shape a fleet; the zero value is the default incident.
type Options struct {
	Seed uint64 // of ages, teams and tasks; 0 = 1
	// Idle omits the processes in the VMs, which are real ones. Then the process list of a VM is
	// empty. Few omits them where the figures alone decide: a test need not start and end 200.
	Idle, Few bool
	Latency   time.Duration // of every answer
}

// Member is one sandbox of the fleet.
type Member struct {
	Ref  sandbox.Ref
	Role Role
	Task string // in the provider's metadata; "" = none
}

// Fleet is the staged fleet. Its servers end with the test.
type Fleet struct {
	E2B, Novita *e2btest.Fake
	MonoTask    *monotasktest.Fake
	Members     []Member

	random *rand.Rand
	now    time.Time
	o      Options
}

type roleCount struct {
	role  Role
	count int
}

// roleCounts are the members at each provider: 300, of which 26 are stuck and 10 cannot be judged.
// MonoTask has current figures only, so only a start that hangs can be proved there; otherwise
// the age decides, as its profile says. Novita's quota is nearly full: 48 of 50.
func roleCounts() (e2b, novita, monotask []roleCount) {
	e2b = []roleCount{{Working, 150}, {Young, 62}, {Paused, 5}, {BusyLoop, 9}, {Leak, 4}, {NoAnswer, 4}, {Waiting, 7}}
	novita = []roleCount{{Working, 30}, {Young, 9}, {BusyLoop, 3}, {Leak, 2}, {NoAnswer, 1}, {Waiting, 3}}
	monotask = []roleCount{{Working, 5}, {Young, 3}, {Provisioning, 3}}
	return e2b, novita, monotask
}

// New makes the fleet.
func New(t wiretest.T, o Options) *Fleet {
	wire := wiretest.Options{Latency: o.Latency}
	seed := max(o.Seed, 1)
	f := &Fleet{
		E2B:      e2btest.New(t, e2btest.Options{Wire: wire}),
		Novita:   e2btest.New(t, e2btest.Options{Wire: wire, Novita: true, Capacity: 50}),
		MonoTask: monotasktest.New(t, monotasktest.Options{Wire: wire}),
		random:   rand.New(rand.NewPCG(seed, seed)), //nolint:gosec // the same fleet in every run
		now:      time.Now(), o: o,
	}
	e2b, novita, monotask := roleCounts()
	f.addVMs("e2b", f.E2B, e2b)
	f.addVMs("novita", f.Novita, novita)
	f.addWorkers("monotask", f.MonoTask, monotask)
	return f
}

// Listen serves the three APIs on loopback and returns the environment that enables their profiles.
func (f *Fleet) Listen() map[string]string {
	env := map[string]string{}
	maps.Copy(env, f.E2B.Environment(f.E2B.Listen()))
	maps.Copy(env, f.Novita.Environment(f.Novita.Listen()))
	maps.Copy(env, f.MonoTask.Environment(f.MonoTask.Listen()))
	return env
}

// Refs are the sandboxes with the chosen roles, sorted.
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

func (f *Fleet) randomAge(r Role) time.Duration {
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

func (f *Fleet) randomTask() (task, agent, team string) {
	agents, teams := []string{"coder", "reviewer", "planner"}, []string{"search", "growth", "billing"}
	return fmt.Sprintf("T-%d", 4000+len(f.Members)), agents[f.random.IntN(len(agents))], teams[f.random.IntN(len(teams))]
}

// addVMs adds members to an API of E2B's kind.
func (f *Fleet) addVMs(profile string, fake *e2btest.Fake, counts []roleCount) {
	for _, c := range counts {
		for range c.count {
			task, agent, team := f.randomTask()
			id := fake.Add(e2btest.Seed{
				Metadata: map[string]string{"task_id": task, "agent_type": agent, "team": team},
				Paused:   c.role == Paused, Age: f.randomAge(c.role), Left: 20 * time.Hour,
			})
			fake.Show(id, f.randomFigures(c.role))
			if c.role != Paused && !f.o.Idle && (!f.o.Few || c.role.Stuck() || c.role.Unjudged()) {
				fake.Run(id, "sleep", "86400")
			}
			if c.role == NoAnswer {
				fake.CloseEnvd(id)
			}
			f.Members = append(f.Members, Member{sandbox.Ref{Provider: profile, ID: id}, c.role, task})
		}
	}
}

func (f *Fleet) randomFigures(r Role) e2btest.Figures {
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

// addWorkers adds members to MonoTask's API, which has task and agent type in its records.
func (f *Fleet) addWorkers(profile string, fake *monotasktest.Fake, counts []roleCount) {
	for _, c := range counts {
		for range c.count {
			task, agent, _ := f.randomTask()
			box := monotasktest.Box{
				TaskID: task, AgentType: agent, Created: f.now.Add(-f.randomAge(c.role)),
				Resources: &monotasktest.Resources{CPUPercent: 20, MemoryMB: 130, OperationsPerSecond: 8},
			}
			if c.role == Provisioning {
				box.Status, box.Resources = "provisioning", &monotasktest.Resources{}
			}
			f.Members = append(f.Members, Member{sandbox.Ref{Provider: profile, ID: fake.Add(box)}, c.role, task})
		}
	}
}
