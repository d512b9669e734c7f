package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/launch"
	"sbx/internal/providers"
	"sbx/internal/reconcile"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/runbooks"
)

// act is one use of the program.
type act struct {
	name string
	run  func(ctx context.Context, w *world) claim
	// selects are the sandboxes that it is to end, if it can see the world.
	selects []string
}

// claim is what the program says of an act.
type claim struct {
	endings []sandbox.Ending
	verdict error // nil = exit 0
	ended   string
}

// noClaim is the record of what is no use of the program.
func noClaim() claim { return claim{verdict: fault.New(fault.KindUnknown, "no claim")} }

func (w *world) terminate(id string, del bool) act {
	return act{fmt.Sprintf("terminate %s delete=%t", id, del), func(ctx context.Context, w *world) claim {
		w.named[id] = true
		word := "prod/" + id
		got, err := end.Terminate(ctx, w.process(), end.TerminateRequest{Words: []string{word}, Typed: []string{word}, Delete: del, Yes: true}, noObserver{})
		if err != nil {
			return claim{verdict: err}
		}
		return claim{endings: got.Endings, verdict: got.Err}
	}, slices.DeleteFunc([]string{id}, func(id string) bool { return id == w.kept })}
}

func (w *world) cleanup(del bool) act {
	return w.cleanupBy(cleanup.Rule{Selector: selector.Selector{OlderThan: ageLimit}, IgnoreActivity: true, Delete: del}, w.old)
}

// cleanupStuck ends what the stuck rule finds, as cron does.
func (w *world) cleanupStuck() act {
	return w.cleanupBy(cleanup.Rule{Selector: selector.Selector{Stuck: true}}, nil)
}

func (w *world) cleanupBy(rule cleanup.Rule, selects []string) act {
	return act{fmt.Sprintf("cleanup stuck=%t delete=%t", rule.Selector.Stuck, rule.Delete), func(ctx context.Context, w *world) claim {
		got, err := end.Cleanup(ctx, w.process(), end.CleanupRequest{Rule: rule, Yes: true, Unattended: true}, noObserver{})
		if err != nil {
			return claim{verdict: err}
		}
		return claim{endings: got.Endings, verdict: firstError(got.Refused, got.Verdict)}
	}, selects}
}

// reconcile compares twice, the grace apart, and ends what is on record nowhere and does not work.
func (w *world) reconcile() act {
	return act{"reconcile --fix", func(ctx context.Context, w *world) claim {
		var said claim
		for range reconcile.DefaultObservations {
			rules := reconcile.DefaultRules()
			rules.Observe = true
			got, err := end.Reconcile(ctx, w.process(), end.ReconcileRequest{Rules: rules, Records: "store", Fix: true, Yes: true}, noObserver{})
			if err != nil {
				return claim{verdict: err}
			}
			said.endings, said.verdict = append(said.endings, got.Endings...), firstError(got.Refused, got.Verdict)
			time.Sleep(reconcile.DefaultGrace + time.Second) // in virtual time
		}
		return said
	}, nil}
}

// runbook runs the page on stuck sandboxes, as cron does.
func (w *world) runbook() act {
	return act{"runbook run sandbox-stuck", func(ctx context.Context, w *world) claim {
		catalog, err := runbook.Library{Shipped: runbooks.Files}.Load(ctx)
		if err != nil {
			return claim{verdict: err}
		}
		book, err := catalog.Find("sandbox-stuck")
		if err != nil {
			return claim{verdict: err}
		}
		got, err := engine.Start(ctx, w.process(), engine.Request{Book: book, Yes: true, MaxDelete: 10}, noObserver{})
		if err != nil {
			return claim{verdict: err}
		}
		said := claim{verdict: got.Err()}
		for _, s := range got.Acts() {
			for _, o := range s.Act.Outcomes {
				ref, _ := sandbox.ParseRef(o.Ref) // of a task it is none
				said.endings = append(said.endings, sandbox.Ending{Ref: ref, Outcome: o.Outcome, Reason: o.Reason})
			}
		}
		return said
	}, nil}
}

func (w *world) wait(id string) act {
	return act{"wait " + id, func(ctx context.Context, w *world) claim {
		ctx, stop := context.WithTimeout(ctx, 30*time.Second)
		defer stop()
		_, err := launch.Wait(ctx, w.process(), launch.WaitRequest{Word: "prod/" + id, Goal: fleet.GoalEnded}, noObserver{})
		if err != nil {
			return claim{verdict: err}
		}
		return claim{ended: id}
	}, nil}
}

// die ends a sandbox without the program: another client has deleted it.
func (w *world) die(id string) act {
	return act{"another client ends " + id, func(ctx context.Context, w *world) claim {
		w.named[id], w.dying[id] = true, true
		_ = open(w.t, w.c.kind, w.c.settings, w.c.server).Terminate(ctx, id, providers.TerminateOptions{}) // a lie may refuse it
		return noClaim()
	}, nil}
}

func (w *world) passHour() act {
	return act{"an hour passes", func(context.Context, *world) claim {
		time.Sleep(time.Hour) // in virtual time
		return noClaim()
	}, nil}
}

func (w *world) randomAct(r *rand.Rand) act {
	ids := w.ids()
	id := ids[r.IntN(len(ids))]
	switch r.IntN(8) {
	case 0, 1:
		return w.terminate(id, r.IntN(3) == 0)
	case 2, 3:
		return w.cleanup(r.IntN(3) == 0)
	case 4:
		return w.wait(id)
	case 5:
		return w.die(id)
	case 6:
		if w.c.costly {
			return w.wait(id)
		}
		return w.reconcile()
	default:
		return w.passHour()
	}
}

// Ask is engine.Observer: nobody is there.
func (noObserver) Ask(context.Context, ops.Question) (string, bool, error) { return "", false, nil }
