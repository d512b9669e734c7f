package commands

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// localFake is a bench over one fake that bears the name of the profile that
// is always there.
func localFake(seeds ...fake.Seed) (*bench, *fake.Provider) {
	p := fake.New(fake.Options{Name: "local", Type: "local", Now: atNoon})
	p.Add(seeds...)
	return homely(newBench(p)), p
}

// homely gives the bench a home without a configuration, and --provider to
// whoever asks the configuration. The selected providers cannot be opened: the
// target of a create need not be among them.
func homely(b *bench) *bench {
	b.home = "/nonexistent"
	b.adjust = func(d *Deps) {
		d.Fleet = func(context.Context) (*fleet.Fleet, error) { return nil, errors.New("only what is looked at") }
		d.Config = func() (*config.Config, error) {
			in := d.Input()
			in.Flags, in.Types = map[string]string{}, append(in.Types, providers.Type{Name: "cloud"})
			if len(d.Globals.Providers) > 0 {
				in.Flags["provider"] = strings.Join(d.Globals.Providers, ",")
			}
			return config.Load(context.Background(), in)
		}
	}
	return b
}

// launcher records what it is asked to create.
type launcher struct {
	*fake.Provider

	spec sandbox.Spec
	err  error
}

func (l *launcher) Create(_ context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	l.spec = spec
	return sandbox.Sandbox{Provider: "local", ProviderType: "local", ID: "k3v9x2mq7a"}, l.err
}

func recorded() (*bench, *launcher) {
	_, p := localFake()
	l := &launcher{Provider: p}
	return homely(&bench{members: []providers.Provider{l}}), l
}

func TestCreatePrintsItsRefAndNothingElse(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"":                      "local/k3v9x2mq7a\n",
		"-o wide":               "local/k3v9x2mq7a\n",
		"-o name":               "local/k3v9x2mq7a\n",
		"-o csv":                "ref\nlocal/k3v9x2mq7a\n",
		"-o jq=.item.ref":       "local/k3v9x2mq7a\n",
		"-o template={{.item}}": "map[ref:local/k3v9x2mq7a]\n",
	} {
		b, _ := recorded()
		b.tty = true
		r := b.run(t, "create "+format+" -- sleep 60")
		assert.Equal(t, 0, r.code, r.stderr)
		assert.Equal(t, strings.TrimSpace(want), strings.TrimSpace(r.stdout), format)
		assert.Empty(t, r.stderr)
	}
	b, _ := recorded()
	r := b.run(t, "create -o json -- sleep 60")
	assert.Equal(t, "sbx.create/v1", r.object(t)["schema"])
	assert.Equal(t, map[string]any{"ref": "local/k3v9x2mq7a"}, r.item(t))
}

func TestCreateHandsEveryFlagDown(t *testing.T) {
	t.Parallel()
	b, l := recorded()
	b.env = []string{"TOKEN=from here"}
	r := b.runArgs(t, "create", "--name", "crawler", "--memory", "512M", "--cpu", "0.5", "--disk", "8G", "--pids", "64",
		"--template", "base", "--snapshot", "snap", "--image", "img:1", "--env", "MODE=a b", "--env", "TOKEN",
		"--env-file", writeFile(t, "vars", "FILE=1\nMODE=loses\n"), "--label", "team=agents", "--label", "empty=", "--task", "t-1",
		"--agent-type", "coder", "--ttl", "1h30m", "--workdir", "/srv", "--require-hard-limit", "--isolate", "bwrap",
		"--", "sh", "-c", "echo --name; exit 3")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, sandbox.Spec{
		Name: "crawler", Command: []string{"sh", "-c", "echo --name; exit 3"}, Env: []string{"FILE=1", "MODE=a b", "TOKEN=from here"},
		Template: "base", Snapshot: "snap", Image: "img:1", Labels: map[string]string{"team": "agents", "empty": "", sandbox.LabelOwner: "sbx"},
		TaskID: "t-1", AgentType: "coder", MemoryBytes: 512 << 20, CPU: 0.5, DiskBytes: 8 << 30, PIDs: 64,
		TTL: 90 * time.Minute, Workdir: "/srv", RequireHardLimit: true, Isolate: "bwrap",
	}, l.spec)
}

