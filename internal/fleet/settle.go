package fleet

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// settling is an error that ends a look; nil = it does not.
func settling(err error) error {
	if fault.SettlesLook(err) {
		return err
	}
	return nil
}

// skippedError is the error of a query that was not sent, since the answer to another one, or its
// silence, settles it too. It has the kind of that one, so that it is judged alike.
type skippedError struct{ settledBy error }

// Error says why it was not sent.
func (e skippedError) Error() string { return "not asked: " + e.settledBy.Error() }

// Unwrap is the error that settles it.
func (e skippedError) Unwrap() error { return e.settledBy }

// IsSkipped reports whether a part of an observation was not asked for because of another one's error.
func IsSkipped(err error) bool {
	_, skipped := errors.AsType[skippedError](err)
	return skipped
}

// settle fills the parts of a look that has ended. Of a sandbox that is known to be broken the probe alone is asked, which
// has a rule of its own for how many answers prove it. Its log is read where it is kept outside of it: also where
// another question to the API was not answered, since nobody may end what only its log shows at work.
func (f *Fleet) settle(ctx, look context.Context, o *Observation, end error, exit bool) {
	s, skipped := o.Sandbox, skippedError{end}
	running := s.State == sandbox.StateRunning
	if o.Processes.Err = cmp.Or(settling(o.Processes.Err), error(skipped)); !running {
		o.Processes.Err = errNotAsked
	}
	if exit {
		o.Exit.Err = skipped
	}
	var log sync.WaitGroup
	defer log.Wait()
	switch {
	case !fault.AboutOneSandbox(end):
		log.Go(func() { o.Logs = f.Tail(ctx, s.Ref(), tailLines) })
	case f.KeepsLogs(s.Provider):
		log.Go(func() { o.Logs = f.Tail(look, s.Ref(), tailLines) })
	default:
		o.Logs.Err = skipped
	}
	switch {
	case !running:
	case fault.IsDefinite(end):
		o.Health = f.probeRepeatedly(look, s)
	case fault.AboutOneSandbox(end): // as a probe without an answer
		o.Health = Part[providers.Health]{Got: providers.Health{Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown}}
	default:
		o.Health.Err = skipped
	}
}

// Answers is whether something inside answered: its probe, or the list of its processes. "" = neither was asked, or
// both failed.
func (o Observation) Answers() sandbox.Verdict {
	switch {
	case o.Health.Err == nil && (o.Health.Got.Verdict == sandbox.True || o.Health.Got.Verdict == sandbox.False):
		return o.Health.Got.Verdict
	case o.Processes.Err == nil:
		return sandbox.True
	}
	return ""
}

// nothingAnswers reports whether the probe shows that nothing inside answers.
func (o Observation) nothingAnswers() bool {
	return o.Health.Err == nil && o.Health.Got.Verdict == sandbox.False
}
