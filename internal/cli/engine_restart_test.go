//go:build unix

package cli_test

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

// restartVariable is a shell command that restarts the engine, or the API server, that a stage of .ci/run has started.
const restartVariable = "SBX_TEST_RESTART"

// realProfile is the configuration of a profile `real` of the engine or the cluster of a stage; without one the test is skipped.
// The programs of its sandboxes reach the loopback of this machine.
func realProfile(t *testing.T) string {
	t.Helper()
	engine, cluster := os.Getenv("SBX_TEST_DOCKER"), os.Getenv("SBX_TEST_KUBERNETES")
	switch {
	case engine != "":
		return "{type: docker, host: '" + engine + "', image: 'sbxtest:1', network: host" + viewOfTest() + "}"
	case cluster != "":
		return "{type: kubernetes, kubeconfig: '" + cluster + "', image: 'sbxtest:1'" + viewOfTest() + "}"
	}
	t.Skip("no real engine: `.ci/run docker`, `podman` and `kubernetes` start one")
	return ""
}

// viewOfTest narrows a profile to the sandboxes of one test: the engine is one for all.
func viewOfTest() string { return ", label: 'sbx-view=" + strings.ToLower(rand.Text()) + "'" }

// started is one start of a program: its connection to the test lives as long as it does.
type started struct {
	begun, closed time.Time // closed is zero while it runs
	done          bool      // it ran to its end
}

// programCounter counts the programs of tasks from outside.
type programCounter struct {
	net.Listener

	mu  sync.Mutex
	all map[string][]*started
}

func newProgramCounter(t *testing.T) *programCounter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &programCounter{Listener: l, all: map[string][]*started{}}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.follow(conn)
		}
	}()
	return c
}

func (c *programCounter) follow(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var one *started
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		word, name, _ := strings.Cut(lines.Text(), " ")
		c.mu.Lock()
		switch word {
		case "begin":
			one = &started{begun: time.Now()}
			c.all[name] = append(c.all[name], one)
		case "end":
			one.done = true
		}
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if one != nil {
		one.closed = time.Now()
	}
}

// running is how many programs run.
func (c *programCounter) running() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, starts := range c.all {
		for _, s := range starts {
			if s.closed.IsZero() {
				n++
			}
		}
	}
	return n
}

// shell is a program that runs for some seconds.
func (c *programCounter) shell(name string, seconds, code int) string {
	_, port, _ := net.SplitHostPort(c.Addr().String())
	return fmt.Sprintf(`{ echo begin %s; for i in $(seq %d); do echo at work >&2; sleep 1; done; echo end %s; } | busybox nc 127.0.0.1 %s; exit %d`, name, seconds, name, port, code)
}

// exitOfTask is the exit code of the program of a task.
func exitOfTask(n int) int {
	if n%7 == 6 {
		return 3
	}
	return 0
}

// TestRealEngine plays what needs the engine, or the cluster, of a stage of .ci/run and the whole program: one after the
// other, since the engine is restarted in the midst of it.
func TestRealEngine(t *testing.T) {
	t.Parallel()
	realProfile(t)
	t.Run("costs", checkCosts)                                //nolint:paralleltest // they follow each other
	t.Run("lists and ends", checkListsAndEndsThroughARestart) //nolint:paralleltest // they follow each other
	t.Run("tasks", checkTasksThroughARestart)                 //nolint:paralleltest // they follow each other
}

// engineHome is a home with a profile `real`.
type engineHome struct{ dir string }

func newEngineHome(t *testing.T, profile string) engineHome {
	t.Helper()
	h := engineHome{t.TempDir()}
	h.write(t, ".config/sbx/config.yaml", "providers:\n  real: "+profile+"\n")
	return h
}

func (h engineHome) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(h.dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (h engineHome) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sbx", args...)
	c.Env = append(os.Environ(), "HOME="+h.dir, "XDG_CONFIG_HOME="+filepath.Join(h.dir, ".config"), "SBX_STATE_DIR="+filepath.Join(h.dir, "state"))
	return c
}

// restartEngine restarts the engine, or the API server.
func restartEngine(t *testing.T) {
	t.Helper()
	command := os.Getenv(restartVariable)
	assert.NotEmpty(t, command, "%s is not set", restartVariable)
	said, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
	assert.NoError(t, err, "%s", said)
}

// restartBeside restarts the engine after some time, beside the test. The channel is closed when it is over.
func restartBeside(t *testing.T, after time.Duration) (over chan struct{}) {
	t.Helper()
	over = make(chan struct{})
	go func() {
		defer close(over)
		time.Sleep(after)
		restartEngine(t)
	}()
	return over
}

