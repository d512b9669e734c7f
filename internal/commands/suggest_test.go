package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/testkit/fake"
)

// TestFamiliarWordsLeadToTheVerb: each word of another tool is wrong use, and the hint is the
// whole line to type instead.
func TestFamiliarWordsLeadToTheVerb(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"ps":                               "`sbx ls`",
		"ps -a":                            "`sbx ls --all`",
		"ps -o json":                       "`sbx ls -o json`",
		"rm e2b/x":                         "`sbx terminate e2b/x`",
		"rm -f e2b/x e2b/y --provider e2b": "`sbx terminate e2b/x e2b/y --provider e2b`",
		"rm t-k3v9x2mq7abc":                "`sbx stop t-k3v9x2mq7abc`",
		"rm":                               "`sbx terminate REF`",
		"kill -9 e2b/x --grace 1s":         "`sbx terminate e2b/x --grace 1s`",
		"delete e2b/x":                     "`sbx terminate e2b/x`",
		"show e2b/x":                       "`sbx inspect e2b/x`",
		"show t-k3v9x2mq7abc":              "`sbx tasks show t-k3v9x2mq7abc`",
		"get":                              "`sbx ls`",
		"get e2b/x":                        "`sbx inspect e2b/x`",
		"describe e2b/x":                   "`sbx inspect e2b/x`",
		"info":                             "`sbx doctor`",
		"status":                           "`sbx stats`",
		"status e2b/x":                     "`sbx inspect e2b/x`",
		"attach e2b/x":                     "`sbx shell e2b/x`",
		"ssh e2b/x ls -l /tmp":             "`sbx exec -it e2b/x -- ls -l /tmp`",
		"bash e2b/x -- zsh":                "`sbx exec -it e2b/x -- zsh`",
		"ssh":                              "`sbx shell REF`",
		"ls --format {{.ref}}":             "`sbx ls -o 'template={{.ref}}'`",
		"ls --format=id":                   "`sbx ls -o json`",
		"ls --format yaml":                 "`sbx ls --output yaml`",
		"ls --filter state=running":        "`sbx ls --state running`",
		"ls --filter=status=running -q":    "`sbx ls --state running -q`",
		"ls --filter team=a":               "`sbx ls --label team=a`",
		"report --format html":             "`sbx report -o json`",
		"tasks stop t-abcdefg":             "`sbx stop t-abcdefg`",
		"tasks logs t-abcdefg":             "`sbx logs t-abcdefg`",
		"cp":                               "`sbx exec REF -- cat PATH > FILE`",
		"cp e2b/x:/tmp/a .":                "`sbx exec e2b/x -- cat /tmp/a > ./a`",
		"cp a e2b/x:/tmp/a":                "`sbx exec -i e2b/x -- sh -c 'cat > /tmp/a' < a`",
		"prune --older-than 10m":           "`sbx cleanup --older-than 10m`",
		"cancel t-k3v9x2mq7abc":            "`sbx stop t-k3v9x2mq7abc`",
		"inspct e2b/x":                     "`sbx inspect e2b/x`",
		"tasks rm t-k3v9x2mq7abc":          "`sbx stop t-k3v9x2mq7abc`",
		"tasks get t-k3v9x2mq7abc":         "`sbx tasks show t-k3v9x2mq7abc`",
		"config show":                      "`sbx config explain`",
		"cron install":                     "`sbx cron print`",
		"cleanup list":                     "`sbx cleanup runs`",
		"ls local/x":                       "`sbx inspect local/x`",
		"exec local/x ls -l":               "`sbx exec local/x -- ls -l`",
		"exec -it local/x bash":            "`sbx exec -it local/x -- bash`",
		"run --memory 256M sleep 60":       "`sbx run --memory 256M -- sleep 60`",
		"cleanup --olderthan 10m":          "`sbx cleanup --older-than 10m`",
		"cleanup --older 10m":              "`sbx cleanup --older-than 10m`",
		"cleanup --age=10m --label a=b":    "`sbx cleanup --older-than=10m --label a=b`",
		"reconcile --dry-run":              "`sbx reconcile`",
		"terminate e2b/x --force":          "needs no force: `sbx terminate e2b/x`; --yes",
		"terminate -f e2b/x":               "needs no force: `sbx terminate e2b/x`; --yes",
		"ps aux":                           "`sbx ls`?",
		"prune n1":                         "`sbx cleanup`?",
		"ls --newer-than 1h":               "`sbx ls --younger-than 1h`",
		"ls --json":                        "`sbx ls -o json`",
		"stop local/x":                     "`sbx terminate local/x`",
		"stop local/x t-abcdefg":           "`sbx terminate local/x`",
		"tasks show local/x":               "`sbx inspect local/x`",
		"help rm":                          "`sbx help terminate`",
		"get pods":                         "`sbx ls`",
		"container ls -a":                  "`sbx ls --all`",
		"sandbox rm e2b/x":                 "`sbx terminate e2b/x`",
		"system prune":                     "`sbx cleanup`",
		"apply -f tasks.yaml":              "`sbx run --file tasks.yaml`",
		"apply":                            "`sbx run --file FILE`",
		"create -f tasks.yaml":             "`sbx run --file FILE`",
		"cordon e2b/x":                     "`sbx keep e2b/x`",
		"terminate --all":                  "`sbx cleanup --older-than 10m`",
		"stop --all":                       "`sbx tasks --state running -o name | sbx stop -`",
		"runs":                             "`sbx tasks`",
		"auth login":                       "`sbx doctor`",
		"watch":                            "`sbx dashboard`",
		"history":                          "`sbx audit`",
		"metrics":                          "`sbx top`",
		"profiles":                         "`sbx providers`",
		"config get-contexts":              "`sbx config explain`",
		"tasks ls":                         "`sbx tasks`",
		"providers list":                   "`sbx providers`",
		"ls -A":                            "it covers all profiles: `sbx ls`",
		"ls -n local":                      "`sbx ls --provider local`",
		"ls --context local":               "`sbx ls --provider local`",
		"ls --json ref,state":              "`sbx ls -o json --columns ref,state`",
		"inspect --json e2b/x":             "`sbx inspect -o json e2b/x`",
		"ls --field-selector status.phase=Running": "`sbx ls --state running`",
		"ls --sort-by age":                         "`sbx ls --sort age`",
		"run -d -- sleep 5":                        "`sbx run --detach -- sleep 5`",
		"run -e A=1 -- true":                       "`sbx run --env A=1 -- true`",
		"run --rm -- true":                         "removed when its task ends: `sbx run -- true`",
		"run --file a.yaml --warm 2 --parallel 2":  "--warm is gone, each task creates its sandbox: `sbx run --file a.yaml --parallel 2`",
		"run --warm=2 --file a.yaml":               "--warm is gone, each task creates its sandbox: `sbx run --file a.yaml`",
		"terminate --grace-period 30 x":            "`sbx terminate --grace 30s x`",
		"stats --no-stream":                        "it prints once and ends: `sbx stats`",
		"audit --tail 5":                           "`sbx audit --limit 5`",
		"help exit":                                "`sbx help exit-codes`",
		"run -d ubuntu sleep 10":                   "`sbx run --detach --image ubuntu -- sleep 10`",
		"run --rm -it agent bash -l":               "`sbx run --image agent -- bash -l`",
		"run --memory 1G ghcr.io/o/a:1 sleep 10":   "`sbx run --memory 1G --image ghcr.io/o/a:1 -- sleep 10`",
		"create ubuntu":                            "`sbx create --image ubuntu -- COMMAND`",
		"create -d ubuntu:24.04 sleep 9":           "`sbx create --image ubuntu:24.04 -- sleep 9`",
		"create python app.py":                     "`sbx create -- python app.py`",
		"-n prod ls":                               "`sbx --provider prod ls`",
		"ls -n staging":                            "`sbx ls --provider staging`",
		"ls stuck":                                 "`sbx ls --stuck`",
		"ls -o wide stuck":                         "`sbx ls -o wide --stuck`",
		"ls --stuck true":                          "--stuck is a switch: `sbx ls --stuck`",
		"ls --stuck false":                         "--stuck is a switch that is off: `sbx ls`",
		"ls running":                               "`sbx ls --state running`",
		"cleanup stuck":                            "`sbx cleanup --stuck`",
		"cleanup all":                              "`sbx cleanup --older-than 10m` prints a plan",
		"cleanup --yes true":                       "`sbx cleanup --yes`",
		"pause local/x":                            "sbx pauses nothing: `sbx terminate REF`",
		"renew local/x --ttl 1h":                   "`sbx extend local/x --ttl 1h`",
		"snapshot local/x":                         "`sbx create --snapshot NAME -- COMMAND`",
		"update":                                   "`sbx version`",
		"login":                                    "`sbx config init --type TYPE`",
		"sandbox pause local/x":                    "sbx pauses nothing",
		"config set launch local":                  "`sbx config path`",
		"help stuck":                               "`sbx help glossary`",
		"runbook sandbox-stuck":                    "`sbx runbook run sandbox-stuck`",
		"ls --state stuck":                         "--stuck selects by it",
		"ls --columns ref,team":                    "-o template='{{.ref}} {{.labels.team}}'",
		"cp -r local/x:/out .":                     "`sbx exec local/x -- tar -C /out -c . | tar -x -C .`",
	} {
		r := newBench().run(t, line)
		assert.Contains(t, []int{2, 3}, r.code, line)
		assert.Contains(t, r.stderr, want, line)
	}
	r := newBench().run(t, "terminate t-abcdefg")
	assert.Equal(t, 5, r.code)
	assert.Contains(t, r.stderr, "`sbx stop t-abcdefg`")
}

