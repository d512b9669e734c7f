// Package spawn tests a provider end to end: one small sandbox is created, a command runs in it, its
// output is read back, and it is ended and verified to be gone. Each step is a row of doctor.
//
// What the test has made, it ends: also after a step that failed, a time limit and an interrupt. What
// is not proved to have ended is named with the command that ends it. How a sandbox is created,
// entered and ended is in the operations below; no rule about that belongs here.
package spawn

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// The steps of a test, in their order. Each has one row, whatever happens.
const (
	StepCreate = "spawn create"
	StepRun    = "spawn run"
	StepOutput = "spawn output"
	StepEnd    = "spawn end"
	StepVerify = "spawn verify"
)

// limits bound the steps. They are above those of the providers, which end a call earlier and know why.
type limits struct {
	create, run, output time.Duration
	request             time.Duration // of one request to end the sandbox, until its end is seen
	end                 time.Duration // of all of these
}

func defaultLimits() limits {
	return limits{
		create: 6 * time.Minute, // daytona waits 5 minutes for a start
		run:    30 * time.Second, output: 30 * time.Second, request: 30 * time.Second, end: time.Minute,
	}
}

// lifetime is the TTL of the sandbox: its provider ends it where this process cannot.
const lifetime = 5 * time.Minute

// Test is a test that can begin.
type Test struct {
	env     *ops.Env
	fleet   *fleet.Fleet
	profile string
	owner   string
	lacks   map[string]string // ability -> why the provider does not have it
	limits  limits
}

// Prepare checks that the profile can create sandboxes: else it is fault.KindUnsupported, or why the
// provider could not be opened. No provider is called. Owner is the label of what is created.
func Prepare(ctx context.Context, env *ops.Env, profile, owner string) (*Test, error) {
	if err := env.MayChange(); err != nil {
		return nil, err
	}
	f, err := env.Only(ctx, profile)
	if err != nil {
		return nil, err
	}
	if err := f.CanCreate(profile); err != nil {
		return nil, err
	}
	t := &Test{env: env, fleet: f, profile: profile, owner: owner, lacks: map[string]string{}, limits: defaultLimits()}
	for _, row := range f.Abilities() {
		for _, a := range row.Abilities {
			if !a.Has {
				t.lacks[a.Name] = a.Reason
			}
		}
	}
	return t, nil
}

// Run plays the steps and returns the row of each, in their order.
func (t *Test) Run(ctx context.Context, watch ops.Observer) []ops.Check {
	r := &run{Test: t, watch: watch, nonce: strings.ToLower(rand.Text())}
	r.mark = "sbx-spawn-" + r.nonce
	r.create(ctx)
	if r.made {
		r.runCommand(ctx)
		r.readOutput(ctx)
	}
	r.endMade(ctx)
	return r.allRows()
}

// run is one test that goes on.
type run struct {
	*Test

	watch ops.Observer
	nonce string // the label that finds the sandbox of a create without an answer
	mark  string // the line that the sandbox writes
	ref   sandbox.Ref
	made  bool
	// open says that a create that failed may have made a sandbox, which may appear in a listing for
	// as long as settles.
	open    bool
	settles time.Duration
	rows    []ops.Check
}

// addRow adds the row of a step.
func (r *run) addRow(step string, verdict sandbox.Verdict, message, hint string) {
	row := ops.ToolCheck(step, verdict, message, hint)
	row.Provider = r.profile
	r.rows = append(r.rows, row)
}

// addNote adds the row of a step that was not played.
func (r *run) addNote(step, why string) {
	r.addRow(step, sandbox.Unknown, why, "")
	r.rows[len(r.rows)-1] = r.rows[len(r.rows)-1].AsNote()
}

// addFailed adds the row of a step that failed, or that ctx has ended.
func (r *run) addFailed(ctx context.Context, step string, err error, took time.Duration) {
	if ctx.Err() != nil {
		r.addNote(step, "not finished: "+context.Cause(ctx).Error())
		return
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), r.profile+": "), "create: ")
	r.addRow(step, sandbox.False, text+"; "+tookText(took), fault.HintOf(err))
}

// allRows adds a note for each step that was not reached.
func (r *run) allRows() []ops.Check {
	played := r.rows
	r.rows = nil
	for _, step := range []string{StepCreate, StepRun, StepOutput, StepEnd, StepVerify} {
		if len(played) > 0 && played[0].Check.Check == step {
			r.rows, played = append(r.rows, played[0]), played[1:]
			continue
		}
		r.addNote(step, "skipped: the create failed")
	}
	return r.rows
}

func tookText(d time.Duration) string { return "took " + sandbox.FormatElapsed(d) }
