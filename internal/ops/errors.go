package ops

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/lock"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// PartErrors are those of the parts that failed; an ability that is missing is no failure.
func PartErrors(ctx context.Context, o fleet.Observation) []error {
	if o.IsGhost() {
		return nil // that the parts do not exist is what was found
	}
	exit, work := o.Exit.Err, o.Work.Err
	if fault.KindOf(exit) == fault.KindNotFound {
		exit = nil // sbx started no program in it
	}
	if fault.KindOf(work) == fault.KindNotFound {
		work = nil // the program never started
	}
	all := []error{o.Usage.Err, o.Health.Err, o.Events.Err, o.Logs.Err, exit, work}
	return CauseOnce(ctx, slices.DeleteFunc(all, func(err error) bool {
		return err == nil || fleet.IsSkipped(err) || fault.KindOf(err) == fault.KindUnsupported
	}))
}

// CauseOnce says a single time that ctx ended, instead of once for each thing that
// failed because of it.
func CauseOnce(ctx context.Context, errs []error) []error {
	if ctx.Err() == nil {
		return errs
	}
	return append(slices.DeleteFunc(errs, fault.Interrupted), context.Cause(ctx))
}

// FailedLooks sums up why some of what was looked at could not be judged.
func FailedLooks(judged []fleet.Judged) []error {
	var unjudged []fleet.FailedLook
	for _, j := range judged {
		if j.Verdict.Unjudged() {
			unjudged = append(unjudged, fleet.FailedLook{Profile: j.Sandbox.Provider, Err: j.Failed})
		}
	}
	return fleet.FailedLooks(unjudged)
}

// EndCause names why ctx ended, where that is what made an operation fail: a signal and the
// operator's limit say more than "context canceled".
func EndCause(ctx context.Context, err error) error {
	if ctx.Err() == nil || !fault.Interrupted(err) {
		return nil
	}
	return context.Cause(ctx)
}

// CauseOr is what ended ctx, where that is behind an error, else the error.
func CauseOr(ctx context.Context, err error) error {
	if cause := EndCause(ctx, err); cause != nil {
		return cause
	}
	return err
}

// Mistakes takes joined errors apart.
func Mistakes(err error) []error {
	if list, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		return list.Unwrap()
	}
	return []error{err}
}

// CountsText names the outcomes that there are: "18 verified, 2 changed".
func CountsText(c fleet.Counts) string {
	text := ""
	for _, o := range sandbox.Outcomes() {
		if n := c.Of(o); n > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d %s", n, o)
		}
	}
	if text == "" {
		return "-"
	}
	return text
}

// WithDetail writes "what (more)".
func WithDetail(what, more string) string {
	if more == "" {
		return what
	}
	return what + " (" + more + ")"
}

// ActsAs names the acting user and verb, for records that outlive this process.
func (e *Env) ActsAs(verb string) string {
	return fmt.Sprintf("sbx %s (%s, pid %d)", verb, e.Process.User(), e.Process.PID)
}

// VerbVerify names the verb in messages.
const VerbVerify = "verify"

// Exclusively runs something while no other run acts, and ends it when that is no longer
// sure.
func (e *Env) Exclusively(ctx context.Context, run string, wait time.Duration, do func(context.Context) error) error {
	a := e.Actor()
	ctx, release, err := e.Lock(ctx, lock.Holder{Run: run, Who: a.Who, Host: a.Host, PID: a.PID, Since: e.Now()}, wait)
	if err != nil {
		return err
	}
	defer func() { _ = release() }() // the end of the process releases it all the same
	return do(ctx)
}

// Actor is the acting user and process, for the journal and the lock.
func (e *Env) Actor() runs.Actor {
	return runs.Actor{Who: e.Process.User(), Host: e.Process.Host, PID: e.Process.PID, Version: e.Version.Version}
}

// Judging is how every verb of this room judges sandboxes; look asks those themselves
// that their record leaves open.
func (e *Env) Judging(look bool, progress Progress) fleet.Judging {
	return fleet.Judging{Now: e.Now, Thresholds: e.Thresholds, Look: look, Seen: TellLooks(progress)}
}

// RunID names a run: its time to the millisecond, so that runs sort, and chance, so
// that two of one moment differ.
func (e *Env) RunID() string {
	at := strings.ReplaceAll(e.Now().UTC().Format("20060102T150405.000"), ".", "")
	return "r-" + at + "-" + strings.ToLower(rand.Text()[:6])
}

// RequireState is why what is on record cannot be read: nobody may control the state directory but
// this user. A verb about records refuses then; a listing of nothing would look as if there were
// none. A store that hosts share needs no state directory.
func (e *Env) RequireState() error {
	c, err := e.Config()
	if err != nil || c.StoreURL != "" {
		return err
	}
	if _, err = c.State(); fault.KindOf(err) == fault.KindRefused {
		return err
	}
	return nil // where there is no place for state, there is none
}
