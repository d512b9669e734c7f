package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// silent is one that does nothing and has written nothing for long.
func silent(id string) fake.Seed {
	seed := looping(id)
	seed.Usage = usage(0, 0)
	return seed
}

// ours is one that belongs to the operator of a shared site.
func ours(seed fake.Seed) fake.Seed {
	seed.Sandbox.Labels = map[string]string{sandbox.LabelOwner: "sbx"}
	return seed
}

// shared is a site whose profile says of nobody else's sandboxes that they are the operator's.
func shared(t *testing.T, p *fake.Provider, config string) *site {
	t.Helper()
	s := newSite(t, "", p)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, ".config", "sbx", "config.yaml"), []byte("providers:\n  prod: {type: fake}\nlaunch: prod\n"+config), 0o600))
	return s
}

// gates are the questions that have a word.
func (p *person) gates() (all []ops.Question) {
	for _, q := range p.questions {
		if q.Word != "" {
			all = append(all, q)
		}
	}
	return all
}

func refsOf(q ops.Question) (refs []string) {
	for _, t := range q.Targets {
		refs = append(refs, t.Ref.ID)
	}
	return refs
}

// twoOwners are stuck sandboxes of two causes, of the operator and of others, and one at work.
func twoOwners() *fake.Provider {
	return prod(fake.Options{}, ours(looping("ourloop001")), ours(looping("ourloop002")), looping("theirloop1"),
		ours(silent("oursilent1")), silent("theirsilnt"), calm("calm000001"))
}

// TestARunEndsAllThatIsStuck, cause by cause: what is the operator's first, then, asked for in the same way and by the
// flag of the command line, what is not.
func TestARunEndsAllThatIsStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := twoOwners()
		watch := &person{answer: typesWords}
		run := shared(t, p, "").run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, watch)
		var asked [][]string
		for _, q := range watch.gates() {
			asked = append(asked, refsOf(q))
			unowned := strings.HasPrefix(q.Targets[0].Ref.ID, "their")
			assert.Equal(t, unowned, strings.Contains(q.Objection, "not yours") && strings.Contains(q.Objection, "--unowned"), q.Objection)
			for _, target := range q.Targets {
				assert.Regexp(t, `^(busy loop|silent) \(age .{20,}`, target.Reason)
				assert.NotContains(t, target.Reason, "named by hand")
			}
		}
		assert.Equal(t, [][]string{{"ourloop001", "ourloop002"}, {"theirloop1"}, {"oursilent1"}, {"theirsilnt"}}, asked)
		assert.Equal(t, map[string]int{"ourloop001": 1, "ourloop002": 1, "theirloop1": 1, "oursilent1": 1, "theirsilnt": 1}, ends(p))
		assert.Equal(t, sandbox.StateRunning, stateOf(t, p, "calm000001"))
		for _, id := range []string{"end-loop", "end-stuck"} {
			assert.Equal(t, "done true", stateOfStep(t, run, id), run.Step(id).Reason)
			assert.Zero(t, run.Step(id).Act.Unowned)
		}
		assert.Len(t, run.Step("end-loop").Act.Targets, 3)
		assert.Len(t, run.Step("end-loop").Act.Outcomes, 3)
	})
}

// TestAGroupThatIsLeftLeadsToTheNext, which names it; nobody is asked for it again.
func TestAGroupThatIsLeftLeadsToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := twoOwners()
		watch := &person{answer: func(q ops.Question) (string, bool) {
			if len(q.Targets) > 0 && q.Targets[0].Ref.ID == "ourloop001" {
				return "no", true
			}
			return q.Word, true
		}}
		run := shared(t, p, "").run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, watch)
		gates := watch.gates()
		require.Len(t, gates, 4)
		for _, q := range gates[1:] {
			assert.Contains(t, q.Objection, "left by your answer: busy loop (2)")
		}
		assert.Equal(t, map[string]int{"theirloop1": 1, "oursilent1": 1, "theirsilnt": 1}, ends(p))
		step := run.Step("end-loop")
		assert.Equal(t, engine.Done, step.State)
		assert.Contains(t, step.Reason, "left by your answer: busy loop (2)")
		assert.Len(t, step.Act.Declined, 2)
	})
}

