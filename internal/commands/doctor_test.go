package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
	"sbx/internal/views"
)

// checking is a bench over providers that answer these checks.
func checking(t *testing.T, perProvider ...[]providers.Check) *bench {
	t.Helper()
	var fakes []*fake.Provider
	for i, checks := range perProvider {
		fakes = append(fakes, fake.New(fake.Options{Name: []string{"prod", "staging"}[i], Now: atNoon, Checks: checks}))
	}
	return newBench(fakes...).configure(t, "")
}

func good(check string) providers.Check {
	return providers.Check{Check: check, Verdict: sandbox.True, Message: "fine"}
}

func bad(check string) providers.Check {
	return providers.Check{Check: check, Verdict: sandbox.False, Message: "expired|yesterday", Hint: "get another one"}
}

func mute(check string) providers.Check {
	return providers.Check{Check: check, Verdict: sandbox.Unknown, Message: "no answer"}
}

func note(check string) providers.Check {
	return providers.Check{Check: check, Verdict: sandbox.False, Message: "so it is", Info: true}
}

// TestDoctorSaysWhatIsMissingForAProfile: a token without the ids beside it makes no
// profile.
func TestDoctorSaysWhatIsMissingForAProfile(t *testing.T) {
	t.Parallel()
	types := []providers.Type{{Name: "vercel", SwitchedOn: []string{"VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID"}}}
	said := func(env ...string) (string, int) {
		b := checking(t)
		b.env = env
		b.adjust = func(d *Deps) { d.Types = types }
		r := b.run(t, "doctor -o json")
		for _, item := range r.list(t, "items") {
			if item["check"] == "vercel" {
				text, _ := item["message"].(string)
				return text, r.code
			}
		}
		return "", r.code
	}
	message, code := said("VERCEL_TOKEN=v-5ec7e7")
	assert.Equal(t, "VERCEL_TOKEN is set but enables no profile: VERCEL_TEAM_ID and VERCEL_PROJECT_ID missing", message)
	assert.Equal(t, 0, code, "it may be there for something else")
	message, _ = said()
	assert.Empty(t, message)
}

func TestDoctorExitsByWhatItFinds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		checks [][]providers.Check
		code   int
		plugin int
		state  string
	}{
		"healthy":             {[][]providers.Check{{good("token")}}, 0, 0, "SBX OK: 5 of 5 checks passed | checks=5 "},
		"notes are no matter": {[][]providers.Check{{good("token"), note("boundary")}}, 0, 0, "SBX OK: "},
		"one problem":         {[][]providers.Check{{bad("token"), good("network")}}, 10, 2, "SBX CRITICAL: prod: token: expired/yesterday | "},
		"problem of one":      {[][]providers.Check{{good("token")}, {bad("token")}}, 10, 2, "SBX CRITICAL: staging: token"},
		"nobody answers":      {[][]providers.Check{{mute("answers")}}, 7, 3, "SBX UNKNOWN: prod: answers"},
		"a problem weighs":    {[][]providers.Check{{mute("answers"), bad("token")}}, 10, 2, "SBX CRITICAL: "},
		"no provider":         {nil, 0, 0, "SBX OK: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := checking(t, tc.checks...)
			r := b.run(t, "doctor -o json")
			assert.Equal(t, tc.code, r.code, r.stdout)
			assert.Empty(t, r.stderr)
			for _, item := range r.list(t, "items") {
				assert.Contains(t, []any{"true", "false", "unknown"}, item["verdict"])
			}
			assert.Equal(t, tc.code == 0, len(r.list(t, "errors")) == 0)
			plugin := b.run(t, "doctor -o nagios")
			assert.Equal(t, tc.plugin, plugin.code)
			assert.True(t, strings.HasPrefix(plugin.stdout, tc.state), plugin.stdout)
			assert.Equal(t, 1, strings.Count(plugin.stdout, "|"), "figures stand behind the only bar")
			assert.Empty(t, plugin.stderr)
		})
	}
}

func TestDoctorWorksWhileTheConfigurationIsBroken(t *testing.T) {
	t.Parallel()
	b := checking(t, []providers.Check{good("token")}).configure(t, "limits: {max_delte: 3}\nlaunhc: x\n")
	r := b.run(t, "doctor -o json")
	assert.Equal(t, 10, r.code)
	broken := 0
	for _, item := range r.list(t, "items") {
		if item["check"] == "configuration" {
			broken++
			assert.Equal(t, "false", item["verdict"])
			assert.Contains(t, item["message"], "config.yaml:")
		}
		assert.NotEqual(t, "prod", item["provider"], "no provider was asked")
	}
	assert.Equal(t, 2, broken, "each mistake has a row")
	assert.Equal(t, 2, b.run(t, "doctor -o nagios").code)
}

func TestDoctorTellsAWrongFlagFromAWrongFile(t *testing.T) {
	t.Parallel()
	b := checking(t, []providers.Check{good("token")})
	assert.Equal(t, 2, b.run(t, "doctor --provider nope").code)
	b.adjust = func(d *Deps) {
		input := d.Input
		d.Input = func() config.Input {
			in := input()
			in.Flags = map[string]string{"provider": "nope"}
			return in
		}
		d.Config = func() (*config.Config, error) { return config.Load(t.Context(), d.Input()) }
	}
	r := b.run(t, "doctor --provider nope -o json")
	assert.Equal(t, 2, r.code)
	assert.Empty(t, r.stdout)
}

