// Package drill stages a real incident on the local provider and performs the investigation
// of the "sandbox stuck" runbook on it: sandboxes that loop, hang, leak, fall silent or
// have no owner, and a healthy one that must survive. It classifies each by the rules of
// all other verbs, ends the stuck ones, and proves that nothing is left.
//
// The programs are real processes in real limits, and a wrong verdict makes the drill fail.
// Rules about what is stuck do not belong here; they are in triage.
package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Options are where and what to stage.
type Options struct {
	Fleet     *fleet.Fleet // it has only the local profile
	Profile   string
	Binary    string // this program, which also plays the staged programs
	Scenarios []string
	Keep      bool // keep everything as it is after the investigation
	By        string
	Now       func() time.Time
	// Cleanup tells what is on record of scheduled cleanups; nil = nothing is.
	Cleanup func(ctx context.Context) (string, error)
	Say     func(text string) // progress, one line at a time
}

// Report is the result of a drill.
type Report struct {
	Run         string
	Enforcement sandbox.Enforcement
	Compressed  float64 // how many times faster than the runbook's limits
	Cases       []Case
	Steps       []Step
	LeftBehind  []sandbox.Ref // what still exists and should not
	Kept        bool          // the staged sandboxes were kept, as asked
}

// compression is the factor by which every time limit of the runbook is shortened in a
// drill: ten minutes become five seconds.
const compression = 120

// cleanUpTimeout bounds the clean-up after an interruption.
const cleanUpTimeout = 20 * time.Second

// Run stages the incident, investigates, ends what is stuck and cleans up. The error beside
// a report names what failed; wrong verdicts and leftovers are fault.KindFound.
func Run(ctx context.Context, o Options) (report Report, err error) {
	chosen, err := chooseScenes(o.Scenarios)
	if err != nil {
		return Report{}, err
	}
	d := &drillRun{
		Options: o, thresholds: triage.DefaultThresholds().Scaled(1.0 / compression), matcher: triage.NewMatcher(),
		report: Report{Run: o.Now().UTC().Format("20060102t150405.000"), Compressed: compression, Kept: o.Keep},
	}
	defer func() {
		if !o.Keep || ctx.Err() != nil || err != nil {
			d.report.Kept = false
			err = errors.Join(err, d.cleanUp(ctx))
		}
		report = d.fillReport()
		if err == nil {
			err = d.drillError()
		}
	}()
	if err := d.stageScenes(ctx, chosen); err != nil {
		return d.report, err
	}
	if err := d.investigate(ctx); err != nil {
		return d.report, err
	}
	if o.Keep {
		return d.report, nil
	}
	return d.report, d.endCases(ctx)
}

// drillRun is one run of a drill.
type drillRun struct {
	Options
	thresholds triage.Thresholds
	matcher    *triage.Matcher
	staged     []*stagedCase
	report     Report
}

// stagedCase is one case that is being played.
type stagedCase struct {
	scene   scene
	ref     sandbox.Ref
	last    sandbox.Sandbox // the last read
	signals triage.Signals
	result  Case
}

// stageScenes starts every sandbox concurrently.
func (d *drillRun) stageScenes(ctx context.Context, chosen []scene) error {
	d.Say("staging an incident: " + pluralForm(len(chosen), "sandbox", "sandboxes"))
	type made struct {
		at  int
		s   sandbox.Sandbox
		err error
	}
	results := make(chan made)
	for i, sc := range chosen {
		go func() {
			s, err := d.Fleet.Create(ctx, d.Profile, sc.sandboxSpec(d.report.Run, d.Binary, d.Keep))
			results <- made{i, s, err}
		}()
	}
	byScene := make([]*stagedCase, len(chosen))
	var failed []error
	for range chosen {
		m := <-results
		if m.err != nil {
			failed = append(failed, m.err)
			continue
		}
		sc := chosen[m.at]
		d.report.Enforcement = m.s.Limits.Enforcement
		byScene[m.at] = &stagedCase{
			scene: sc, ref: m.s.Ref(), last: m.s,
			result: Case{Name: sc.name, About: sc.about, Ref: m.s.Ref(), Outcome: sandbox.OutcomeNotAttempted},
		}
	}
	for _, s := range byScene {
		if s != nil {
			d.staged = append(d.staged, s)
		}
	}
	return errors.Join(failed...)
}

// fillReport copies the results of the cases into the report.
func (d *drillRun) fillReport() Report {
	d.report.Cases = nil
	for _, s := range d.staged {
		d.report.Cases = append(d.report.Cases, s.result)
	}
	return d.report
}