// TestAWrongCountIsAskedAgain, with the plan, as often as it is wrong.
func TestAWrongCountIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := prod(fake.Options{}, looping("loop000001"), looping("loop000002"), calm("calm000001"))
		answers := []string{"1", "61", "2"}
		watch := &person{answer: func(q ops.Question) (string, bool) {
			if q.Word == "" || len(answers) == 0 {
				return q.Word, true
			}
			text := answers[0]
			answers = answers[1:]
			return text, true
		}}
		run := newSite(t, "", p).run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, watch)
		gates := watch.gates()
		require.Len(t, gates, 3)
		assert.Contains(t, gates[1].Objection, "the answer was 1, 2 were asked")
		assert.Contains(t, gates[2].Objection, "the answer was 61, 2 were asked")
		for _, q := range gates {
			assert.Len(t, q.Targets, 2)
			assert.Equal(t, "2", q.Word)
		}
		assert.Len(t, ends(p), 2)
		assert.Equal(t, "done true", stateOfStep(t, run, "end-loop"))
	})
	synctest.Test(t, func(t *testing.T) { // an input without end is no person
		p := prod(fake.Options{}, looping("loop000001"), calm("calm000001"))
		run := newSite(t, "", p).run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, &person{answer: func(ops.Question) (string, bool) { return "7", true }})
		assert.Equal(t, engine.RunWaiting, run.State)
		assert.Empty(t, ends(p))
	})
}

// TestUnownedNeedsItsFlagOrAnAnswer: flags that answer for a person answer for what is not owned only with their own.
func TestUnownedNeedsItsFlagOrAnAnswer(t *testing.T) {
	t.Parallel()
	flags := engine.Request{Yes: true, MaxDelete: 5}
	flag := flags
	flag.Unowned = true
	for name, tc := range map[string]struct {
		req    engine.Request
		person *person
		asked  int
		theirs bool // they end
	}{
		"unattended":           {req: flags, person: &person{}},
		"unattended, the flag": {req: flag, person: &person{}, theirs: true},
		"at a terminal":        {req: flags, person: &person{answer: typesWords}, asked: 2, theirs: true},
		"at a terminal, no":    {req: flags, person: &person{answer: saysNo}, asked: 2},
		"both":                 {req: flag, person: &person{answer: saysNo}, theirs: true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := twoOwners()
			tc.req.Book = shipped(t, "sandbox-stuck")
			run := shared(t, p, "").run(t, tc.req, tc.person)
			ended := ends(p)
			for _, id := range []string{"ourloop001", "ourloop002", "oursilent1"} {
				assert.Equal(t, 1, ended[id], id)
			}
			assert.Equal(t, tc.theirs, ended["theirloop1"] == 1 && ended["theirsilnt"] == 1, ended)
			assert.Equal(t, tc.theirs, len(ended) == 5)
			assert.Len(t, tc.person.gates(), tc.asked)
			if !tc.theirs && tc.asked == 0 {
				assert.Equal(t, 2, run.Step("end-stuck").Act.Unowned)
			}
		})
	}
}

// TestATypedCountIsTheLimit of its group: who counts what ends at a gate needs no flag beside; flags do.
func TestATypedCountIsTheLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		req    engine.Request
		person *person
		ended  int
	}{
		"counted":    {person: &person{answer: typesWords}, ended: 3},
		"unattended": {req: engine.Request{Yes: true, MaxDelete: 5}, person: &person{}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := prod(fake.Options{}, silent("silent0001"), silent("silent0002"), silent("silent0003"), calm("calm000001"))
			tc.req.Book = shipped(t, "sandbox-stuck")
			run := newSite(t, "limits: {max_delete: 2}\n", p).run(t, tc.req, tc.person)
			assert.Len(t, ends(p), tc.ended, run.Step("end-stuck").Reason)
			if tc.ended > 0 {
				assert.Contains(t, tc.person.gates()[0].Objection, "--max-delete 3")
			}
		})
	}
}

// TestAStuckSandboxStaysInItsPlan where another cause is found of it while the question waits.
func TestAStuckSandboxStaysInItsPlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seed := looping("loop000001")
		p := prod(fake.Options{}, seed, calm("calm000001"))
		watch := &person{answer: func(q ops.Question) (string, bool) {
			if q.Word == "1" {
				quiet := seed
				quiet.Usage = usage(0, 0)
				p.Add(quiet)
				time.Sleep(time.Minute)
			}
			return q.Word, true
		}}
		run := newSite(t, "", p).run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, watch)
		assert.Len(t, watch.gates(), 1)
		assert.Equal(t, "done true", stateOfStep(t, run, "end-loop"), run.Step("end-loop").Reason)
		assert.Len(t, ends(p), 1)
	})
}