// TestAProfileIsNoReference: nothing is called, and above all nothing ended, where a profile was typed as a word of its own.
func TestAProfileIsNoReference(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"terminate prod aaaa":               "`sbx terminate prod/aaaa`",
		"terminate prod aaaa --yes":         "`sbx terminate prod/aaaa --yes`",
		"terminate --delete prod prod/aaaa": "write a sandbox as prod/ID",
		"inspect prod aaaa":                 "`sbx inspect prod/aaaa`",
		"keep prod aaaa":                    "`sbx keep prod/aaaa`",
		"logs prod aaaa":                    "`sbx logs prod/aaaa`",
		"top prod aaaa":                     "`sbx top prod/aaaa`",
		"wait prod aaaa --for ended":        "`sbx wait prod/aaaa --for ended`",
		"shell prod aaaa":                   "`sbx shell prod/aaaa`",
		"exec prod aaaa -- ls":              "`sbx exec prod/aaaa -- ls`",
		"stop prod aaaa":                    "`sbx stop prod/aaaa`",
	} {
		b, p := oneFake(running("aaaa", 0))
		b.configure(t, onlyProd)
		r := b.run(t, line)
		assert.Equal(t, 2, r.code, "%s: %s", line, r.stderr)
		assert.Contains(t, r.stderr, `"prod" is a profile, not a sandbox`, line)
		assert.Contains(t, r.stderr, want, line)
		assert.Empty(t, p.Calls(fake.OpTerminate), line)
	}
	b, _ := oneFake(running("aaaa", 0))
	for line, want := range map[string]string{
		"inspect i4": "the beginning of an id needs 4 characters or more", "terminate i4": "4 characters or more",
		"inspect PROD/aaaa":    "did you mean prod? Capitals count",
		`ls --where team=="x"`: "a label is written labels.team",
	} {
		assert.Contains(t, b.run(t, line).stderr, want, line)
	}
}