func TestCreateLeavesTheRestToTheProvider(t *testing.T) {
	t.Parallel()
	b, l := recorded()
	require.Equal(t, 0, b.run(t, "create -- sleep 60").code)
	assert.Equal(t, sandbox.Spec{Command: []string{"sleep", "60"}, Labels: map[string]string{sandbox.LabelOwner: "sbx"}}, l.spec)
}

func TestCreateRefusesBeforeAnythingIsCalled(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"create --memory -1M -- true":              "--memory",
		"create --disk 8 -- true":                  `--disk: "8" is not a size`,
		"create --cpu 0 -- true":                   "--cpu: 0 is not a number of cores",
		"create --cpu -1 -- true":                  "--cpu: -1",
		"create --cpu NaN -- true":                 "--cpu: NaN",
		"create --cpu Inf -- true":                 "--cpu: +Inf",
		"create --pids 0 -- true":                  "--pids: 0",
		"create --pids -5 -- true":                 "--pids: -5",
		"create --provider a --provider b -- true": "there is no profile",
		"create --columns nope -- true":            "unknown column",
		"create -o nagios -- true":                 "nagios",
		"create --bogus -- true":                   "unknown flag",
	} {
		b, p := localFake()
		r := b.run(t, line)
		assert.Equal(t, 2, r.code, "%s: %s", line, r.stderr)
		assert.Contains(t, r.stderr, says, line)
		assert.Empty(t, r.stdout, line)
		assert.Empty(t, p.Calls(), line)
	}
	for flag, value := range map[string]string{"--name": "\x1b[2J", "--task": "a\nb", "--agent-type": "\u202e", "--label": "a=\x07"} {
		b, p := localFake()
		r := b.runArgs(t, "create", flag, value, "--", "true")
		assert.Equal(t, 2, r.code, flag)
		assert.NotContains(t, r.stderr, value, flag)
		assert.Empty(t, p.Calls(), flag)
	}
}

func TestCreatePassesOnWhyAStartFailed(t *testing.T) {
	t.Parallel()
	for kind, code := range map[fault.Kind]int{
		fault.KindCommandNotFound: 127, fault.KindNotExecutable: 126, fault.KindLauncher: 125, fault.KindRefused: 11,
		fault.KindUnsupported: 9, fault.KindUsage: 2, fault.KindUnavailable: 7, fault.KindAuth: 4,
	} {
		b, l := recorded()
		l.err = fault.New(kind, "no luck").WithHint("try another")
		r := b.run(t, "create -- nope")
		assert.Equal(t, code, r.code, kind)
		assert.Empty(t, r.stdout)
		assert.Contains(t, r.stderr, "no luck")
		assert.Contains(t, r.stderr, "try another")

		r = b.run(t, "create -o json -- nope")
		assert.Equal(t, code, r.code, kind)
		if kind == fault.KindUsage {
			assert.Empty(t, r.stdout)
			continue
		}
		assert.Nil(t, r.object(t)["item"])
		assert.Equal(t, string(kind), r.list(t, "errors")[0]["kind"])
	}
}

func TestCreateNeverShowsValues(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	for _, flags := range []string{"", "-o json", "-v"} {
		b, l := recorded()
		l.err = errors.New("the request with TOKEN=" + secret + " was refused")
		r := b.run(t, "create "+flags+" --env TOKEN="+secret+" -- sleep 60")
		assert.Equal(t, 1, r.code)
		assert.Contains(t, r.stdout+r.stderr, "was refused")
		assert.NotContains(t, r.stdout+r.stderr, secret, flags)
	}
}

