package look

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
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
)

// question is one question of the runbook.
type question struct{ id, text string }

// InvestigationQuestion is a question that a step of the investigation answers.
type InvestigationQuestion struct {
	Step, ID, Text string // the step's id, the requirement, the question
}

// InvestigationQuestions are the questions of all steps, in their order.
func InvestigationQuestions() []InvestigationQuestion {
	questions := map[string][]question{
		stepCount: countQuestions(), stepStuck: stuckQuestions(), stepLogs: logQuestions(), stepResources: resourceQuestions(), stepCleanup: cleanupQuestions(triage.DefaultThresholds().CleanupEvery),
	}
	var all []InvestigationQuestion
	for _, s := range triage.InvestigationSteps() {
		for _, q := range questions[s.ID] {
			all = append(all, InvestigationQuestion{s.ID, q.id, q.text})
		}
	}
	return all
}

// reply is the answer to a question.
type reply struct {
	text  string
	known bool
}

func replyWith(format string, args ...any) reply { return reply{fmt.Sprintf(format, args...), true} }

func replyUnknown(format string, args ...any) reply {
	return reply{fmt.Sprintf(format, args...), false}
}

// stepWork is what a step asks and how it finds the answers, one for each question.
type stepWork struct {
	questions []question
	answer    func(ctx context.Context) ([]reply, error)
}

// runSteps does the steps at once. A step whose source fails or does not answer in time has only
// unknown answers, and no other step waits for it.
func (d *diagnosis) runSteps(ctx context.Context, work map[string]stepWork) {
	ctx, stop := context.WithTimeout(ctx, stepLimit)
	defer stop()
	plan := triage.InvestigationSteps()
	steps := make([]DiagnoseStep, len(plan))
	ended := make(chan struct{}, len(plan))
	var wg sync.WaitGroup
	for i, p := range plan {
		wg.Go(func() {
			began := time.Now()
			answers := answerStep(ctx, work[p.ID])
			steps[i] = DiagnoseStep{InvestigationStep: p, Took: time.Since(began), Answers: answers}
			ended <- struct{}{}
		})
	}
	for n := range plan {
		<-ended
		d.progress.Say(fmt.Sprintf("%d of %d steps done", n+1, len(plan)))
	}
	wg.Wait()
	d.result.Steps = steps
}

func answerStep(ctx context.Context, work stepWork) []Answer {
	type result struct {
		replies []reply
		err     error
	}
	done := make(chan result, 1)
	go func() {
		replies, err := work.answer(ctx)
		done <- result{replies, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		r.err = ctx.Err()
	}
	answers := make([]Answer, len(work.questions))
	for i, q := range work.questions {
		answers[i] = Answer{ID: q.id, Question: q.text}
		if r.err != nil || i >= len(r.replies) {
			answers[i].Text = "unknown: " + unknownText(r.err)
			continue
		}
		answers[i].Text, answers[i].Known = r.replies[i].text, r.replies[i].known
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
		return "no answer within " + sandbox.FormatDuration(stepLimit)
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
		return f.value, f.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// ready gives the result if it is there.
func (f *future[T]) ready() (T, bool) {
	select {
	case <-f.done:
		return f.value, f.err == nil
	default:
		var none T
		return none, false
	}
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
