package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/runbook"
	"sbx/internal/safety"
)

// The words of a gate, the weakest first.
const (
	gateYes   = "yes"
	gateCount = "count"
	gateName  = "name"
)

// gateWord is the gate of an act: what its author asks for, or more where the number or the profile
// demands it.
func gateWord(s runbook.Step, p *actPlan) string {
	gate := string(s.Gate)
	switch {
	case p.byName || gate == gateName:
		return gateName
	case gate == gateCount || len(p.Targets) > safety.MaxUnasked:
		return gateCount
	}
	return gateYes
}

// passGate asks a person, or takes what the flags allow. Named are the profiles that were named. A
// gate that nobody can answer makes the run wait. Nobody is asked twice about the same.
func (r *runner) passGate(ctx context.Context, s runbook.Step, rec *Step, g group) (named []string, yes bool, err error) {
	if r.wasDeclined(g.actPlan) {
		return nil, false, nil
	}
	gate := gateWord(s, g.actPlan)
	unnamed := r.unnamed(gate, g.actPlan)
	switch {
	case g.byFlags:
		rec.Act.Allowed = byFlag + " --max-delete " + strconv.Itoa(r.req.MaxDelete)
		return r.req.Production, true, nil
	case !r.watch.Attended():
		return nil, false, r.wait(rec, r.refuseByFlags(s, g.actPlan, unnamed))
	}
	var asked []string
	all := questions(gate, g.actPlan, unnamed)
	for _, q := range all {
		q.Targets, q.Objection = all[0].Targets, r.about(g)
		answer, err := r.askGate(ctx, rec, q)
		if err != nil {
			return nil, false, err
		}
		if answer != q.Word {
			return nil, false, nil
		}
		asked = append(asked, answer)
	}
	rec.Act.Allowed = strings.TrimPrefix(rec.Act.Allowed+"; typed "+strings.Join(asked, ", "), "; ")
	return append(slices.Clone(r.req.Production), unnamed...), true, nil
}

// askGate asks a question of a gate. Another number than the count is taken for a mistake, and asked again; any
// other answer counts.
func (r *runner) askGate(ctx context.Context, rec *Step, q ops.Question) (string, error) {
	about := q.Objection
	for range maxAsked {
		answer, err := r.ask(ctx, rec, q)
		_, noCount := strconv.Atoi(q.Word)
		_, noNumber := strconv.Atoi(answer)
		if err != nil || answer == q.Word || noCount != nil || noNumber != nil {
			return answer, err
		}
		were := "were"
		if q.Word == "1" {
			were = "was"
		}
		q.Objection = strings.TrimSuffix(fmt.Sprintf("the answer was %s, %s %s asked; %s", answer, q.Word, were, about), "; ")
	}
	return "", r.wait(rec, fault.New(fault.KindRefused, "the step %s needs the count, and got %d others", rec.ID, maxAsked).WithHint("%s", r.goOnHint("")))
}

// unnamed are the profiles that have to be named at the gate: all of a gate by name, else those of
// production that no flag has named.
func (r *runner) unnamed(gate string, p *actPlan) []string {
	production := p.Unnamed(r.env, slices.Concat(r.req.Production, r.named))
	if gate != gateName {
		return production
	}
	return slices.DeleteFunc(p.profiles(), func(name string) bool {
		named := slices.Contains(r.req.Production, name) || !p.byName && slices.Contains(r.req.Profiles, name)
		return named && !slices.Contains(production, name)
	})
}

// refuseByFlags says why the flags do not allow an act without a person; nil = they do.
func (r *runner) refuseByFlags(s runbook.Step, p *actPlan, unnamed []string) error {
	n := len(p.Targets)
	what := fmt.Sprintf("the step %s would %s %d", s.ID, p.Verb, n)
	flags := fmt.Sprintf("--yes --max-delete %d", n)
	if len(unnamed) > 0 {
		flags += " --production " + strings.Join(unnamed, ",")
	}
	hint := r.goOnHint(flags)
	if r.req.Resume == "" && !r.req.Yes { // which a dry run refuses
		hint = "`" + strings.Join(append(slices.Clone(r.req.Line), "--dry-run"), " ") + "` shows the plan; " + hint
	}
	switch {
	case !r.req.Yes || r.req.MaxDelete == 0:
		return fault.New(fault.KindRefused, "%s, which needs an answer, and this is not a terminal", what).WithHint("%s", hint)
	case n > r.req.MaxDelete:
		return fault.New(fault.KindRefused, "%s, more than --max-delete %d", what, r.req.MaxDelete).WithHint("%s", hint)
	case len(unnamed) > 0:
		return fault.New(fault.KindRefused, "%s at %s, which was not named", what, strings.Join(unnamed, ", ")).WithHint("%s", hint)
	}
	return nil
}

// questions are what a person answers: the number or yes, and the name of each profile that has to be
// named.
func questions(gate string, p *actPlan, unnamed []string) []ops.Question {
	least := map[string]safety.Ask{gateYes: safety.AskGate, gateCount: safety.AskCount, gateName: safety.AskName}[gate]
	return p.Questions(safety.Answers(least, len(p.Targets), unnamed))
}