// TestSuggestionsHideControlCharacters: a word of the command line may come from elsewhere.
func TestSuggestionsHideControlCharacters(t *testing.T) {
	t.Parallel()
	r := newBench().runArgs(t, "rm", "e2b/\x1b]0;owned\x07")
	assert.Equal(t, 2, r.code)
	assert.NotContains(t, r.stderr, "\x1b")
	assert.Contains(t, r.stderr, "`sbx --help` lists the commands")
}

// TestFlagErrorsSayWhatToType, without a word of Go.
func TestFlagErrorsSayWhatToType(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"ls --limit x":                    {`ls: --limit: "x" is not a whole number`, "--limit N"},
		"ls --limit 99999999999999999999": {`"99999999999999999999" is too large`},
		"ls --watch=x":                    {"it is a switch and takes no value"},
		"create --cpu x -- true":          {`--cpu: "x" is not a number`, "--cpu CORES"},
		"ls --older-than":                 {"--older-than needs a value", "--older-than AGE"},
		"ls -o":                           {"--output needs a value", "--output FORMAT"},
		"ls --provider \"":                {"is not a list of words"},
		"ls ---x":                         {`"---x" is no flag`},
		"ls --nosuch":                     {"unknown flag --nosuch", "`sbx ls --help` lists the flags"},
		"--nosuch":                        {"sbx: error: unknown flag --nosuch"},
		"inspect":                         {"no REF was given"},
		"logs a b":                        {"it takes one REF, but 2 were given"},
		"completion tcsh":                 {`there is no script for "tcsh"`},
		"lss":                             {"did you mean `sbx ls`?"}, // `logs` stands before it and is two edits away
		"lsit":                            {"did you mean `sbx list`?"},
		"terminat":                        {"did you mean `sbx terminate`?"},
		"term":                            {"did you mean `sbx terminate`?"},
		"frobnicat":                       {"`sbx --help` lists the commands"},
	} {
		r := newBench().run(t, line)
		assert.Equal(t, 2, r.code, line)
		assert.Empty(t, r.stdout, line)
		for _, part := range want {
			assert.Contains(t, r.stderr, part, line)
		}
		assert.NotRegexp(t, `strconv|parse error|arg\(s\)|invalid argument`, r.stderr, line)
	}
}

// TestVersionFlags print what the verb prints, in each format.
func TestVersionFlags(t *testing.T) {
	t.Parallel()
	want := newBench().run(t, "version -o json").stdout
	for _, line := range []string{"--version -o json", "-V -o json", "-o json -V"} {
		r := newBench().run(t, line)
		assert.Equal(t, 0, r.code, line)
		assert.Equal(t, want, r.stdout, line)
	}
	assert.Equal(t, newBench().run(t, "version").stdout, newBench().run(t, "-V").stdout)
	assert.Equal(t, 2, newBench().run(t, "-V -o nagios").code)
}
