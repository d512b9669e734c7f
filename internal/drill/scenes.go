package drill

import (
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// DefaultRunbook is what a drill runs unless another is chosen.
const DefaultRunbook = triage.StuckRunbook

// staging is how the incident of a runbook is staged.
type staging struct {
	runbook string
	scenes  []scene
	inOrder bool   // one starts when the one before has ended
	about   string // the scene that the run is about; "" = none
}

func allStagings() []staging {
	return []staging{
		{runbook: DefaultRunbook, scenes: stuckScenes()},
		{runbook: "idle-after-completion", scenes: idleScenes()},
		{runbook: "sigkill-137", scenes: pipelineScenes(), inOrder: true, about: "developer"},
	}
}

// Runbooks lists those that a drill can stage.
func Runbooks() []string {
	var ids []string
	for _, s := range allStagings() {
		ids = append(ids, s.runbook)
	}
	return ids
}

// CanStage refuses a runbook that no drill stages.
func CanStage(id string) error {
	_, err := findStaging(id)
	return err
}

// findStaging finds the staging of a runbook.
func findStaging(id string) (staging, error) {
	all := allStagings()
	if i := slices.IndexFunc(all, func(s staging) bool { return s.runbook == id }); i >= 0 {
		return all[i], nil
	}
	return staging{}, fault.Usage("no drill stages the runbook %q", id).WithHint("these can be staged: %s", strings.Join(Runbooks(), ", "))
}

// scene is a staged case with its expected result.
type scene struct {
	name     string
	about    string
	program  string
	fact     string // the name of the evidence that shows best what was staged
	memory   int64
	orphan   bool // without task and agent
	healthy  bool // it must survive
	ends     bool // it ends by itself
	exit     int  // the code with which it ends
	expected func(sandbox.Enforcement) sandbox.Cause
}

func always(c sandbox.Cause) func(sandbox.Enforcement) sandbox.Cause {
	return func(sandbox.Enforcement) sandbox.Cause { return c }
}

func healthyScene() scene {
	return scene{name: "healthy", about: "is old and active: must survive", program: "steady", fact: "silence", healthy: true, expected: always(sandbox.CauseNone)}
}

func stuckScenes() []scene {
	return []scene{
		{name: "busy", about: "an agent in an endless loop", program: "busy", fact: "cpu wanted", expected: always(sandbox.CauseBusyLoop)},
		{name: "hung", about: "waits for an API that never answers", program: "hung", fact: "waits on", expected: always(sandbox.CauseHungIO)},
		{name: "leak", about: "leaks until its memory limit", program: "leak", fact: "oom_kill", memory: 64 * sandbox.MiB, expected: leakCause},
		{name: "silent", about: "writes nothing and does nothing", program: "silent", fact: "silence", expected: always(sandbox.CauseSilent)},
		{name: "orphan", about: "has no known task", program: "steady", orphan: true, expected: always(sandbox.CauseOrphan)},
		healthyScene(),
	}
}

func idleScenes() []scene {
	const about = "has done its task and stays"
	return []scene{
		{name: "idle", about: about, program: "silent", fact: "silence", expected: always(sandbox.CauseSilent)},
		{name: "forgotten", about: about, program: "silent", fact: "silence", expected: always(sandbox.CauseSilent)},
		healthyScene(),
	}
}

// pipelineScenes are five agents, one after the other, of which one is killed for memory (S3-14).
func pipelineScenes() []scene {
	stage := func(name string) scene {
		return scene{name: name, about: "a stage that ends", program: "stage", fact: "exit", ends: true, expected: always(sandbox.CauseNone)}
	}
	killed := scene{
		name: "developer", about: "a stage that needs more memory than it has", program: "leak", fact: "oom_kill", memory: 64 * sandbox.MiB, ends: true,
		exit: 137, expected: leakCause,
	}
	return []scene{stage("analyst"), stage("designer"), killed, stage("tester"), stage("operations")}
}

// leakCause is the expected cause of a leak: an OOM by the kernel's counter where the
// kernel enforces the limit, else the watchdog.
func leakCause(e sandbox.Enforcement) sandbox.Cause {
	if e.Hard() {
		return sandbox.CauseOOM
	}
	return sandbox.CauseMemoryWatchdog
}

// Names lists the scenarios of all runbooks.
func Names() []string {
	var names []string
	for _, st := range allStagings() {
		for _, s := range st.scenes {
			if !slices.Contains(names, s.name) {
				names = append(names, s.name)
			}
		}
	}
	return names
}

// choose leaves the scenes of these names, in their order; without names all stay.
func (st staging) choose(names []string) (staging, error) {
	if len(names) == 0 {
		return st, nil
	}
	var known []string
	for _, s := range st.scenes {
		known = append(known, s.name)
	}
	all := st.scenes
	st.scenes = nil
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return st, fault.Usage("no scenario %q of the runbook %s", name, st.runbook).WithHint("the scenarios are: %s", strings.Join(known, ", "))
		}
		st.scenes = append(st.scenes, all[i])
	}
	if st.about != "" && !slices.Contains(names, st.about) {
		st.about = ""
	}
	return st, nil
}

// drillLabel is the label of everything that a drill stages; its value is the run.
const drillLabel = "sbx/drill"

// The lives of staged sandboxes: those that a drill ends itself are bounded where it is killed and nothing reads
// the provider afterwards.
const (
	maxLifetime  = 5 * time.Minute
	liveLifetime = 30 * time.Minute
	keptLifetime = time.Hour
)

// sandboxSpec is what is created for a scene. It is tied to this process, unless it is kept.
func (s scene) sandboxSpec(run, binary string, life time.Duration, keep bool) sandbox.Spec {
	spec := sandbox.Spec{
		Name:        "drill-" + s.name,
		Command:     []string{binary, ProgramArg, s.program},
		Labels:      map[string]string{drillLabel: run},
		MemoryBytes: s.memory,
		TTL:         life,
		Tied:        !keep,
	}
	if !s.orphan {
		spec.TaskID, spec.AgentType = "t-drill-"+s.name, "drill"
	}
	return spec
}
