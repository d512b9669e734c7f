package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// tree is every command of the program by its path without the program's name,
// the root as "".
func tree(t *testing.T, b *bench) map[string]*cobra.Command {
	t.Helper()
	all := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		all[path] = cmd
		for _, sub := range cmd.Commands() {
			if !sub.Hidden { // nobody types those
				walk(sub)
			}
		}
	}
	walk(NewRoot(b.deps(t)))
	return all
}

// examples is a bench over what the examples of the help name: `local` with the
// sandbox k3v9x2mq7a, and `prod`.
func examples(t *testing.T) (*bench, []*fake.Provider) {
	t.Helper()
	local := fake.New(fake.Options{Name: "local", Type: "local", Now: atNoon})
	one := running("k3v9x2mq7a", 20*time.Minute)
	one.Sandbox.Name, one.Sandbox.Activity = "crawler", sandbox.False
	one.Logs = []sandbox.LogLine{{At: noon.Add(-time.Minute), Stream: "stdout", Text: "error: \x1b[31mred\x1b[0m"}}
	stuck := running("q7ak3v9x2m", 20*time.Minute) // and nothing keeps it
	stuck.Sandbox.Activity = sandbox.False
	local.Add(one, stuck)
	prod := fake.New(fake.Options{Name: "prod", Now: atNoon})
	prod.Add(running("aaaa", time.Minute))
	b := newBench(local, prod).configureNothing(t)
	keepTask(t, b)
	b.workdir = filepath.Join(b.home, "project")
	require.NoError(t, os.Mkdir(b.workdir, 0o755))
	for _, name := range []string{"session", "good", "bad"} {
		require.NoError(t, os.WriteFile(filepath.Join(b.workdir, name+".jsonl"), []byte(sessionLines), 0o600))
	}
	for name, text := range map[string]string{"base.yaml": "daytona: {sandbox_memory_gb: 4}\n", "production.yaml": "daytona: {sandbox_cpu: 4}\n", ".env": "SANDBOX_IMAGE=agent:1\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(b.workdir, name), []byte(text), 0o600))
	}
	return b, []*fake.Provider{local, prod}
}

// keepTask gives a bench the task t-k3v9x2mq7abc, which has completed and keeps the
// sandbox k3v9x2mq7a.
func keepTask(t *testing.T, b *bench) {
	t.Helper()
	code := 0
	one := task.New("t-k3v9x2mq7abc", "", task.Spec{Provider: "local", Command: []string{"true"}, Attempts: 3}, task.Owner{Host: "cron-1", PID: 1, Who: "test"}, noon)
	one.State, one.EndedAt, one.VerifiedAt = task.Completed, noon, noon
	one.Attempts = []task.Attempt{{N: 1, Provider: "local", Sandbox: "k3v9x2mq7a", IntentAt: noon, StartedAt: noon, EndedAt: noon, Exit: &task.Exit{Code: &code, Raw: "0", Class: sandbox.ClassOK}}}
	one.Kept = &task.Kept{Ref: one.Attempts[0].Ref(), ExpiresAt: noon.Add(time.Hour)}
	_, _, err := task.Ledger{Store: b.kept(atNoon)}.Add(t.Context(), one)
	require.NoError(t, err)
}

func TestEveryCommandIsComplete(t *testing.T) {
	t.Parallel()
	for path, cmd := range tree(t, newBench()) {
		assert.NotEmpty(t, cmd.Short, path)
		assert.NotEmpty(t, cmd.Long, path)
		assert.NotRegexp(t, `\.$`, cmd.Short, path)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { assert.NotEmpty(t, f.Usage, path+" --"+f.Name) })
		if cmd.IsAdditionalHelpTopicCommand() {
			continue
		}
		assert.NotNil(t, cmd.Args, path+": says which arguments it takes")
		assert.NotEmpty(t, cmd.Example, path)
		if path != "" && !strings.Contains(path, " ") {
			assert.NotEmpty(t, cmd.GroupID, path)
		}
		if takesArguments(cmd) {
			assert.True(t, cmd.ValidArgsFunction != nil || len(cmd.ValidArgs) > 0, path+": completes its arguments")
		} else {
			assert.Equal(t, 2, fault.ExitCode(cmd.Args(cmd, []string{"surplus"})), path+": refuses surplus words")
		}
	}
}

