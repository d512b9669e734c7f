package task_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planted is one mistake in the room's own source, and a word of the rule that it
// breaks.
type planted struct {
	file, old, mistake string
	says               string
	also               *planted // where one rule alone is backed by another
	by                 string   // the test that has to find it; "" = TestSimulation
}

// acknowledgesLate is a stop that takes the end of its task for a refusal to publish.
func acknowledgesLate(by string) planted {
	return planted{
		file:    "ledger.go",
		old:     "	case errors.Is(err, store.ErrSwapped), errors.Is(err, store.ErrOver):\n		return t, true, nil\n",
		mistake: "	case errors.Is(err, store.ErrSwapped):\n		return t, true, nil\n	case errors.Is(err, store.ErrOver):\n		return t, false, ErrOver\n",
		says:    "1:", by: by,
	}
}

func mutations() map[string]planted {
	return map[string]planted{
		"the next does not wait for the end": {
			"machine.go", "	case a.GoneAt.IsZero():\n		return ErrNotGone\n	}\n	a.Retry", "	}\n	a.GoneAt = t.ReadAt\n	a.Retry", "5:",
			&planted{file: "after.go", old: "	if a.GoneAt.IsZero() {\n		if now, err := r.clear", mistake: "	if false {\n		if now, err := r.clear"}, "",
		},
		"attempts are not counted": {
			"machine.go", "case t.Counted() >= t.Spec.Attempts:", "case false:", "6:",
			&planted{file: "retry.go", old: "case !r.free && t.Counted() >= t.Spec.Attempts:", mistake: "case false:"}, "",
		},
		"a decided task goes on": {
			"machine.go", "	if t.Phase != Working {\n		return ErrMoved\n	}\n	return nil", "	return nil", "",
			&planted{file: "machine.go", old: "	t.Fence++\n	t.StopBy", mistake: "	t.StopBy"}, "",
		},
		"what has no proof is over": {
			"facts.go", "	case !t.AllGone():\n		return ErrNotGone\n	}\n	t.State, t.Phase", "	}\n	t.State, t.Phase", "5:",
			&planted{file: "finish.go", old: "		if a.GoneAt.IsZero() && !t.keeps(a) {", mistake: "		if false {"}, "",
		},
		"a stop leaves the fence":           {"machine.go", "	t.Fence++\n	t.StopBy", "	t.StopBy", "", nil, ""},
		"an old fence writes":               {"machine.go", "case t.Fence != fence:", "case false:", "4:", nil, ""},
		"what turns up late counts as gone": {"facts.go", "a.Sandbox, a.GoneAt, a.Gone = id, time.Time{}, \"\"", "a.Sandbox = id", "", nil, ""},
		"the deadline lets attempts begin": {
			"machine.go", "	case t.late():\n		return ErrLate\n	case t.Counted()", "	case t.Counted()", "6:",
			&planted{file: "begin.go", old: "		case t.late():\n			return ErrLate\n		case age", mistake: "		case age"}, "",
		},
		"the deadline lets work pass": {
			"machine.go", "	case t.late():\n		return ErrLate\n	case t.State != Running", "	case t.State != Running", "1:",
			&planted{file: "publishing.go", old: "	if t.late() { //", mistake: "	if false { //"}, "",
		},
		"a takeover leaves the fence":         {"owning.go", "	t.Fence++\n	t.Owner, t.LeaseUntil", "	t.Owner, t.LeaseUntil", "", nil, ""},
		"a living owner is robbed":            {"owning.go", "	case t.Held() && !dead:\n		return ErrHeld\n	}", "	}", "", nil, ""},
		"a stop does not see a publication":   {"machine.go", "	case t.Phase == Publishing:\n		return ErrPublishing\n	case t.Phase == Stopping:", "	case t.Phase == Publishing, t.Phase == Stopping:", "", nil, ""},
		"a doubt is acknowledged":             {"machine.go", "	case t.Publish.State == PublishDoubt:\n		return ErrDoubt\n", "", "1:", nil, ""},
		"a stop asks no remote":               {"stop.go", "	p, err := s.o.Publisher.Resolve(ctx, t, by)\n", "	p, err := Publish{State: PublishRefused}, error(nil)\n", "1:", nil, ""},
		"a resolver guesses done":             {"publishing.go", "p, err = r.o.Publisher.Resolve(ctx, t, r.o.Owner.Who); err == nil", "p.State = PublishDone; err == nil", "2:", nil, ""},
		"a resolver guesses refused":          {"publishing.go", "p, err = r.o.Publisher.Resolve(ctx, t, r.o.Owner.Who); err == nil", "p.State = PublishRefused; err == nil", "", nil, ""},
		"a lost answer is a refusal":          {"publishing.go", "	if err != nil { // what became of it is for resolve to find out\n", "	if done.State = PublishRefused; err == ctx.Err() && err != nil {\n", "", nil, ""},
		"a push comes before the gate":        {"publishing.go", "	r.at(\"before the gate\")\n", "	r.at(\"before the gate\")\n	_, _ = r.o.Publisher.Publish(ctx, t)\n", "", nil, ""},
		"success is complete unpublished":     {"after.go", "if ok && !n.Spec.Publishes() {", "if ok {", "3:", nil, ""},
		"every end is a success":              {"after.go", "	return Failed\n", "	return Completed\n", "3:", nil, ""},
		"the breaker hears nothing":           {"after.go", "		r.leaves.Done(ctx, class)\n", "", "11:", nil, ""},
		"the breaker hears twice":             {"after.go", "		r.leaves.Done(ctx, class)\n		r.leaves = Leave{}\n", "		r.leaves.Done(ctx, class)\n", "11:", nil, ""},
		"a probe is not given back":           {"runner.go", "	defer r.leaveBreaker(ctx)\n", "", "11:", nil, ""},
		"who has lost a task goes on":         {"runner.go", "return !t.State.Over() && t.Phase != Stopping && t.Owner != r.o.Owner && t.Owner.PID != 0", "return false", "", nil, ""},
		"memory is given back early":          {"ledger.go", "if len(t.Attempts) == 0 || t.State.Over() || t.Yielded", "if len(t.Attempts) == 0 || t.State.Over() || t.Phase == Stopping || t.Yielded", "10:", nil, ""},
		"the budget has no limit":             {"ledger.go", "	limit := l.LimitMB\n", "	limit := int64(0)\n", "10:", nil, ""},
		"nobody ends what comes after all":    {"create.go", "switch r.endOne(ctx, t.ID, a).Outcome {", "switch sandbox.OutcomeVerified {", "5:", nil, ""},
		"an error means that nothing is made": {"create.go", "Nothing: made.ID == \"\" && definite(err)", "Nothing: made.ID == \"\"", "", nil, ""},
		"an own create settles at once":       {"finish.go", "return time.Since(at) >= window", "return !at.IsZero()", "", nil, ""},
		"another's create settles at once":    {"finish.go", "return !a.CutAt.IsZero() && t.ReadAt.Sub(a.CutAt) >= window", "return true", "", nil, ""},
		"accepted is gone":                    {"finish.go", "	switch ending.Outcome {\n", "	switch sandbox.OutcomeVerified {\n", "5:", nil, ""},
		"everything is kept":                  {"task.go", "return t.Kept != nil && a.Sandbox != \"\" && t.Kept.Ref == a.Ref()", "return a.Sandbox != \"\"", "5:", nil, ""},
		"a sweep resolves nothing": {
			"adopt.go", "	return t.Phase == Stopping || t.Owner.Host == o.Owner.Host", "	return t.Phase == Stopping && t.Owner.Host == o.Owner.Host", "7:",
			&planted{file: "adopt.go", old: "t.ReadAt.Sub(t.LeaseUntil) >= LostAfter {", mistake: "false {"}, "",
		},
		"a stop that comes too late is acknowledged":                   acknowledgesLate(""),
		"a stop that comes too late is acknowledged, by interleavings": acknowledgesLate("TestEveryInterleaving"),
		"what nobody goes on with stays":                               {"adopt.go", "	return t.ReadAt.Sub(since) >= LostAfter\n", "	return false\n", "7:", nil, ""},
	}
}

