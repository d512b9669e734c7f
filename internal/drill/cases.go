package drill

import (
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Case is one staged sandbox and its result.
type Case struct {
	Name       string
	About      string // what is staged, for people
	Ref        sandbox.Ref
	Cause      sandbox.Cause // the cause by triage
	Expected   sandbox.Cause
	Confidence sandbox.Confidence
	Evidence   []sandbox.Evidence
	Outcome    sandbox.Outcome // of its ending; for the healthy one, of the clean-up
	OK         bool
	Why        string // the difference from the expected result
}

// scene is a staged case with its expected result.
type scene struct {
	name     string
	about    string
	program  string
	memory   int64
	orphan   bool // without task and agent
	healthy  bool // it must survive
	expected func(sandbox.Enforcement) sandbox.Cause
}

func allScenes() []scene {
	always := func(c sandbox.Cause) func(sandbox.Enforcement) sandbox.Cause {
		return func(sandbox.Enforcement) sandbox.Cause { return c }
	}
	return []scene{
		{name: "busy", about: "an agent in an endless loop", program: "busy", expected: always(sandbox.CauseBusyLoop)},
		{name: "hung", about: "waits for an API that never answers", program: "hung", expected: always(sandbox.CauseHungIO)},
		{name: "leak", about: "leaks until its memory limit", program: "leak", memory: 64 * sandbox.MiB, expected: leakCause},
		{name: "silent", about: "says nothing and does nothing", program: "silent", expected: always(sandbox.CauseSilent)},
		{name: "orphan", about: "works for no known task", program: "steady", orphan: true, expected: always(sandbox.CauseOrphan)},
		{name: "healthy", about: "is old and at work: must survive", program: "steady", healthy: true, expected: always(sandbox.CauseNone)},
	}
}

// leakCause is the expected cause of a leak: an OOM by the kernel's counter where the
// kernel enforces the limit, else the watchdog.
func leakCause(e sandbox.Enforcement) sandbox.Cause {
	if e.Hard() {
		return sandbox.CauseOOM
	}
	return sandbox.CauseMemoryWatchdog
}

// Names lists the scenarios.
func Names() []string {
	var names []string
	for _, s := range allScenes() {
		names = append(names, s.name)
	}
	return names
}

func chooseScenes(names []string) ([]scene, error) {
	if len(names) == 0 {
		return allScenes(), nil
	}
	var chosen []scene
	for _, name := range names {
		found := false
		for _, s := range allScenes() {
			if s.name == name {
				chosen, found = append(chosen, s), true
			}
		}
		if !found {
			return nil, fault.Usage("no scenario %q", name).WithHint("there are: %s", strings.Join(Names(), ", "))
		}
	}
	return chosen, nil
}

// drillLabel is the label of everything that a drill stages; its value is the run.
const drillLabel = "sbx/drill"

// maxLifetime bounds the life of staged sandboxes when the drill itself is killed.
const maxLifetime = 5 * time.Minute

func (s scene) sandboxSpec(run, binary string) sandbox.Spec {
	spec := sandbox.Spec{
		Name:        "drill-" + s.name,
		Command:     []string{binary, ProgramArg, s.program},
		Labels:      map[string]string{drillLabel: run},
		MemoryBytes: s.memory,
		TTL:         maxLifetime,
	}
	if !s.orphan {
		spec.TaskID, spec.AgentType = "t-drill-"+s.name, "drill"
	}
	return spec
}