func takesArguments(cmd *cobra.Command) bool { return strings.Contains(cmd.Use, " ") }

// exampleLimit, in virtual time, ends examples that go on until they are
// interrupted.
const exampleLimit = 20 * time.Second

func TestEveryExampleRuns(t *testing.T) {
	t.Parallel()
	for path, cmd := range tree(t, newBench()) {
		for line := range strings.Lines(cmd.Example) {
			line = strings.TrimSpace(line)
			bubble.Run(t, line, func(t *testing.T) { exampleRuns(t, path, line) })
		}
	}
}

func exampleRuns(t *testing.T, path, line string) {
	t.Helper()
	b, _ := examples(t)
	b.context = func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(exampleLimit, cancel)
		t.Cleanup(func() { timer.Stop(); cancel() })
		return ctx
	}
	var last result
	for part := range strings.SplitSeq(line, " | ") {
		words := splitLine(part)
		require.Equal(t, "sbx", words[0])
		b.stdin = cmp.Or(last.stdout, "2026-11-20T11:59:00Z Starting sandbox cleanup\n") // where an example reads a log
		last = b.runArgs(t, words[1:]...)
		if needsTerminal()[part] {
			assert.Equal(t, 2, last.code, part)
			assert.Contains(t, last.stderr, "needs a terminal")
			continue
		}
		documented := slices.ContainsFunc(fault.Table(), func(r fault.Row) bool { return r.Code == last.code })
		assert.True(t, documented && last.code != 1 && last.code != 2, "%s: %q exits %d: %s", path, part, last.code, last.stderr)
	}
}

// needsTerminal are examples that a pipe cannot run.
func needsTerminal() map[string]bool {
	return map[string]bool{"sbx shell local/k3v9x2mq7a": true, "sbx dashboard": true, "sbx dashboard --provider local": true, "sbx drill --live": true}
}

func TestSplitLine(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"a", "b c", "", "d'e", "fg"}, splitLine(`a 'b c'  "" "d'e" f"g"`))
}

// documents is one line for each verb that prints a document.
func documents() map[string]string {
	return map[string]string{
		"ls": "ls", "stats": "stats", "diagnose": "diagnose", "verify": "verify", "dashboard": "dashboard --once", "top": "top --samples 1", "drill": "drill --clean",
		"inspect": "inspect local/k3v9x2mq7a", "logs": "logs local/k3v9x2mq7a", "events": "events session.jsonl", "events compare": "events compare good.jsonl bad.jsonl",
		"wait": "wait local/k3v9x2mq7a --for running", "create": "create -- sleep 1", "keep": "keep local/k3v9x2mq7a", "extend": "extend local/k3v9x2mq7a --ttl 1000h", "terminate": "terminate local/k3v9x2mq7a",
		"cron print": "cron print", "cron check": "cron check",
		"doctor": "doctor", "providers": "providers", "version": "version",
		"cleanup": "cleanup", "cleanup runs": "cleanup runs", "cleanup status": "cleanup status", "cleanup show": "cleanup show r-nosuch",
		"reconcile": "reconcile",
		"run":       "run -- true", "stop": "stop t-k3v9x2mq7abc", "tasks": "tasks", "audit": "audit", "report": "report", "tasks show": "tasks show t-k3v9x2mq7abc",
		"resume":     "resume t-k3v9x2mq7abc -- true",
		"runbook ls": "runbook ls", "runbook run": "runbook run sandbox-stuck", "runbook runs": "runbook runs", "runbook status": "runbook status", "runbook show": "runbook show sandbox-stuck", "runbook lint": "runbook lint",
		"runbook new": "runbook new my-alert --out -", "runbook rules": "runbook rules",
		"incident note": "incident note x", "incident report": "incident report --since 1h",
		"config explain": "config explain", "config init": "config init", "config own": "config own --provider local --all --dry-run", "config path": "config path", "config suggest": "config suggest",
		"config import": "config import --from base.yaml",
	}
}

// refusing is one line for each verb that has no document.
func refusing() map[string]string {
	return map[string]string{"exec": "exec local/k3v9x2mq7a -- true", "shell": "shell local/k3v9x2mq7a", "completion": "completion bash", "mcp": "mcp"}
}

