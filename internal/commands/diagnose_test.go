package commands

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// diagnosis is the document of diagnose, as far as these tests read it.
type diagnosis struct {
	Steps []struct {
		ID      string  `json:"id"`
		ETA     float64 `json:"eta_seconds"`
		Answers []struct {
			Answer string `json:"answer"`
			Known  bool   `json:"known"`
		} `json:"answers"`
	} `json:"steps"`
	Flags []struct {
		ID      string `json:"id"`
		Verdict string `json:"verdict"`
	} `json:"flags"`
	Causes []struct {
		ID         string  `json:"id"`
		Cause      string  `json:"cause"`
		Confidence string  `json:"confidence"`
		Evidence   []any   `json:"evidence"`
		WhyNot     *string `json:"why_not"`
	} `json:"causes"`
}

func diagnosed(t *testing.T, r result) diagnosis {
	t.Helper()
	var doc struct {
		Item diagnosis `json:"item"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &doc), r.stdout)
	return doc.Item
}

func TestDiagnoseGoesThroughTheSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(loop())
		for _, line := range []string{"diagnose -o json", "diagnose prod/loop0001 -o json"} {
			doc := diagnosed(t, b.run(t, line))
			var ids []string
			eta := 0.0
			for _, s := range doc.Steps {
				ids = append(ids, s.ID)
				eta += s.ETA
				for _, a := range s.Answers {
					assert.Equal(t, !a.Known, strings.HasPrefix(a.Answer, "unknown: "), "%v", a)
				}
			}
			assert.Equal(t, []string{"count", "stuck", "logs", "resources", "cleanup"}, ids)
			assert.InDelta(t, 15*60, eta, 0, "R58")
		}
	})
}

func TestDiagnoseNamesTheCauseAndWhyNotTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(loop())
		r := b.run(t, "diagnose prod/loop0001 -o json")
		assert.Equal(t, 10, r.code)
		causes := diagnosed(t, r).Causes
		assert.Equal(t, "busy_loop", causes[0].Cause)
		assert.Equal(t, "probable", causes[0].Confidence)
		assert.NotEmpty(t, causes[0].Evidence)
		assert.Nil(t, causes[0].WhyNot)
		assert.Contains(t, *causes[1].WhyNot, "not seen: ")
		inspected := b.run(t, "inspect prod/loop0001 -o json").item(t)
		assert.Equal(t, flagVerdicts(r.item(t)["flags"]), flagVerdicts(inspected["flags"]), "the same flags")
		assert.Len(t, inspected["causes"], len(causes))
	})
}

// flagVerdicts are the flags without their evidence, which has times.
func flagVerdicts(flags any) []any {
	var all []any
	list, _ := flags.([]any)
	for _, f := range list {
		flag, _ := f.(map[string]any)
		all = append(all, []any{flag["id"], flag["say"], flag["verdict"], flag["severity"]})
	}
	return all
}

// TestDiagnoseOfACalmFleet: no cause is likely, and all is in order.
func TestDiagnoseOfACalmFleet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(using("calm0001", 20*time.Minute, growing(0.2, 0, 10)), using("calm0002", time.Minute, growing(0.3, 0, 10)))
		r := b.run(t, "diagnose -o json")
		require.Equal(t, 0, r.code, r.stderr)
		item := r.item(t)
		assert.Equal(t, "true", item["verdict"])
		assert.Empty(t, item["causes"])
		assert.Empty(t, item["stuck"])
		assert.Equal(t, 0, b.run(t, "diagnose prod/calm0001").code)
	})
}

// TestDiagnoseWithoutFiguresIsUnknown: what no source shows is not healthy.
func TestDiagnoseWithoutFiguresIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", Now: atNoon, PartialLogs: true})
		p.Add(running("blind001", time.Hour))
		b := &bench{members: []providers.Provider{p.Bare()}}
		for _, line := range []string{"diagnose -o json", "diagnose prod/blind001 -o json"} {
			r := b.run(t, line)
			assert.Equal(t, 7, r.code, line)
			assert.Equal(t, "unknown", r.item(t)["verdict"], line)
		}
	})
}

// TestDiagnoseGoesOnWithoutASourceThatHangs: every other step has its answers, within the limit.
func TestDiagnoseGoesOnWithoutASourceThatHangs(t *testing.T) {
	t.Parallel()
	for _, op := range []fake.Op{fake.OpLogs, fake.OpUsage, fake.OpProbe, fake.OpStats, fake.OpHistory, fake.OpQuota, fake.OpEvents, fake.OpActivity} {
		for _, line := range []string{"diagnose -o json", "diagnose prod/loop0001 -o json"} {
			t.Run(string(op)+" "+line, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b, p := oneFake(loop())
					p.Break(fake.Fault{Op: op, Hang: true})
					began := time.Now()
					r := b.run(t, line)
					assert.Less(t, time.Since(began), time.Minute, "the limits of the provider end the wait")
					assert.NotContains(t, []int{0, 1, 2, 124}, r.code, r.stderr)
					known := 0
					for _, s := range diagnosed(t, r).Steps {
						for _, a := range s.Answers {
							if a.Known {
								known++
							}
						}
					}
					assert.GreaterOrEqual(t, known, 4, r.stdout)
				})
			})
		}
	}
}

// TestDiagnoseOfAFleetWithOneDeadProvider: the others are investigated, and nobody waits for it
// more than its time.
func TestDiagnoseOfAFleetWithOneDeadProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, dead := fake.New(fake.Options{Name: "prod", Now: atNoon}), fake.New(fake.Options{Name: "dead", Now: atNoon})
		p.Add(using("calm0001", 20*time.Minute, growing(0.2, 0, 10)))
		dead.Break(fake.Fault{Op: fake.OpList, Hang: true}, fake.Fault{Op: fake.OpStats, Hang: true})
		b := newBench(p, dead)
		r := b.run(t, "diagnose -o json")
		assert.Equal(t, 3, r.code, r.stderr)
		assert.Contains(t, r.stdout, `"provider": "dead"`)
		assert.Equal(t, "true", r.item(t)["verdict"], "of what was seen")
		p.Add(loop())
		assert.Equal(t, 10, b.run(t, "diagnose").code, "what was found counts more")
	})
}

// TestDiagnoseOfAnAPIThatAnswersEmpty: an error page in place of a listing is no empty fleet.
func TestDiagnoseOfAnAPIThatAnswersEmpty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(loop())
		p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "empty answer")})
		r := b.run(t, "diagnose -o json")
		assert.Contains(t, []int{3, 7}, r.code)
		assert.NotEqual(t, "true", r.item(t)["verdict"])
		assert.Contains(t, r.stdout, "unknown: ")
	})
}

// TestDiagnoseOfWhatVanishesBetweenTwoSteps: the record is there, and then nothing answers.
func TestDiagnoseOfWhatVanishesBetweenTwoSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(loop())
		for _, op := range []fake.Op{fake.OpUsage, fake.OpLogs, fake.OpProbe, fake.OpEvents, fake.OpHistory, fake.OpProcesses, fake.OpActivity, fake.OpExit} {
			p.Break(fake.Fault{Op: op, Err: fault.New(fault.KindNotFound, "no such sandbox")})
		}
		for _, line := range []string{"diagnose", "diagnose prod/loop0001"} {
			r := b.run(t, line)
			assert.NotEqual(t, 0, r.code, line)
			assert.NotContains(t, r.stderr, "internal")
		}
	})
}

func TestDiagnoseIsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(loop())
		p.Break(fake.Fault{Op: fake.OpList, Hang: true}, fake.Fault{Op: fake.OpStats, Hang: true})
		b.context = func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(fault.New(fault.KindCanceled, "interrupted")) })
			return ctx
		}
		assert.Equal(t, 130, b.run(t, "diagnose").code)
	})
}

// TestDiagnoseOfNobody: a word that nothing has, and a sandbox that another provider may have.
func TestDiagnoseOfNobody(t *testing.T) {
	t.Parallel()
	b, _ := oneFake()
	assert.Equal(t, 5, b.run(t, "diagnose prod/nosuch01").code)
	assert.Equal(t, 5, b.run(t, "diagnose t-k3v9x2mq7abc").code)
	assert.Equal(t, 2, b.run(t, "diagnose a b").code)
	assert.Equal(t, 2, b.runArgs(t, "diagnose", "--cleanup-log", "").code)
	assert.Equal(t, 2, b.run(t, "diagnose --cleanup-log /nonexistent/log").code)
}

// TestDiagnoseReadsTheLogOfAWorker: what it says counts beside the journals, and garbage nothing.
func TestDiagnoseReadsTheLogOfAWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(using("calm0001", time.Minute, growing(0.2, 0, 10)))
		flag := func(line string) (verdict string, code int, out string) {
			r := b.run(t, line)
			for _, f := range diagnosed(t, r).Flags {
				if f.ID == "cleanup_overdue" {
					verdict = f.Verdict
				}
			}
			return verdict, r.code, r.stdout
		}
		b.stdin = "2026-11-20T11:57:00Z Sandbox cleanup started\n2026-11-20T11:57:01Z Found 1 sandboxes to cleanup\n2026-11-20T11:57:01Z Cleaned up sandbox-1\n2026-11-20T11:57:02Z Cleanup completed\n"
		verdict, code, out := flag("diagnose -o json --cleanup-log -")
		assert.Equal(t, "false", verdict)
		assert.Equal(t, 0, code)
		assert.Contains(t, out, "yes: by standard input it last ran 2m58s ago")

		b.stdin = "2026-11-20T09:00:00Z Starting sandbox cleanup\n2026-11-20T09:00:01Z Cleanup job failed: Error: 500\n"
		verdict, code, out = flag("diagnose -o json --cleanup-log -")
		assert.Equal(t, "true", verdict)
		assert.Equal(t, 10, code)
		assert.Contains(t, out, "no, overdue")
		assert.Contains(t, out, "Cleanup job failed")

		for stdin, says := range map[string]string{
			"\x00\x01garbage\n\xff{]\n": "standard input is not a log: of its 2 lines none",
			"":                          "standard input has no lines",
			strings.Repeat("x", 70_000): "a line is longer than 64 KiB, the limit",
			"<html>sign in</html>":      "standard input is not a log",
			"\n \n":                     "standard input has no lines",
		} {
			b.stdin = stdin
			r := b.run(t, "diagnose --cleanup-log -")
			assert.Equal(t, 2, r.code, says)
			assert.Empty(t, r.stdout)
			assert.Contains(t, r.stderr, says)
			assert.Contains(t, r.stderr, "hint: ")
		}
		b.stdin = ""
		r := b.run(t, "diagnose --cleanup-log nosuch.log")
		assert.Equal(t, 2, r.code)
		assert.Contains(t, r.stderr, "nosuch.log: cannot be read: no such file or directory")
	})
}

// TestDiagnoseWhatRunsAfterItsEnd is S1-60: the record says failed, and the sandbox answers.
func TestDiagnoseWhatRunsAfterItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seed := running("ghost001", time.Hour)
		seed.Sandbox.State = sandbox.StateStopped
		b, _ := oneFake(seed)
		b.members = []providers.Provider{answering{b.members[0]}}
		r := b.run(t, "diagnose prod/ghost001 -o json")
		assert.Equal(t, 10, r.code)
		assert.Contains(t, r.stderr+r.stdout, "its record says that it has ended, but it runs")
		assert.Equal(t, "state_corruption", diagnosed(t, r).Causes[0].ID)
	})
}

// answering is a provider whose sandboxes answer, whatever their record says.
type answering struct{ providers.Provider }

func (answering) Probe(context.Context, string) (providers.Health, error) {
	return providers.Health{Verdict: sandbox.True}, nil
}

// TestADiagnosisWithoutListsKnowsNothing: it ends as `ls` does, whatever else is wrong, and no answer says that all is well.
// Where one list could be read, each answer names the other.
func TestADiagnosisWithoutListsKnowsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(quiet("aaaa0001", time.Hour))
		b.configure(t, onlyProd)
		p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
		want := b.run(t, "ls").code
		require.Equal(t, 7, want)
		r := b.run(t, "diagnose -o json")
		assert.Equal(t, want, r.code, r.stderr)
		var d struct {
			Item struct {
				Verdict string `json:"verdict"`
				diagnosis
			} `json:"item"`
		}
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &d))
		assert.Equal(t, "unknown", d.Item.Verdict)
		for _, s := range d.Item.Steps {
			for _, a := range s.Answers {
				assert.False(t, a.Known && (s.ID == "stuck" || s.ID == "logs" || s.ID == "resources"), "%s: %s", s.ID, a.Answer)
			}
		}
		page := b.run(t, "diagnose").stdout
		assert.NotContains(t, page, "none is stuck")
		assert.NotContains(t, page, "all are young")
	})
}
