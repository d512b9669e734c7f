package spawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/ops/look"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// sizes are the limits that are tried, the smallest first: where a provider does not take the limits of
// a request, its template or its service decides.
func sizes() []sandbox.Spec {
	return []sandbox.Spec{{CPU: 1, MemoryBytes: 64 * sandbox.MiB}, {CPU: 1}, {}}
}

// create makes the sandbox.
func (r *run) create(ctx context.Context) {
	began := time.Now()
	made, err := r.createSmallest(ctx)
	took := time.Since(began)
	if err != nil {
		r.open, r.settles = r.outcomeOf(ctx, err)
		r.addFailed(ctx, StepCreate, err, took)
		return
	}
	r.ref, r.made = made.Ref(), true
	r.addRow(StepCreate, sandbox.True, fmt.Sprintf("%s is %s; %s", r.ref, made.State, tookText(took)), "")
}

// createSmallest creates the sandbox with the smallest limits that the provider takes.
func (r *run) createSmallest(ctx context.Context) (made sandbox.Sandbox, err error) {
	ctx, stop := limited(ctx, r.limits.create)
	defer stop()
	for _, spec := range sizes() {
		spec.Command = []string{"sh", "-c", fmt.Sprintf("echo %s; sleep %d", r.mark, int(lifetime.Seconds()))}
		spec.Labels = map[string]string{sandbox.LabelOwner: r.owner, sandbox.LabelNonce: r.nonce}
		spec.TTL = lifetime
		made, err = launch.Create(ctx, r.env, launch.CreateRequest{Spec: spec}, r.watch)
		if !refusedSize(err) {
			break
		}
	}
	if err != nil {
		return made, causeOr(ctx, err)
	}
	return made, nil
}

// refusedSize says that a spec was refused before any request.
func refusedSize(err error) bool {
	kind := fault.KindOf(err)
	return (kind == fault.KindUsage || kind == fault.KindUnsupported) && !errors.Is(err, providers.ErrNothingMade)
}

// outcomeOf says whether a create that failed may have made a sandbox, and for how long one may still
// appear in a listing.
func (r *run) outcomeOf(ctx context.Context, err error) (open bool, settles time.Duration) {
	if errors.Is(err, providers.ErrNothingMade) {
		return false, 0
	}
	switch kind := fault.KindOf(err); {
	case ctx.Err() != nil, kind == fault.KindUnavailable, kind == fault.KindTimeout, kind == fault.KindUnknown:
		return true, r.env.ProfileFacts(r.profile).SettleTime()
	case kind == fault.KindUsage, kind == fault.KindUnsupported, kind == fault.KindRefused, kind == fault.KindAuth:
		return false, 0
	}
	return true, 0 // it ended without its sandbox: one look shows whether that is so
}

// runCommand runs a command in the sandbox and compares its exit code and its output.
func (r *run) runCommand(ctx context.Context) {
	if r.skipWithout(ctx, StepRun, "exec") {
		return
	}
	ctx, stop := limited(ctx, r.limits.run)
	defer stop()
	out := &firstBytes{}
	c := providers.Command{Args: []string{"sh", "-c", "echo " + r.mark}, Stdout: out, Stderr: out}
	began := time.Now()
	err := launch.Exec(ctx, r.env, launch.ExecRequest{
		Word: r.ref.String(), Command: c, Connect: func(*providers.Command) (func(), error) { return func() {}, nil },
	})
	switch took := time.Since(began); {
	case err != nil:
		r.addFailed(stopped(ctx), StepRun, causeOr(ctx, err), took)
	case !strings.Contains(out.String(), r.mark):
		r.addRow(StepRun, sandbox.False, "`echo` ended with 0 and its output did not arrive; "+tookText(took), "")
	default:
		r.addRow(StepRun, sandbox.True, "`echo` ended with 0 and its output arrived; "+tookText(took), "")
	}
}

// readOutput looks for the line of the program that create has started in the log of the sandbox.
func (r *run) readOutput(ctx context.Context) {
	if r.skipWithout(ctx, StepOutput, "logs") {
		return
	}
	ctx, stop := limited(ctx, r.limits.output)
	defer stop()
	reading, found := context.WithCancel(ctx)
	defer found()
	w := &lineWatch{Observer: r.watch, mark: r.mark, stop: found}
	began := time.Now()
	_, err := look.Logs(reading, r.env, look.LogsRequest{Word: r.ref.String(), Follow: true}, w)
	switch took := time.Since(began); {
	case w.seen:
		r.addRow(StepOutput, sandbox.True, "the log has the line of its program; "+tookText(took), "")
	default:
		if err = errors.Join(w.failed, err); err == nil {
			err = errors.New("the log ended without the line of its program")
		}
		r.addFailed(stopped(ctx), StepOutput, causeOr(ctx, err), took)
	}
}

// skipWithout adds a note where the step cannot be played.
func (r *run) skipWithout(ctx context.Context, step, ability string) bool {
	why, missing := r.lacks[ability]
	switch {
	case missing:
		r.addNote(step, "skipped: "+why)
	case ctx.Err() != nil:
		r.addNote(step, "skipped: "+context.Cause(ctx).Error())
	default:
		return false
	}
	return true
}

// limited bounds a step; the limit is the cause of its end.
func limited(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, stepLimitError{limit})
}

// stepLimitError says that a step has reached its own limit.
type stepLimitError struct{ limit time.Duration }

// Error is the limit.
func (e stepLimitError) Error() string { return "not done within " + sandbox.FormatDuration(e.limit) }

// causeOr is the limit of the step, where that has ended it, else the error.
func causeOr(ctx context.Context, err error) error {
	if limit, over := errors.AsType[stepLimitError](context.Cause(ctx)); over {
		return limit
	}
	return err
}

// stopped is ctx, or one that goes on where only the limit of a step has ended ctx.
func stopped(ctx context.Context) context.Context {
	if _, over := errors.AsType[stepLimitError](context.Cause(ctx)); over {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// lineWatch ends the read of a log at the line that is looked for.
type lineWatch struct {
	ops.Observer

	mark   string
	stop   func()
	seen   bool
	failed error
}

// Item is ops.Observer's.
func (w *lineWatch) Item(item any) {
	switch item := item.(type) {
	case look.LogLine:
		if strings.Contains(item.Text, w.mark) {
			w.seen = true
			w.stop()
		}
	case error:
		w.failed = item
	}
}

// maxOutput is how much output of the command is kept; a sandbox may write without end.
const maxOutput = 4 << 10

// firstBytes keeps the first bytes that are written to it.
type firstBytes struct{ b bytes.Buffer }

// Write never fails.
func (f *firstBytes) Write(p []byte) (int, error) {
	f.b.Write(p[:min(len(p), max(0, maxOutput-f.b.Len()))])
	return len(p), nil
}

// String is what was kept.
func (f *firstBytes) String() string { return f.b.String() }