// onlyHelps says that a command does nothing but hold others.
func onlyHelps(cmd *cobra.Command) bool {
	_, verb := cmd.Annotations[columnsKey]
	return cmd.HasSubCommands() && !verb
}

func TestEveryVerbIsListed(t *testing.T) {
	t.Parallel()
	for path, cmd := range tree(t, newBench()) {
		if cmd.IsAdditionalHelpTopicCommand() || onlyHelps(cmd) {
			continue
		}
		_, prints := documents()[path]
		_, refuses := refusing()[path]
		assert.NotEqual(t, prints, refuses, "%q needs a line in documents() or in refusing()", path)
	}
}

func TestEveryVerbPrintsOneDocument(t *testing.T) {
	t.Parallel()
	down := func(p *fake.Provider) {
		for _, op := range []fake.Op{fake.OpList, fake.OpGet, fake.OpTerminate, fake.OpLogs, fake.OpUsage, fake.OpStats, fake.OpCreate, fake.OpProbe, fake.OpEvents} {
			p.Break(fake.Fault{Op: op, Err: fault.New(fault.KindUnavailable, "503")})
		}
	}
	situations := map[string]func(*testing.T, *bench, []*fake.Provider){
		"normal": func(*testing.T, *bench, []*fake.Provider) {},
		"empty": func(_ *testing.T, b *bench, _ []*fake.Provider) {
			b.members = newBench(fake.New(fake.Options{Name: "local", Type: "local"}), fake.New(fake.Options{Name: "prod"})).members
		},
		"one fails":   func(_ *testing.T, _ *bench, p []*fake.Provider) { down(p[1]) },
		"all fail":    func(_ *testing.T, _ *bench, p []*fake.Provider) { down(p[0]); down(p[1]) },
		"interrupted": func(_ *testing.T, b *bench, _ []*fake.Provider) { b.context = canceled },
		"refused": func(t *testing.T, b *bench, _ []*fake.Provider) {
			t.Helper()
			b.configureAnew(t, "{}\n")
			require.NoError(t, os.Chmod(filepath.Join(b.home, ".config", "sbx", "config.yaml"), 0o666))
		},
	}
	known := tree(t, newBench())
	for path, line := range documents() {
		if known[path] == nil {
			continue
		}
		for name, prepare := range situations {
			bubble.Run(t, path+" "+name, func(t *testing.T) { // a launch tries again, minutes later
				b, fakes := examples(t)
				prepare(t, b, fakes)
				words := strings.Fields(line)
				r := b.runArgs(t, append([]string{"-o", "json"}, words...)...)
				require.NotEqual(t, 2, r.code, r.stderr)
				o := r.object(t)
				assert.Equal(t, "sbx."+strings.ReplaceAll(path, " ", ".")+"/v1", o["schema"])
				require.Contains(t, o, "errors")
				assert.Equal(t, r.code == 0, len(r.list(t, "errors")) == 0, "exit %d: %s", r.code, r.stdout)
				assert.Equal(t, r.code == 130, o["interrupted"])
				assert.NotContains(t, r.stderr, "error:", "errors stand in the document")
				assertEnvelope(t, o)
			})
		}
	}
}

// assertEnvelope holds E of the JSON envelope, and what a list has.
func assertEnvelope(t *testing.T, o map[string]any) {
	t.Helper()
	assert.IsType(t, []any{}, o["errors"])
	if _, isList := o["items"]; isList {
		assert.Contains(t, o, "complete")
	}
}

func TestVerbsWithoutADocumentRefuseOne(t *testing.T) {
	t.Parallel()
	known := tree(t, newBench())
	for path, line := range refusing() {
		if known[path] == nil {
			continue
		}
		b, _ := examples(t)
		r := b.runArgs(t, append([]string{"-o", "json"}, strings.Fields(line)...)...)
		assert.Equal(t, 2, r.code, path)
		assert.Empty(t, r.stdout, path)
		assert.True(t, json.Valid([]byte(r.stderr)), path+": "+r.stderr)
	}
}

