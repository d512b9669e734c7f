package task

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/planted"
)

// plantedMistake is a mistake in this package's source, a word of the rule that it breaks, and
// the test that has to find it.
type plantedMistake struct {
	says  string
	by    string // "" = TestSimulation
	edits []edit // more than one where one rule is backed by another
}

func breaks(says string, edits ...edit) plantedMistake {
	return plantedMistake{says: says, edits: edits}
}

// lateStop acknowledges a stop although the task has ended meanwhile.
func lateStop(by string) plantedMistake {
	return plantedMistake{says: "1:", by: by, edits: []edit{
		swap(Ledger.swapTask, "if errors.Is(err, store.ErrTaskEnded) { return t, false, ErrFinal }; return t, true, nil", "t", "true"),
	}}
}

func mutations() map[string]plantedMistake {
	refused := "Publish{State: PublishRefused}"
	return map[string]plantedMistake{
		"the next does not wait for the end":                           breaks("5:", begin((*Task).ScheduleRetry, "if a := t.Last(); a != nil { a.GoneAt = t.ReadAt }"), never((*Runner).decideNext, "GoneAt")),
		"attempts are not counted":                                     breaks("6:", never((*Task).Assign, (*Task).Counted), never((*Task).Next, (*Task).Counted)),
		"a decided task goes on":                                       breaks("", never((*Task).checkWorking, "Phase"), drop((*Task).recordStop, "Fence")),
		"what has no proof is over":                                    breaks("5:", never((*Task).Finish, (*Task).AllGone), never((*Runner).finishTask, "GoneAt")),
		"a stop leaves the fence":                                      breaks("", drop((*Task).recordStop, "Fence")),
		"an old fence writes":                                          breaks("4:", never((*Task).checkFence, "Fence")),
		"what turns up late counts as gone":                            breaks("", swap((*Task).Found, "a.Sandbox = id", "GoneAt")),
		"the deadline lets attempts begin":                             breaks("6:", never((*Task).Assign, (*Task).pastDeadline), never((*Runner).confirmIntent, (*Task).pastDeadline, "t")),
		"the deadline lets work pass":                                  breaks("1:", never((*Task).PassGate, (*Task).pastDeadline), never((*Runner).passGate, (*Task).pastDeadline)),
		"a takeover leaves the fence":                                  breaks("", drop((*Task).transferTo, "Fence")),
		"a living owner is robbed":                                     breaks("", never((*Task).Adopt, (*Task).Held)),
		"a stop does not see a publication":                            breaks("", swap((*Task).Stop, "return errUnchanged", "ErrPublishing")),
		"a doubt is acknowledged":                                      breaks("1:", never((*Task).Stop, "PublishUnknown")),
		"a stop asks no remote":                                        breaks("1:", call((*Stopper).settlePublication, Publisher.Resolve, "("+refused+"), error(nil)")),
		"a resolver guesses done":                                      breaks("2:", call((*Runner).resolvePublication, Publisher.Resolve, "(Publish{State: PublishDone}), error(nil)")),
		"a resolver guesses refused":                                   breaks("", call((*Runner).resolvePublication, Publisher.Resolve, "("+refused+"), error(nil)")),
		"a lost answer is a refusal":                                   breaks("", call((*Runner).passGate, (*Runner).recordPublishError, "r.recordPublication(ctx, t, "+refused+")")),
		"a push comes before the gate":                                 breaks("", begin((*Runner).passGate, "_, _ = r.o.Publisher.Publish(ctx, t)")),
		"success is complete unpublished":                              breaks("3:", call((*Runner).recordExit, Spec.Publishes, "false")),
		"every end is a success":                                       breaks("3:", swap((*Task).failureVerdict, "return Completed", "Failed")),
		"the breaker hears nothing":                                    breaks("11:", drop((*Runner).releasePermit, "Done", "class")),
		"the breaker hears twice":                                      breaks("11:", drop((*Runner).releasePermit, "Permit")),
		"a probe is not given back":                                    breaks("11:", drop((*Runner).runToEnd, (*Runner).releasePermit)),
		"who has lost a task goes on":                                  breaks("", begin((*Runner).ownedByOther, "return false")),
		"memory is given back early":                                   breaks("10:", begin((*Task).reservedMB, "if t.Phase == Stopping { return 0 }")),
		"the budget has no limit":                                      breaks("10:", swap(Ledger.swapTask, "limit := int64(0)", "LimitMB")),
		"nobody ends what comes after all":                             breaks("5:", call((*Runner).recordLateSandbox, seenGone, "true")),
		"an error means that nothing is made":                          breaks("", call((*Runner).recordFailedCreate, provesNothingMade, "true")),
		"an own create settles at once":                                breaks("", swap((*Runner).createSettled, "return !at.IsZero()", "Since")),
		"another's create settles at once":                             breaks("", swap((*Runner).createSettled, "return true", "CutAt")),
		"accepted is gone":                                             breaks("5:", call((*Runner).endAttempt, seenGone, "true")),
		"everything is kept":                                           breaks("5:", begin((*Task).keepsSandbox, "return a.Sandbox != \"\"")),
		"a sweep resolves nothing":                                     breaks("7:", swap(Options.mayAdopt, "return t.Phase == Stopping && t.Owner.Host == o.Owner.Host || t.Owner.Host == \"\"", "Stopping"), never(Options.mayAdopt, "LostAfter")),
		"what nobody goes on with stays":                               breaks("7:", swap((*Task).isOverdue, "return false", "LostAfter")),
		"a branch whose push has no answer is left":                    breaks("12:", begin((*Task).hasBranch, "return t.Branch != nil && t.Branch.Made && t.Branch.End == \"\"")),
		"one read that finds nothing ends an attempt":                  breaks("13:", call((*Runner).awaitExit, SandboxAccess.Vanished, "true, error(nil)")),
		"the second refusal ends an attempt":                           breaks("13:", begin((*Runner).awaitExit, "const unansweredLimit = time.Duration(0)")),
		"one read that finds nothing lets a sweep take over":           breaks("13:", call((*Runner).programRuns, SandboxAccess.Vanished, "true, error(nil)")),
		"a stream that has ended is silence":                           breaks("13:", begin((*outputTracker).isOutputLost, "return true"), begin((*Runner).logShowsSilence, "return true")),
		"one list that lacks it is enough":                             breaks("5:", swap((*Runner).settleCreate, "if empty++; empty > 0 { return r.changeTask(ctx, t.ID, func(task *Task) error { return task.recordNothingMade(n) }) }", "empty", (*Task).recordNothingMade)),
		"copies of a create are left":                                  breaks("5:", begin((*Runner).endCopies, "return nil")),
		"what a lost create made is no attempt":                        breaks("14:", drop((*Runner).decideNext, "now", (*Task).Next, (*Task).failureVerdict)),
		"one read that finds nothing leaves the record":                breaks("5:", call((*Runner).mayHaveRecord, "ContainsFunc", "slices.ContainsFunc(found, func(sandbox.Sandbox) bool { return false })")),
		"a stop that comes too late is acknowledged":                   lateStop(""),
		"a stop that comes too late is acknowledged, by interleavings": lateStop("TestEveryInterleaving"),
	}
}