func TestDoctorWithoutProviders(t *testing.T) {
	t.Parallel()
	b := checking(t)
	b.adjust = withoutFleet(fault.New(fault.KindUnknown, "cannot be opened"))
	r := b.run(t, "doctor -o json")
	assert.Equal(t, 10, r.code)
	assert.Equal(t, "providers", r.list(t, "items")[len(r.list(t, "items"))-1]["check"])
}

func TestDoctorInterrupted(t *testing.T) {
	t.Parallel()
	b := checking(t, []providers.Check{good("token")})
	b.context = canceled
	r := b.run(t, "doctor -o json")
	assert.Equal(t, 130, r.code)
	assert.Equal(t, true, r.object(t)["interrupted"])
	plugin := b.run(t, "doctor -o nagios")
	assert.Equal(t, 3, plugin.code)
	assert.True(t, strings.HasPrefix(plugin.stdout, "SBX UNKNOWN: "), plugin.stdout)
}

func TestPluginAnswersWhateverFails(t *testing.T) {
	t.Parallel()
	b := checking(t)
	b.adjust = withoutFleet(fault.Usage("two | profiles\nand more"))
	r := b.run(t, "doctor -o nagios")
	assert.Equal(t, 3, r.code)
	assert.Equal(t, "SBX UNKNOWN: two / profiles\n", r.stdout)
}

func TestPluginLineWeighs(t *testing.T) {
	t.Parallel()
	warning := ops.ToolCheck("path", sandbox.False, "another", "").AsWarning()
	unknown := ops.Check{ProviderCheck: fleet.ProviderCheck{Provider: "p", Check: mute("answers")}}
	for want, rows := range map[string][]ops.Check{
		"OK 0":       {ops.ToolCheck("a", sandbox.True, "", "")},
		"WARNING 1":  {ops.ToolCheck("a", sandbox.True, "", ""), warning},
		"UNKNOWN 3":  {warning, unknown},
		"CRITICAL 2": {warning, unknown, ops.ToolCheck("b", sandbox.False, "", "")},
	} {
		line, code := views.PluginLine(rows)
		state, number, _ := strings.Cut(want, " ")
		assert.True(t, strings.HasPrefix(line, "SBX "+state+": "), line)
		assert.Equal(t, number, string(rune('0'+code)))
	}
}

func TestDoctorForPeople(t *testing.T) {
	t.Parallel()
	b := checking(t, []providers.Check{
		good("token"), note("boundary"),
		{Check: "quota", Verdict: sandbox.False, Message: "98 of 100 sandboxes are in use, and \x1b[31mthis provider refuses new ones\x1b[0m beyond that", Hint: "end some"},
	}, []providers.Check{mute("answers")})
	b.tty, b.width, b.env = true, 80, []string{"NO_COLOR=1"}
	r := b.run(t, "doctor")
	assert.Equal(t, 10, r.code)
	_, page, _ := strings.Cut(r.stdout, "\n\n") // what is about this machine differs
	golden(t, "doctor", page+"--- stderr\n"+r.stderr)
}

func withoutFleet(err error) func(*Deps) {
	return func(d *Deps) { d.Fleet = failingFleet(err) }
}

// TestDoctorSaysWhatToDoFirst: what is out of reach before what does not answer, what is near a
// limit, and what may wait, in whatever order the providers stand.
func TestDoctorSaysWhatToDoFirst(t *testing.T) {
	t.Parallel()
	b := checking(t, []providers.Check{{Check: "quota", Verdict: sandbox.False, Message: "98 of 100", Hint: "end some"}, mute("answers")}, []providers.Check{bad("token")})
	r := b.run(t, "doctor")
	assert.Equal(t, 10, r.code)
	var order []string
	for line := range strings.Lines(r.stderr) {
		if text, found := strings.CutPrefix(line, "sbx: error: "); found {
			order = append(order, strings.SplitN(text, ":", 3)[1])
		}
	}
	assert.Equal(t, []string{" token", " answers", " quota"}, order, r.stderr)
}

// TestTheOldestFirstHintListsTheOldest: the printed command is typed as it stands.
func TestTheOldestFirstHintListsTheOldest(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod", Now: atNoon, Quotas: []providers.Quota{{Name: "sandboxes", Unit: "sandboxes", Used: new(3.0), Limit: new(3.0)}}})
	p.Add(running("young", time.Minute), running("oldest", 3*time.Hour), running("middle", time.Hour))
	b := newBench(p).configure(t, "")
	r := b.run(t, "doctor")
	_, hint, found := strings.Cut(r.stderr, "terminate them; `sbx ")
	require.True(t, found, r.stderr)
	command, _, _ := strings.Cut(hint, "`")
	assert.Equal(t, "prod/oldest\nprod/middle\nprod/young\n", b.run(t, command+" -o name").stdout, command)
}