// checkListsAndEndsThroughARestart: a list is whole or says that it is not, and what is said to have ended has.
func checkListsAndEndsThroughARestart(t *testing.T) {
	const many = 10
	home := newEngineHome(t, realProfile(t))
	var refs []string
	for range many {
		made, err := home.command(t, "create", "--provider", "real", "--", "sleep", "600").Output()
		require.NoError(t, err)
		refs = append(refs, strings.TrimSpace(string(made)))
	}
	listed := func() (refs []string, complete bool) {
		out, err := home.command(t, "ls", "--provider", "real", "--all", "--timeout", "20s", "-o", "json").Output()
		var list struct {
			Items []struct {
				Ref string `json:"ref"`
			} `json:"items"`
			Complete bool `json:"complete"`
		}
		require.NoError(t, json.Unmarshal(out, &list), "%s", out)
		assert.Equal(t, list.Complete, err == nil, "%v", err)
		for _, item := range list.Items {
			refs = append(refs, item.Ref)
		}
		return refs, list.Complete
	}
	over := restartBeside(t, 0)
	whole, broken := 0, 0
	for last := false; !last; {
		select {
		case <-over:
			last = true
		default:
		}
		if found, complete := listed(); complete {
			whole++
			assert.ElementsMatch(t, refs, found)
		} else {
			broken++
		}
	}
	t.Logf("lists during a restart: %d whole, %d not", whole, broken)

	terminate := func() map[string]string {
		out, _ := home.command(t, append([]string{"terminate", "--delete", "--yes", "-o", "json"}, refs...)...).Output() // its items say what failed
		var ended struct {
			Items []struct {
				Ref     string `json:"ref"`
				Outcome string `json:"outcome"`
			} `json:"items"`
		}
		require.NoError(t, json.Unmarshal(out, &ended), "%s", out)
		outcomes := map[string]string{}
		for _, item := range ended.Items {
			outcomes[item.Ref] = item.Outcome
		}
		return outcomes
	}
	over = restartBeside(t, 200*time.Millisecond)
	outcomes := terminate()
	t.Logf("ends through a restart: %v", outcomes)
	<-over
	var left []string
	require.Eventually(t, func() bool {
		var complete bool
		left, complete = listed()
		return complete
	}, tiertest.Limit(t), time.Second)
	for ref, outcome := range outcomes {
		if outcome == "verified" || outcome == "already_gone" {
			assert.NotContains(t, left, ref, "its end was %s", outcome)
		}
	}
	if len(left) > 0 {
		t.Logf("again: %v", terminate())
		left, _ = listed()
	}
	assert.Empty(t, left)
}

// checkTasksThroughARestart runs twenty tasks, ten at once, and restarts the engine while their programs run. No program runs
// twice at once, each start is an attempt, each outcome is that of its last program, and nothing is left.
func checkTasksThroughARestart(t *testing.T) {
	const tasks, seconds = 20, 12
	count, home := newProgramCounter(t), newEngineHome(t, realProfile(t))
	var file strings.Builder
	file.WriteString("defaults: {retry_delay: 1s, attempts: 3}\ntasks:\n")
	for i := range tasks {
		fmt.Fprintf(&file, "  - {key: n%d, shell: '%s'}\n", i, count.shell(fmt.Sprintf("n%d", i), seconds, exitOfTask(i)))
	}
	var out, errs strings.Builder
	run := home.command(t, "run", "--provider", "real", "--file", home.write(t, "tasks.yaml", file.String()), "--parallel", "10", "-o", "json")
	run.Stdout, run.Stderr = &out, &errs
	require.NoError(t, run.Start())
	require.Eventually(t, func() bool { return count.running() >= 8 }, tiertest.Limit(t), 20*time.Millisecond)
	restartEngine(t)
	t.Logf("restarted; %d programs run on", count.running())
	code := codeOf(run.Wait())
	assert.Equal(t, 3, code, "%s", errs.String()) // some fail, as they shall

	var document struct {
		Items []struct {
			Key      string `json:"key"`
			State    string `json:"state"`
			Verified bool   `json:"terminated_verified"`
			Attempts []struct {
				Class    string `json:"class"`
				ExitCode *int   `json:"exit_code"`
				Retry    struct {
					Free bool `json:"free"`
				} `json:"retry"`
			} `json:"attempts"`
		} `json:"items"`
	}
	require.NoError(t, json.Unmarshal([]byte(out.String()), &document), "%s", out.String())
	require.Len(t, document.Items, tasks)
	starts := 0
	count.mu.Lock()
	for _, item := range document.Items {
		runs := count.all[item.Key]
		starts += len(runs)
		slices.SortFunc(runs, func(a, b *started) int { return a.begun.Compare(b.begun) })
		var classes []string
		for _, a := range item.Attempts {
			classes = append(classes, a.Class)
		}
		t.Logf("%-4s %-10s %d programs, attempts: %v", item.Key, item.State, len(runs), classes)
		if !assert.NotEmpty(t, runs, item.Key) || !assert.NotEmpty(t, item.Attempts, item.Key) {
			continue
		}
		for i, r := range runs[1:] {
			assert.False(t, runs[i].closed.IsZero() || r.begun.Before(runs[i].closed), "%s runs twice at once", item.Key)
		}
		last := item.Attempts[len(item.Attempts)-1]
		assert.True(t, runs[len(runs)-1].done, item.Key)
		assert.True(t, item.Verified, item.Key)
		assert.LessOrEqual(t, len(runs), len(item.Attempts), item.Key)
		var n int
		_, _ = fmt.Sscanf(item.Key, "n%d", &n)
		if assert.NotNil(t, last.ExitCode, item.Key) {
			assert.Equal(t, exitOfTask(n), *last.ExitCode, item.Key)
		}
		assert.Equal(t, map[int]string{0: "completed", 3: "failed"}[exitOfTask(n)], item.State, item.Key)
	}
	count.mu.Unlock()
	t.Logf("%d tasks, %d programs started", tasks, starts)
	left, err := home.command(t, "ls", "--provider", "real", "--all", "-o", "name").Output()
	require.NoError(t, err)
	assert.Empty(t, string(left))
	assert.Zero(t, count.running())
}