// TestPlantedMistakesFit shows that each mistake has exactly one place in the source.
func TestPlantedMistakesFit(t *testing.T) {
	t.Parallel()
	for name, m := range mutations() {
		sources := map[string][]byte{}
		for _, e := range m.edits {
			_, err := e.apply(sources)
			assert.NoError(t, err, name)
		}
	}
}

// TestPlantedMistakesAreCaught shows that the simulation can fail: with each mistake
// in the source it finds a rule broken within 20,000 seeds. It compiles the room once
// for each, so it runs where SBX_MUTATIONS is set.
func TestPlantedMistakesAreCaught(t *testing.T) {
	t.Parallel()
	planted.Each(t, mutations(), func(t *testing.T, m plantedMistake) {
		t.Helper()
		t.Parallel()
		sources := map[string][]byte{}
		for _, e := range m.edits {
			_, err := e.apply(sources)
			require.NoError(t, err)
		}
		out, err := planted.Run(t, sources, cmp.Or(m.by, "TestSimulation"), "SBX_SEEDS=20000", "SBX_SEED=", "SBX_INTERLEAVINGS=1")
		require.Error(t, err, "nobody notices")
		require.True(t, strings.Contains(out, "breaks"), "it fails otherwise: %s", firstWrong(out)) //nolint:testifylint // likewise
		assert.True(t, strings.Contains(out, "  - "+m.says), firstWrong(out))                       //nolint:testifylint // a whole schedule is no message
		t.Log(firstWrong(out))
	})
}

func firstWrong(out string) string {
	for line := range strings.Lines(out) {
		if word := strings.TrimSpace(line); strings.HasPrefix(word, "- ") {
			return word
		}
	}
	return out
}
