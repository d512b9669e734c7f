package spawn

import (
	"cmp"
	"context"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/poll"
	"sbx/internal/sandbox"
)

// grace is the time from TERM to KILL.
const grace = time.Second

// endMade ends what the create has made, whatever has ended ctx; a second interrupt leaves it.
func (r *run) endMade(ctx context.Context) {
	if !r.made && !r.open {
		return
	}
	limit := r.limits.end
	if !r.made {
		limit += r.settles
	}
	ending, stop := limited(context.WithoutCancel(ctx), limit)
	defer stop()
	ending, leave := context.WithCancelCause(ending)
	defer leave(nil)
	defer r.env.OnInterrupts(ctx, func() { r.watch.Warn("ending the sandbox of the test; interrupt again to leave it as it is") }, leave)()
	if !r.made && !r.findMade(ending) {
		return
	}
	r.terminate(ending)
}

// findMade looks for the sandbox of a create that has failed, for as long as it may appear in a listing.
func (r *run) findMade(ctx context.Context) bool {
	progress := r.watch.Progress("looking for a sandbox of the create that failed")
	defer progress.Done()
	until := time.Now().Add(r.settles)
	var failed error
	for pauses := poll.NewBackoff(time.Second, 5*time.Second); ; {
		found, err := r.fleet.Labelled(ctx, r.profile, r.label())
		if len(found) > 0 {
			r.ref, r.made = found[0].Ref(), true
			return true
		}
		failed = err
		if ctx.Err() != nil || !time.Now().Before(until) || pauses.Sleep(ctx) != nil {
			break
		}
	}
	search := "`" + r.env.Process.Name() + " ls --provider " + r.profile + " --label " + sandbox.LabelNonce + "=" + r.nonce + "` shows it if it appears; it ends by itself " + sandbox.FormatDuration(lifetime) + " after its start"
	if failed != nil || ctx.Err() != nil {
		r.addRow(
			StepVerify, sandbox.False, "it is not known whether the create has made a sandbox: "+causeOr(ctx, cmp.Or(failed, context.Cause(ctx))).Error(),
			search,
		)
		return false
	}
	r.addRow(StepVerify, sandbox.True, "the listings after the create show no new sandbox", search)
	return false
}

func (r *run) label() map[string]string { return map[string]string{sandbox.LabelNonce: r.nonce} }

// terminate ends the sandbox, and asks again while its end is not proved.
func (r *run) terminate(ctx context.Context) {
	began := r.env.Now()
	var last sandbox.Ending
	var sent *sandbox.EndRequest // a later request may find that it has ended
	for pauses := poll.NewBackoff(time.Second, 5*time.Second); ; {
		last = r.terminateOnce(ctx)
		if last.Request.Sent() {
			sent = last.Request
		}
		if isProved(last.Outcome) || pauses.Sleep(ctx) != nil {
			break
		}
	}
	last.Request = sent
	r.addEnding(last, began)
}

func isProved(o sandbox.Outcome) bool {
	return o == sandbox.OutcomeVerified || o == sandbox.OutcomeAlreadyGone
}

// terminateOnce requests the end once and waits for it to be seen.
func (r *run) terminateOnce(ctx context.Context) sandbox.Ending {
	word := []string{r.ref.String()}
	result, err := end.Terminate(ctx, r.env, end.TerminateRequest{
		Words: word, Typed: word, Reason: "made by a spawn test", Delete: true, Yes: true, Grace: grace, Wait: r.limits.request,
	}, quiet{r.watch})
	if err == nil && len(result.Endings) == 1 {
		return result.Endings[0]
	}
	if err == nil {
		err = cmp.Or(result.Refused, result.Err)
	}
	return sandbox.Ending{Ref: r.ref, Outcome: sandbox.OutcomeFailed, Reason: err.Error(), Err: err}
}

// addEnding adds the rows of the last two steps.
func (r *run) addEnding(e sandbox.Ending, began time.Time) {
	line := "`" + r.env.Process.Name() + " terminate " + r.ref.String() + " --delete` ends it"
	why := cmp.Or(e.Reason, string(e.Outcome))
	switch sent := tookText(requestTime(e, began)); {
	case e.Request == nil && isProved(e.Outcome):
		r.addNote(StepEnd, "no end was requested: "+why)
	case e.Request == nil:
		r.addRow(StepEnd, sandbox.False, "nothing was sent to end "+r.ref.String()+": "+why, line)
	case e.Request.Acknowledged:
		r.addRow(StepEnd, sandbox.True, "its end was requested and accepted; "+sent, "")
	default:
		r.addRow(StepEnd, sandbox.False, "the end of "+r.ref.String()+" was requested and not accepted: "+cmp.Or(e.Request.Detail, "no answer")+"; "+sent, line)
	}
	took := tookText(max(0, r.env.Now().Sub(began)))
	if isProved(e.Outcome) {
		r.addRow(StepVerify, sandbox.True, string(e.Outcome)+": "+cmp.Or(strings.Join(evidenceTexts(e.Evidence), ", "), why)+"; "+took, "")
		return
	}
	r.addRow(StepVerify, sandbox.False, r.ref.String()+" is not proved to have ended: "+why+"; "+took, line)
}

// requestTime is how long it took until the request was sent; 0 where none was needed.
func requestTime(e sandbox.Ending, began time.Time) time.Duration {
	if e.Request == nil {
		return 0
	}
	return max(0, e.Request.At.Sub(began))
}

// quiet is an observer without the items of an operation that is a step here.
type quiet struct{ ops.Observer }

// Item is ops.Observer's.
func (quiet) Item(any) {}

// evidenceTexts are what was seen after the request: "get not_found". The first evidence is that the
// sandbox existed.
func evidenceTexts(list []sandbox.Evidence) []string {
	var texts []string
	for _, e := range list[min(1, len(list)):] {
		texts = append(texts, e.What+" "+e.Value)
	}
	return texts
}
