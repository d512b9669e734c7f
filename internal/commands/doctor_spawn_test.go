package commands

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// spawnBench is a bench over one provider `prod`, which begins empty.
func spawnBench(o fake.Options) (*bench, *fake.Provider) {
	o.Name, o.Now = "prod", time.Now
	p := fake.New(o)
	b := newBench(p)
	b.now = time.Now
	b.types = []providers.Type{{Name: "prodlike"}}
	b.env = []string{"USER=alice"}
	return b, p
}

const spawnConfig = "providers: {prod: {type: fake}}\n"

// steps are the verdicts and messages of the rows of a spawn test, by step.
func steps(t *testing.T, r result) (verdicts, messages map[string]string) {
	t.Helper()
	verdicts, messages = map[string]string{}, map[string]string{}
	var order []string
	for _, item := range r.list(t, "items") {
		name, _ := item["check"].(string)
		step, is := strings.CutPrefix(name, "spawn ")
		if !is {
			continue
		}
		order = append(order, step)
		verdicts[step], _ = item["verdict"].(string)
		messages[step], _ = item["message"].(string)
		hint, _ := item["hint"].(string)
		messages[step] += " | " + hint
		assert.Equal(t, "prod", item["provider"])
	}
	assert.Equal(t, []string{"create", "run", "output", "end", "verify"}, order, "one row for each step")
	return verdicts, messages
}

// left counts the sandboxes that still exist.
func left(t *testing.T, p *fake.Provider) int {
	t.Helper()
	n := 0
	for s, err := range p.List(context.WithoutCancel(t.Context()), providers.Query{All: true}) {
		require.NoError(t, err)
		if !s.State.Ended() {
			n++
		}
	}
	return n
}

func TestSpawnPlaysALife(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "life", func(t *testing.T) {
		var spec sandbox.Spec
		b, p := spawnBench(fake.Options{Program: func(s sandbox.Spec) (fake.Script, bool) { spec = s; return fake.Script{}, false }})
		b.configure(t, spawnConfig)
		r := b.run(t, "doctor --spawn prod -o json")
		verdicts, messages := steps(t, r)
		require.Equal(t, 0, r.code, r.stdout)
		for step, verdict := range verdicts {
			assert.Equal(t, "true", verdict, "%s: %s", step, messages[step])
			assert.Contains(t, messages[step], "took ", step)
		}
		assert.Zero(t, left(t, p))
		assert.Equal(t, "alice", spec.Labels[sandbox.LabelOwner])
		assert.NotEmpty(t, spec.Labels[sandbox.LabelNonce])
		assert.Equal(t, 5*time.Minute, spec.TTL)
		assert.Equal(t, int64(64*sandbox.MiB), spec.MemoryBytes)
		assert.Equal(t, []string{"prod"}, onlyProviders(t, r), "--spawn checks its profile alone")
	})
}

// onlyProviders are the profiles of the rows.
func onlyProviders(t *testing.T, r result) []string {
	t.Helper()
	var names []string
	for _, item := range r.list(t, "items") {
		if name, _ := item["provider"].(string); name != "" && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
	}
	return names
}