func TestEveryCommandFollowsItsName(t *testing.T) {
	t.Parallel()
	ours := regexp.MustCompile("(?m)(^ *|\\| |`)sbx ")
	b, _ := examples(t)
	b.name = "/opt/bin/other"
	for path := range tree(t, newBench()) {
		help := b.runArgs(t, append(strings.Fields(path), "--help")...)
		if path == "exit-codes" {
			help = b.run(t, "help exit-codes")
		}
		assert.Empty(t, ours.FindString(help.stdout), path+":\n"+help.stdout)
		assert.Empty(t, help.stderr)
		wrong := b.runArgs(t, append(strings.Fields(path), "--no-such-flag")...)
		assert.Empty(t, wrong.stdout, path)
		for line := range strings.Lines(wrong.stderr) {
			assert.True(t, strings.HasPrefix(line, "other: "), line)
			assert.Empty(t, ours.FindString(line), line)
		}
	}
	missing := b.run(t, "terminate zzzz")
	assert.Contains(t, missing.stderr, "`other ls --all`")
}

func TestCompletionOffersWhatFits(t *testing.T) {
	t.Parallel()
	b, _ := examples(t)
	for line, want := range map[string]string{
		"terminate |":               "local/k3v9x2mq7a\tcrawler running",
		"terminate local/x |":       "prod/aaaa\trunning",
		"completion |":              "fish",
		"ls -o|":                    "ndjson",
		"ls --columns|":             "stuck_reason",
		"ls --provider|":            "local",
		"ls --state|":               "running",
		"terminate --production|":   ":4",
		"help |":                    "selectors\tHow to choose sandboxes: ages, times, labels, states",
		"help json |":               "cleanup.show",
		"config init --type |":      "fake",
		"config init |":             ":0", // files are the shell's business
		"config init some.yaml |":   ":4",
		"doctor -o|":                "nagios",
		"providers --columns|":      "abilities",
		"config explain --columns|": "origin",
	} {
		words := strings.Fields(strings.TrimSuffix(line, "|"))
		r := b.runArgs(t, append(append([]string{"__complete"}, words...), "")...)
		assert.Contains(t, strings.Split(r.stdout, "\n"), want, line)
	}
}

func TestHelpPages(t *testing.T) {
	t.Parallel()
	b, _ := examples(t)
	golden(t, "help", b.run(t, "--help").stdout)
	golden(t, "help-terminate", b.run(t, "terminate --help").stdout)
	golden(t, "help-doctor", b.run(t, "doctor --help").stdout)
	assert.Equal(t, b.run(t, "--help").stdout, b.run(t, "").stdout, "in a pipe the program alone is help")
	assert.Contains(t, b.run(t, "help completion").stdout, "\nfish:        sbx completion fish | source\n", "what is typed keeps its line")
	assert.Equal(t, b.run(t, "json --help").stdout, b.run(t, "json -h").stdout)
}

// TestHelpFitsATerminal of 80 columns, of every command and every topic.
func TestHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	lines := []string{"help json", "help glossary"}
	for _, name := range documentNames() {
		lines = append(lines, "help json "+name)
	}
	for path, cmd := range tree(t, newBench()) {
		if cmd.IsAdditionalHelpTopicCommand() {
			lines = append(lines, "help "+path)
		} else {
			lines = append(lines, path+" --help")
		}
	}
	for _, one := range lines {
		r := newBench().run(t, one)
		require.Equal(t, 0, r.code, "%s: %s", one, r.stderr)
		for line := range strings.Lines(r.stdout) {
			assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 80, "%s: %s", one, line)
		}
	}
}

// TestHelpOfDocuments explains each verb's document, and prints its schema.
func TestHelpOfDocuments(t *testing.T) {
	t.Parallel()
	b := newBench()
	assert.Contains(t, b.run(t, "help json").stdout, "\n  cleanup.show\n")
	assert.Contains(t, b.run(t, "help json inspect").stdout, "- `item.usage.cpu_percent` (number, null):")
	assert.Equal(t, b.run(t, "help json cleanup.show").stdout, b.run(t, "help json cleanup show").stdout)
	r := b.run(t, "help json --schema ls")
	assert.Equal(t, "sbx.ls/v1", r.object(t)["title"])
	assert.Equal(t, r.stdout, b.run(t, "help json --schema sbx.ls/v1").stdout)
	assert.Contains(t, b.run(t, "help json --schema inspec").stderr, "did you mean inspect?")
	for path, cmd := range tree(t, newBench()) {
		if _, prints := documents()[path]; prints && cmd != nil {
			assert.Contains(t, documentNames(), strings.ReplaceAll(path, " ", "."), "describe it in internal/documents")
		}
	}
}