func (d *drillRun) drillError() error {
	wrong := 0
	for _, c := range d.report.Cases {
		if !c.OK {
			wrong++
		}
	}
	switch {
	case wrong > 0:
		return fault.New(fault.KindFound, "%d of %d cases have a wrong result", wrong, len(d.report.Cases))
	case len(d.report.LeftBehind) > 0 && !d.Keep:
		return fault.New(fault.KindFound, "%s left behind", pluralForm(len(d.report.LeftBehind), "sandbox", "sandboxes")).
			WithHint("`sbx drill --clean` removes the sandboxes of earlier drills")
	}
	return nil
}

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
		{name: "silent", about: "writes nothing and does nothing", program: "silent", expected: always(sandbox.CauseSilent)},
		{name: "orphan", about: "has no known task", program: "steady", orphan: true, expected: always(sandbox.CauseOrphan)},
		{name: "healthy", about: "is old and active: must survive", program: "steady", healthy: true, expected: always(sandbox.CauseNone)},
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
			return nil, fault.Usage("no scenario %q", name).WithHint("the scenarios are: %s", strings.Join(Names(), ", "))
		}
	}
	return chosen, nil
}

// drillLabel is the label of everything that a drill stages; its value is the run.
const drillLabel = "sbx/drill"

// The lives of staged sandboxes: those that a drill ends itself are bounded where it is killed.
const (
	maxLifetime  = 5 * time.Minute
	keptLifetime = time.Hour
)

func (s scene) sandboxSpec(run, binary string, keep bool) sandbox.Spec {
	life := maxLifetime
	if keep {
		life = keptLifetime
	}
	spec := sandbox.Spec{
		Name:        "drill-" + s.name,
		Command:     []string{binary, ProgramArg, s.program},
		Labels:      map[string]string{drillLabel: run},
		MemoryBytes: s.memory,
		TTL:         life,
	}
	if !s.orphan {
		spec.TaskID, spec.AgentType = "t-drill-"+s.name, "drill"
	}
	return spec
}

// ProgramArg is the hidden first argument with which the binary plays a staged program.
const ProgramArg = "__sbx-drill-program"

// Program runs the staged program that the arguments name and returns its exit status;
// false when they name none.
func Program(args []string, out io.Writer) (status int, done bool) {
	if len(args) != 3 || args[1] != ProgramArg {
		return 0, false
	}
	play, ok := stagedPrograms()[args[2]]
	if !ok {
		return 2, true
	}
	return play(out), true
}

func stagedPrograms() map[string]func(io.Writer) int {
	return map[string]func(io.Writer) int{
		"busy": busyProgram, "hung": hungProgram, "leak": leakProgram, "silent": silentProgram, "steady": steadyProgram,
	}
}

// busyProgram is an agent in an endless loop: a full core, many operations, no error, no
// end. It is locked to one thread: with a second processor Go moves the loop between
// threads, and each of them looks idle on a busy machine.
func busyProgram(out io.Writer) int {
	fmt.Fprintln(out, "planning step 1")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return 1
	}
	runtime.GOMAXPROCS(1)
	runtime.LockOSThread()
	step := []byte("x")
	for {
		_, _ = null.Write(step)
	}
}

// hungProgram waits for a server that accepts the connection and never answers. The
// listener's backlog completes the handshake, so the connection is real.
func hungProgram(out io.Writer) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // lives as long as the process
	if err != nil {
		return 1
	}
	address := listener.Addr().String()
	fmt.Fprintf(out, "calling POST http://%s/v1/messages\n", address)
	conn, err := net.Dial("tcp", address) //nolint:noctx // lives as long as the process
	if err != nil {
		return 1
	}
	fmt.Fprint(conn, "POST /v1/messages HTTP/1.1\r\nHost: api\r\nContent-Length: 0\r\n\r\n")
	return waitForAnswer(conn)
}

// leakProgram allocates 4 MiB every 10 ms until it is stopped.
func leakProgram(out io.Writer) int {
	var held [][]byte
	for {
		block := make([]byte, 4<<20)
		for i := 0; i < len(block); i += os.Getpagesize() {
			block[i] = 1
		}
		held = append(held, block)
		fmt.Fprintf(out, "context holds %d MiB\n", 4*len(held))
		<-time.After(10 * time.Millisecond)
	}
}

// silentProgram prints one line and then waits.
func silentProgram(out io.Writer) int {
	fmt.Fprintln(out, "agent started")
	<-time.After(time.Hour)
	return 0
}

// steadyProgram works a little and reports it, ten times a second.
func steadyProgram(out io.Writer) int {
	for n := 1; ; n++ {
		fmt.Fprintf(out, "step %d done\n", n)
		<-time.After(100 * time.Millisecond)
	}
}
