package look

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/triage"
)

// The steps of an investigation.
const (
	stepCount     = "count"
	stepStuck     = "stuck"
	stepLogs      = "logs"
	stepResources = "resources"
	stepCleanup   = "cleanup"
)

const (
	// collectLimit is what all requests of an investigation may take; those that answered until
	// then count. Ten thousand idle sandboxes need 75 s. A provider that hangs is given up long
	// before, by its own limits.
	collectLimit = 2 * time.Minute
	// stepLimit is how long a step waits for its sources, also for one that cannot be stopped.
	stepLimit = collectLimit + 15*time.Second
	// profileLimit is how long one sandbox that was seen waits for the figures of its profile. They add
	// to its causes, and nobody who asks for one sandbox waits for a listing that hangs.
	profileLimit = 10 * time.Second
)

// question is one question of the runbook.
type question struct{ id, text string }

// reply is the answer to a question.
type reply struct {
	text  string
	known bool
}

func replyWith(format string, args ...any) reply { return reply{fmt.Sprintf(format, args...), true} }

func replyUnknown(format string, args ...any) reply {
	return reply{fmt.Sprintf(format, args...), false}
}

// stepWork finds the answers of each step, one for each question.
type stepWork map[string]func(context.Context) ([]reply, error)

// runSteps does the steps at once, and says how many are done. A step whose source fails or does not answer in time has only
// unknown answers, and no other step waits for it.
func runSteps(ctx context.Context, say func(string), questions map[string][]question, work stepWork) []DiagnoseStep {
	ctx, stop := context.WithTimeout(ctx, stepLimit)
	defer stop()
	plan := triage.InvestigationSteps()
	steps := make([]DiagnoseStep, len(plan))
	ended := make(chan struct{}, len(plan))
	for i, p := range plan {
		go func() {
			began := time.Now()
			answers := answerStep(ctx, questions[p.ID], work[p.ID])
			steps[i] = DiagnoseStep{InvestigationStep: p, Took: time.Since(began), Answers: answers}
			ended <- struct{}{}
		}()
	}
	for n := range plan {
		<-ended
		say(fmt.Sprintf("%d of %d steps done", n+1, len(plan)))
	}
	return steps
}

func answerStep(ctx context.Context, questions []question, answer func(context.Context) ([]reply, error)) []Answer {
	replies, err := begin(func() ([]reply, error) { return answer(ctx) }).wait(ctx)
	answers := make([]Answer, len(questions))
	for i, q := range questions {
		answers[i] = Answer{ID: q.id, Question: q.text}
		if err != nil || i >= len(replies) {
			answers[i].Text = "unknown: " + unknownText(err)
			continue
		}
		answers[i].Text, answers[i].Known = replies[i].text, replies[i].known
		if !answers[i].Known {
			answers[i].Text = "unknown: " + answers[i].Text
		}
	}
	return answers
}

// unknownText is why a step has no answer.
func unknownText(err error) string {
	switch {
	case err == nil:
		return "the step gave no answer"
	case fault.Interrupted(err):
		return "no answer in time"
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// future is a result that is on its way.
type future[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// begin starts to find a result.
func begin[T any](find func() (T, error)) *future[T] {
	f := &future[T]{done: make(chan struct{})}
	go func() {
		defer close(f.done)
		f.value, f.err = find()
	}()
	return f
}

// wait gives the result, or the error of ctx where that ends before.
func (f *future[T]) wait(ctx context.Context) (T, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	if f.ended() {
		return f.value, f.err
	}
	var none T
	return none, ctx.Err()
}

// ready gives the result if it is there.
func (f *future[T]) ready() (T, bool) {
	if !f.ended() {
		var none T
		return none, false
	}
	return f.value, f.err == nil
}

// ended reports whether the result, or the error, is there.
func (f *future[T]) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// Answer is what a step of the investigation found for one question of the runbook.
type Answer struct {
	ID       string // requirement id
	Question string
	Text     string // where it is not known, why
	Known    bool
}

// DiagnoseStep is one step of the investigation with its answers.
type DiagnoseStep struct {
	triage.InvestigationStep

	Took    time.Duration
	Answers []Answer
}
