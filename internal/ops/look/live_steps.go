package look

import (
	"context"

	"sbx/internal/fault"
	"sbx/internal/fleet"
)

// Steps answers the questions of the investigation, as `diagnose` does, by what was read already: the newest listing of
// each profile, and judged, the newest verdict of each sandbox. Only the record of cleanup is read for it.
func (l *Live) Steps(ctx context.Context, judged []fleet.Judged) []DiagnoseStep {
	d := &diagnosis{env: l.Env}
	figures := l.newestFigures()
	var missing error
	if len(figures) == 0 {
		missing = fault.New(fault.KindUnavailable, "no profile was read yet")
	}
	known := func(answer func([]fleet.Judged, error) ([]reply, error)) func(context.Context) ([]reply, error) {
		return func(context.Context) ([]reply, error) { return answer(judged, missing) }
	}
	census := censusOf(judged)
	return runSteps(ctx, func(string) {}, stepQuestions(d.cleanupEvery()), stepWork{
		stepCount: func(context.Context) ([]reply, error) {
			if missing != nil {
				return nil, missing
			}
			return d.countReplies(figures), nil
		},
		stepStuck:     known(d.answerStuck),
		stepLogs:      known(answerLogs),
		stepResources: known(answerResources),
		stepCleanup:   d.cleanupWork(d.cleanupStatus(ctx), func(context.Context) (int64, bool) { return census.Stuck, missing == nil }),
	})
}

// newestFigures are the figures of the profiles that were read, in their order.
func (l *Live) newestFigures() []Figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []Figures
	for _, name := range l.fleet.Names() {
		if r, ok := l.rounds[name]; ok {
			all = append(all, r.Figures)
		}
	}
	return all
}