// TestPlantedMistakesFit shows that the list of mistakes is about the source as it is.
func TestPlantedMistakesFit(t *testing.T) {
	t.Parallel()
	for name, m := range mutations() {
		for at := &m; at != nil; at = at.also {
			text, err := os.ReadFile(at.file)
			require.NoError(t, err)
			assert.Equal(t, 1, strings.Count(string(text), at.old), name)
		}
	}
}

// TestPlantedMistakesAreCaught shows that the simulation can fail: with each mistake
// in the source it finds a rule broken within 20,000 seeds. It compiles the room once
// for each, so it runs where SBX_MUTATIONS is set.
func TestPlantedMistakesAreCaught(t *testing.T) {
	t.Parallel()
	only := os.Getenv("SBX_MUTATIONS")
	if only == "" {
		t.Skip("SBX_MUTATIONS=all, or a word of a mistake's name, runs it")
	}
	for name, m := range mutations() {
		if only != "all" && !strings.Contains(name, only) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := simulateWith(t, m)
			require.Error(t, err, "nobody notices")
			require.True(t, strings.Contains(out, "breaks"), "it fails otherwise") //nolint:testifylint // likewise
			assert.True(t, strings.Contains(out, "  - "+m.says), firstWrong(out))  //nolint:testifylint // a whole schedule is no message
			t.Log(firstWrong(out))
		})
	}
}

func firstWrong(out string) string {
	for line := range strings.Lines(out) {
		if word := strings.TrimSpace(line); strings.HasPrefix(word, "- ") {
			return word
		}
	}
	return out
}

// simulateWith runs the simulation of a room with a mistake in it.
func simulateWith(t *testing.T, m planted) (string, error) {
	t.Helper()
	dir := t.TempDir()
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "task.test")
	replaced, source := map[string]string{}, map[string]string{}
	for at := &m; at != nil; at = at.also {
		if source[at.file] == "" {
			text, err := os.ReadFile(at.file)
			require.NoError(t, err)
			source[at.file] = string(text)
		}
		source[at.file] = strings.Replace(source[at.file], at.old, at.mistake, 1)
		here, err := filepath.Abs(at.file)
		require.NoError(t, err)
		replaced[here] = filepath.Join(dir, at.file)
		require.NoError(t, os.WriteFile(replaced[here], []byte(source[at.file]), 0o600))
	}
	raw, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, raw, 0o600))
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	run := exec.CommandContext(t.Context(), binary, "-test.run", "^"+cmp.Or(m.by, "TestSimulation")+"$", "-test.timeout", "2m")
	run.Env = append(os.Environ(), "SBX_SEEDS=20000", "SBX_SEED=", envShares+"=1")
	out, err = run.CombinedOutput()
	return string(out), err
}