func TestSpawnEndsWhatItMade(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.KindUnavailable, "503")
	for name, tc := range map[string]struct {
		options fake.Options
		faults  []fake.Fault
		stop    time.Duration // when the operator interrupts; 0 = never
		line    string
		code    int
		want    map[string]string // verdicts of the steps
		says    map[string]string
		leaves  int
	}{
		"create refused": {
			faults: []fake.Fault{{Op: fake.OpCreate, Err: fault.New(fault.KindRefused, "no place")}},
			code:   10, want: map[string]string{"create": "false", "run": "unknown", "end": "unknown", "verify": "unknown"},
			says: map[string]string{"create": "no place", "run": "skipped: the create failed"},
		},
		"create without an answer": {
			faults: []fake.Fault{{Op: fake.OpCreate, Err: down, Late: true}},
			code:   10, want: map[string]string{"create": "false", "run": "unknown", "end": "true", "verify": "true"},
			says: map[string]string{"create": "503"},
		},
		"create without an answer and without an effect": {
			faults: []fake.Fault{{Op: fake.OpCreate, Err: down}},
			code:   10, want: map[string]string{"create": "false", "end": "unknown", "verify": "true"},
			says: map[string]string{"verify": "show no new sandbox"},
		},
		"create hangs and is interrupted": {
			faults: []fake.Fault{{Op: fake.OpCreate, Hang: true, Late: true}}, stop: 3 * time.Second,
			code: 130, want: map[string]string{"create": "unknown", "end": "true", "verify": "true"},
			says: map[string]string{"create": "not finished: "},
		},
		"exec fails": {
			faults: []fake.Fault{{Op: fake.OpExec, Err: down}},
			code:   10, want: map[string]string{"create": "true", "run": "false", "output": "true", "end": "true", "verify": "true"},
		},
		"exec hangs": {
			faults: []fake.Fault{{Op: fake.OpExec, Hang: true}},
			code:   10, want: map[string]string{"create": "true", "run": "false", "output": "true", "end": "true", "verify": "true"},
			says: map[string]string{"run": "not done within 30s"},
		},
		"exec hangs and is interrupted": {
			faults: []fake.Fault{{Op: fake.OpExec, Hang: true}}, stop: 3 * time.Second,
			code: 130, want: map[string]string{"run": "unknown", "output": "unknown", "end": "true", "verify": "true"},
		},
		"the limit of the command": {
			faults: []fake.Fault{{Op: fake.OpExec, Hang: true}}, line: "doctor --spawn prod -o json --timeout 5s",
			code: 124, want: map[string]string{"run": "unknown", "end": "true", "verify": "true"},
			says: map[string]string{"run": "--timeout 5s"},
		},
		"exec ends with another code": {
			options: fake.Options{Command: func(string, providers.Command) (fake.Script, bool) {
				return fake.Script{Exit: sandbox.Exit{Code: new(3)}}, true
			}},
			code: 10, want: map[string]string{"run": "false", "end": "true", "verify": "true"},
		},
		"the output of exec is lost": {
			options: fake.Options{Command: func(string, providers.Command) (fake.Script, bool) {
				return fake.Script{Exit: sandbox.Exit{Code: new(0)}}, true
			}},
			code: 10, want: map[string]string{"run": "false", "end": "true", "verify": "true"},
			says: map[string]string{"run": "did not arrive"},
		},
		"the log is empty": {
			options: fake.Options{Program: func(sandbox.Spec) (fake.Script, bool) { return fake.Script{For: fake.Forever}, true }},
			code:    10, want: map[string]string{"run": "true", "output": "false", "end": "true", "verify": "true"},
		},
		"end refused once": {
			faults: []fake.Fault{{Op: fake.OpTerminate, Err: fault.New(fault.KindAuth, "403"), Times: 1}},
			code:   0, want: map[string]string{"end": "true", "verify": "true"},
		},
		"end refused": {
			faults: []fake.Fault{{Op: fake.OpTerminate, Err: fault.New(fault.KindAuth, "403")}},
			code:   10, want: map[string]string{"run": "true", "end": "false", "verify": "false"}, leaves: 1,
			says: map[string]string{"verify": "`sbx terminate prod/"},
		},
		"end not proved": {
			options: fake.Options{EndFor: fake.Forever},
			code:    10, want: map[string]string{"run": "true", "end": "true", "verify": "false"}, leaves: 1,
			says: map[string]string{"verify": "is not proved to have ended"},
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := spawnBench(tc.options)
			b.configure(t, spawnConfig)
			p.Break(tc.faults...)
			if tc.stop > 0 {
				b.context = func(ctx context.Context) context.Context {
					ctx, stop := context.WithCancelCause(ctx)
					time.AfterFunc(tc.stop, func() { stop(fault.New(fault.KindCanceled, "interrupted")) })
					return ctx
				}
			}
			line := tc.line
			if line == "" {
				line = "doctor --spawn prod -o json"
			}
			r := b.run(t, line)
			verdicts, messages := steps(t, r)
			assert.Equal(t, tc.code, r.code, r.stdout)
			for step, want := range tc.want {
				assert.Equal(t, want, verdicts[step], "%s: %s", step, messages[step])
			}
			for step, want := range tc.says {
				assert.Contains(t, messages[step], want, step)
			}
			synctest.Wait()
			assert.Equal(t, tc.leaves, left(t, p))
		})
	}
}