func TestCreateGoesWhereItIsSent(t *testing.T) {
	t.Parallel()
	const profiles = "providers:\n  other: {type: cloud}\n"
	for name, tc := range map[string]struct {
		config, flags string
		want          string // the profile; "" = refused
		code          int
	}{
		"by default":              {profiles, "", "local", 0},
		"by launch":               {profiles + "launch: other\n", "", "other", 0},
		"by launch, not in use":   {profiles + "launch: other\nuse: [local]\n", "", "other", 0},
		"by the flag":             {profiles + "launch: other\n", "--provider local", "local", 0},
		"to two":                  {profiles, "--provider local --provider other", "", 2},
		"never to production":     {profiles + "launch: other\nproduction: [other]\n", "", "", 11},
		"to production, by name":  {profiles + "launch: other\nproduction: [other]\n", "--provider other", "other", 0},
		"broken configuration":    {"providers: [", "", "", 2},
		"to a profile of nowhere": {profiles, "--provider nope", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local, other := fake.New(fake.Options{Name: "local"}), fake.New(fake.Options{Name: "other"})
			b := homely(newBench(local, other))
			r := b.run(t, "create --config "+writeFile(t, "config.yaml", tc.config)+" "+tc.flags+" -- sleep 60")
			assert.Equal(t, tc.code, r.code, r.stderr)
			profile, _, _ := strings.Cut(strings.TrimSpace(r.stdout), "/")
			assert.Equal(t, tc.want, profile)
			if tc.want == "" {
				assert.Empty(t, append(local.Calls(), other.Calls()...))
			}
		})
	}
}

func TestCreateNeedsTheAbility(t *testing.T) {
	t.Parallel()
	_, p := localFake()
	b := homely(&bench{members: []providers.Provider{p.Bare()}})
	r := b.run(t, "create -- sleep 60")
	assert.Equal(t, 9, r.code)
	assert.Contains(t, r.stderr, "has no create")
}

func TestCreateIsSentOnce(t *testing.T) {
	t.Parallel()
	b, p := localFake()
	p.Break(fake.Fault{Op: fake.OpCreate, Err: fault.New(fault.KindUnavailable, "503"), Late: true})
	assert.Equal(t, 7, b.run(t, "create -- sleep 60").code)
	assert.Len(t, p.Calls(fake.OpCreate), 1)
}

func TestCreateEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := localFake()
		p.Break(fake.Fault{Op: fake.OpCreate, Hang: true})
		r := b.run(t, "create --timeout 1s -o json -- sleep 60")
		assert.Equal(t, 124, r.code)
		assert.Equal(t, "timeout", r.list(t, "errors")[0]["kind"])

		b.context = interrupted
		r = b.run(t, "create -o json -- sleep 60")
		assert.Equal(t, 130, r.code)
		assert.Equal(t, true, r.object(t)["interrupted"])
	})
}

// TestACreateThatWasGivenUpMayHaveMadeOne: the time of the command was over before the answer came.
func TestACreateThatWasGivenUpMayHaveMadeOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := homely(&bench{members: []providers.Provider{unanswered{fake.New(fake.Options{Name: "local", Type: "local", Now: atNoon})}}})
		r := b.run(t, "create --timeout 1s -- sleep 60")
		assert.Equal(t, 124, r.code, r.stderr)
		assert.Contains(t, r.stderr, "a sandbox may exist; `sbx ls --provider local --label sbx/nonce=n-1` finds it")

		b.context = func(ctx context.Context) context.Context { // while the request has no answer
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(fault.New(fault.KindCanceled, "interrupted")) })
			return ctx
		}
		r = b.run(t, "create -- sleep 60")
		assert.Equal(t, 130, r.code, r.stderr)
		assert.Contains(t, r.stderr, "a sandbox may exist")
	})
}

// unanswered is a provider that takes the request for a sandbox and does not answer it.
type unanswered struct{ *fake.Provider }

func (unanswered) Create(ctx context.Context, _ sandbox.Spec) (sandbox.Sandbox, error) {
	<-ctx.Done()
	err := fault.New(fault.KindOf(ctx.Err()), "%w", context.Cause(ctx)).At("local", "create")
	return sandbox.Sandbox{}, providers.CreateFailed(err, providers.CreateMark{Provider: "local", Nonce: "n-1"})
}

func TestCreateCompletes(t *testing.T) {
	t.Parallel()
	b, p := localFake(running("aaaa", time.Minute))
	assert.Equal(t, "bwrap\n:4\n", b.runArgs(t, "__complete", "create", "--isolate", "").stdout)
	assert.Equal(t, ":4\n", b.runArgs(t, "__complete", "create", "").stdout, "a new sandbox has no REF yet")
	assert.Empty(t, p.Calls())
}
