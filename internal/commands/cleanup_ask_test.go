package commands

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/testkit/fake"
)

// typed answers a question, and lets something happen while it stands open.
type typed struct {
	*strings.Reader

	meanwhile func()
}

func (a *typed) Read(b []byte) (int, error) {
	if a.meanwhile != nil {
		a.meanwhile()
		a.meanwhile = nil
	}
	return a.Reader.Read(b)
}

// A question may stand open for hours: what went to work in them stays, and what came
// up in them was shown to nobody.
func TestWhatChangesWhileTheQuestionStands(t *testing.T) {
	t.Parallel()
	before := fake.New(fake.Options{Name: "prod", Now: atNoon})
	before.Add(quietHerd("prod", 4)...)
	seeds := append(quietHerd("prod", 4), quiet("new00001", time.Hour))
	seeds[0].Sandbox.LastActivityAt = noon
	seeds[1] = using("prod0001", noon.Sub(seeds[1].Sandbox.CreatedAt), growing(0.5, 0, 0))
	after := fake.New(fake.Options{Name: "prod", Now: atNoon})
	after.Add(seeds...)
	b := newBench(before).configure(t, "providers:\n  prod: {type: local}\n")
	b.tty = true
	b.adjust = func(d *Deps) {
		d.Process.Stdin.Reader = &typed{strings.NewReader("4\n"), func() { b.members[0] = after }}
	}
	r := b.run(t, "cleanup --older-than 10m --max-fraction 100%")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Empty(t, before.Calls(fake.OpTerminate))
	var asked []string
	for _, call := range after.Calls(fake.OpTerminate) {
		asked = append(asked, call.ID)
	}
	assert.ElementsMatch(t, []string{"prod0002", "prod0003"}, asked)
	assert.Contains(t, r.stdout, "changed prod/prod0001: the rule no longer selects it: it is active")
}

// To answer no is no success where a profile could not be seen whole.
func TestAnAnswerOfNoKeepsTheExitCode(t *testing.T) {
	t.Parallel()
	for line, code := range map[string]int{
		"cleanup --older-than 10m --max-fraction 100%":                     3,
		"cleanup --older-than 10m --max-fraction 100% --detailed-exitcode": 3,
		"cleanup --older-than 10m --max-fraction 100% --provider prod":     0,
	} {
		prod := fake.New(fake.Options{Name: "prod", Now: atNoon})
		prod.Add(quietHerd("prod", 4)...)
		other := fake.New(fake.Options{Name: "other", Now: atNoon})
		other.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
		b := newBench(prod, other).configure(t, twoProfiles)
		if strings.Contains(line, "--provider") {
			b.members = b.members[:1]
		}
		b.tty = true
		b.adjust = func(d *Deps) { d.Process.Stdin.Reader = iotest.OneByteReader(strings.NewReader("no\n")) }
		r := b.run(t, line)
		assert.Equal(t, code, r.code, r.stderr)
		assert.Contains(t, r.stderr, "nothing was done")
		assert.Empty(t, prod.Calls(fake.OpTerminate))
	}
}

// A plan is applied where a quota is pressed, and waits where it is not.
func TestAPlanOfWhatIsNotPressed(t *testing.T) {
	t.Parallel()
	with := func(name string, used float64) *fake.Provider {
		p := fake.New(fake.Options{Name: name, Now: atNoon, Quotas: []providers.Quota{{Name: "sandboxes", Unit: "sandboxes", Used: &used, Limit: new(10.0)}}})
		p.Add(quietHerd(name, 4)...)
		return p
	}
	for used, asked := range map[float64]int{1: 0, 9: 4} {
		prod, other := with("prod", used), with("other", 1)
		b := newBench(prod, other).configure(t, twoProfiles)
		plan := filepath.Join(b.home, "plan.json")
		require.Equal(t, 0, b.run(t, "cleanup --older-than 10m --out "+plan).code)
		r := b.run(t, "cleanup --apply "+plan+" --yes --if-usage-above 80% -o json")
		require.Equal(t, 0, r.code, r.stderr)
		counts, ok := r.object(t)["counts"].(map[string]any)
		require.True(t, ok)
		assert.Equal(t, []any{float64(asked), float64(8 - asked)}, []any{counts["verified"], counts["changed"]})
		assert.Len(t, prod.Calls(fake.OpTerminate), asked)
		assert.Empty(t, other.Calls(fake.OpTerminate))
	}
	b, _ := oneFake()
	assert.Equal(t, 2, b.run(t, "cleanup --resume r-1 --yes --if-usage-above 80%").code)
}