func TestSpawnNeedsAbilities(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "create", func(t *testing.T) {
		b, p := spawnBench(fake.Options{})
		b.configure(t, spawnConfig)
		b.members = []providers.Provider{p.Only("exec")}
		r := b.run(t, "doctor --spawn prod -o json")
		assert.Equal(t, 9, r.code, r.stdout)
		assert.Contains(t, r.stdout, "has no create")
		assert.Empty(t, p.Calls(), "nothing was called")
	})
	bubble.Run(t, "exec and logs", func(t *testing.T) {
		b, p := spawnBench(fake.Options{})
		b.configure(t, spawnConfig)
		b.members = []providers.Provider{p.Only("create")}
		r := b.run(t, "doctor --spawn prod -o json")
		verdicts, messages := steps(t, r)
		assert.Equal(t, 0, r.code, r.stdout)
		assert.Equal(t, "unknown", verdicts["run"])
		assert.Contains(t, messages["run"], "skipped: a provider of type fake has no exec")
		assert.Contains(t, messages["output"], "has no logs")
		assert.Equal(t, "true", verdicts["verify"])
		assert.Zero(t, left(t, p))
	})
}

func TestSpawnIsOneProfile(t *testing.T) {
	t.Parallel()
	b, p := oneFake()
	b.configure(t, "")
	for line, says := range map[string]string{
		"doctor --spawn prod --provider other": "exclude each other",
		"doctor --spawn nope":                  "nope",
	} {
		r := b.run(t, line)
		assert.Equal(t, 2, r.code, r.stderr)
		assert.Contains(t, r.stderr, says)
	}
	assert.Empty(t, p.Calls())
}

// TestASecondInterruptLeavesTheSandbox: it is named, with the line that ends it.
func TestASecondInterruptLeavesTheSandbox(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "leave", func(t *testing.T) {
		b, p := spawnBench(fake.Options{EndFor: fake.Forever})
		b.configure(t, spawnConfig)
		p.Break(fake.Fault{Op: fake.OpExec, Hang: true})
		signals := make(chan os.Signal, 1)
		b.adjust = func(d *Deps) { d.Process.Signals = func() (<-chan os.Signal, func()) { return signals, func() {} } }
		b.context = func(ctx context.Context) context.Context {
			ctx, stop := context.WithCancelCause(ctx)
			time.AfterFunc(3*time.Second, func() { stop(fault.New(fault.KindCanceled, "interrupted")) })
			time.AfterFunc(8*time.Second, func() { signals <- os.Interrupt })
			return ctx
		}
		began := time.Now()
		r := b.run(t, "doctor --spawn prod -o json")
		_, messages := steps(t, r)
		assert.Equal(t, 130, r.code)
		assert.Less(t, time.Since(began), 15*time.Second)
		assert.Contains(t, messages["verify"], "`sbx terminate prod/")
		assert.Contains(t, r.stderr, "interrupt again to leave it as it is")
	})
}

// TestSpawnAtAProductionProfile: --spawn names it.
func TestSpawnAtAProductionProfile(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "production", func(t *testing.T) {
		b, p := spawnBench(fake.Options{})
		b.configure(t, spawnConfig+"production: [prod]\n")
		r := b.run(t, "doctor --spawn prod -o json")
		verdicts, _ := steps(t, r)
		assert.Equal(t, 0, r.code, r.stdout)
		assert.Equal(t, "true", verdicts["verify"])
		assert.Zero(t, left(t, p))
	})
}

// TestSpawnAtAFullProfile: max_sandboxes holds for the test, too.
func TestSpawnAtAFullProfile(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "full", func(t *testing.T) {
		b, p := spawnBench(fake.Options{})
		b.configure(t, spawnConfig)
		b.most = map[string]int{"prod": 1}
		p.Add(running("aaaa", time.Minute))
		r := b.run(t, "doctor --spawn prod -o json")
		verdicts, messages := steps(t, r)
		assert.Equal(t, 10, r.code, r.stdout)
		assert.Equal(t, "false", verdicts["create"])
		assert.Contains(t, messages["create"], "1 of 1 run")
		assert.Equal(t, 1, left(t, p), "the other one stays")
		assert.Empty(t, p.Calls(fake.OpCreate))
	})
}
