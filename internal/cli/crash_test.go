//go:build unix

package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sbx/internal/testkit/tiertest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// machine is one of its own for one test of whole processes: a state directory,
// and a remote with one commit on main.
type machine struct {
	dir, state, origin string
	flow               bool // a branch is made for its task
}

// branch is the branch of the task k.
func (h machine) branch() string {
	if h.flow {
		return "feature/work"
	}
	return "work"
}

func newMachine(t *testing.T) machine {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	h := machine{dir: dir, state: filepath.Join(dir, "state"), origin: filepath.Join(dir, "origin.git")}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "home"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agent"), []byte(crashAgent), 0o600))
	out, err := exec.Command("sh", "-c", makeOrigin, "sh", h.origin).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		endAll(h.state)
		assert.Empty(t, processesOf(h.state), "processes are left behind")
	})
	return h
}

// crashAgent is an agent whose remote is its argument: no value of the environment is
// needed to go on with its task.
const crashAgent = `set -e
git clone -q "$1" .
echo done >result
git add result
git -c user.name=agent -c user.email=agent@example.com commit -q -m work
echo committed
`

// command is sbx with arguments, at this home.
func (h machine) command(ctx context.Context, environ []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, executable())
	cmd.Args = append([]string{"sbx"}, args...)
	cmd.Dir = h.dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(h.dir, "home"), "SBX_STATE_DIR=" + h.state, "GORACE=" + promptRace(),
	}, environ...)
	return cmd
}

// sbx runs it to its end.
func (h machine) sbx(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), tiertest.Limit(t))
	defer stop()
	var out, errs strings.Builder
	cmd := h.command(ctx, environ, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	code = codeOf(cmd.Run())
	require.NoError(t, ctx.Err(), "sbx %v does not end", args)
	return code, out.String(), errs.String()
}

// run is the line that launches the task k, with or without a push.
func (h machine) run(push bool) []string {
	line := []string{"run", "--key", "k", "--retry-delay", "1s", "--memory", "64M"}
	switch {
	case h.flow:
		line = append(line, "--push", h.origin, "--branch", h.branch())
	case push:
		line = append(line, "--push", h.origin+"="+h.branch())
	}
	return append(line, "--", "sh", filepath.Join(h.dir, "agent"), h.origin)
}

// report is the record of a task.
type report struct {
	State    string  `json:"state"`
	Phase    *string `json:"phase"`
	Waits    *string `json:"pending_reason"`
	Verified bool    `json:"terminated_verified"`
	Attempts []struct {
		GoneAt *string `json:"gone_at"`
		Class  *string `json:"class"`
	} `json:"attempts"`
	Publish *struct {
		State  string  `json:"state"`
		Commit *string `json:"commit"`
	} `json:"publish"`
}

func (h machine) report(t *testing.T) report {
	t.Helper()
	code, out, errs := h.sbx(t, nil, "tasks", "show", "k", "-o", "json")
	require.Zero(t, code, errs)
	var document struct {
		Item report `json:"item"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &document))
	return document.Item
}

func (r report) over() bool {
	switch r.State {
	case "completed", "failed", "stopped", "timed_out":
		return true
	}
	return false
}

func (r report) gone() bool {
	for _, a := range r.Attempts {
		if a.GoneAt == nil {
			return false
		}
	}
	return true
}

// ref is what a ref of the remote points at; "" = there is none.
func (h machine) ref(name string) string {
	out, err := exec.Command("git", "--git-dir", h.origin, "rev-parse", "-q", "--verify", name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (h machine) fences(t *testing.T) int {
	t.Helper()
	out, err := exec.Command("git", "--git-dir", h.origin, "for-each-ref", "--format=%(refname)", "refs/sbx/fence/").Output()
	require.NoError(t, err)
	return strings.Count(string(out), "\n") - strings.Count(string(out), ".branch\n")
}

// truth holds the remote, the machine and the report of an ended task against each
// other.
func (h machine) truth(t *testing.T, push bool) report {
	t.Helper()
	r := h.report(t)
	assert.True(t, r.Verified, "over, and nobody has seen that all is gone")
	assert.True(t, r.gone())
	assert.Empty(t, processesOf(h.state))
	assert.LessOrEqual(t, h.fences(t), 1)
	if !push {
		return r
	}
	require.NotNil(t, r.Publish)
	if r.Publish.State == "published" {
		assert.Equal(t, "completed", r.State)
		require.NotNil(t, r.Publish.Commit)
		assert.Equal(t, *r.Publish.Commit, h.ref("refs/heads/"+h.branch()))
		assert.Equal(t, 1, h.fences(t))
	} else {
		assert.NotEqual(t, "completed", r.State)
		assert.Empty(t, h.ref("refs/heads/"+h.branch()), "it says %s, and the branch is there", r.Publish.State)
	}
	return r
}

// crash is a named point of a task's life.
type crash struct {
	point string
	push  bool // it is only reached where something is published
	flow  bool // it is only reached where a branch is made for the task
	// unborn reports that it has no attempt yet: the next sbx concludes it, and its key is free.
	unborn bool
	waits  bool // its create is not known to have made anything: it is ended, and a sweep begins no other
}

func crashes() []crash {
	return []crash{
		{point: "intent", waits: true},
		{point: "created", waits: true},
		{point: "saved"},
		{point: "output"},
		{point: "collected", push: true},
		{point: "before the gate", push: true},
		{point: "gate", push: true},
		{point: "pushed", push: true},
		{point: "ending"},
		{point: "ended"},
		{point: "gone"},
		{point: "adopted"},
		{point: "branch noted", push: true, flow: true, unborn: true},
		{point: "branch made", push: true, flow: true, unborn: true},
		{point: "branch settled", push: true, flow: true},
	}
}

// crashed launches the task and kills its runner at the point.
func (h machine) crashed(t *testing.T, c crash, push bool) {
	t.Helper()
	first := c.point
	if c.point == "adopted" {
		first = "output"
	}
	code, _, errs := h.sbx(t, []string{"SBX_TEST_CRASH_AT=" + first}, h.run(push)...)
	require.Equal(t, 137, code, "it was not killed at %s:\n%s", first, errs)
	if first != c.point {
		code, _, errs = h.sbx(t, []string{"SBX_TEST_CRASH_AT=" + c.point}, "run", "--", "true")
		require.Equal(t, 137, code, "it was not killed at %s:\n%s", c.point, errs)
	}
	// The last that was made for it is noted to be gone in one change with its end.
	assert.Equal(t, c.point == "gone" && !h.flow, h.report(t).over(), "when it died it was %s", h.report(t).State)
}

// TestARunnerMayDieAnywhere kills the runner with -9 at each point of a task's life.
// The next sbx, whatever it is for, leaves one true state: nothing runs, and the
// report and the remote say the same.
func TestARunnerMayDieAnywhere(t *testing.T) {
	t.Parallel()
	for _, c := range crashes() {
		for _, push := range []bool{true, false} {
			if c.push && !push {
				continue
			}
			t.Run(c.point+map[bool]string{true: " push"}[push], func(t *testing.T) {
				t.Parallel()
				if !push {
					tiertest.SkipUnlessLong(t, "each point of death once more with a task that publishes nothing")
				}
				h := newMachine(t)
				h.flow = c.flow
				h.crashed(t, c, push)
				require.Eventually(t, func() bool {
					code, _, errs := h.sbx(t, nil, "run", "--", "true")
					require.Zero(t, code, errs)
					r := h.report(t)
					return r.over() || c.waits && r.gone() && r.Waits != nil
				}, tiertest.Limit(t), 100*time.Millisecond, "nobody settles it")
				switch {
				case c.waits:
					r := h.report(t)
					assert.Equal(t, "retry", *r.Waits)
					assert.Empty(t, processesOf(h.state))
					assert.Empty(t, h.ref("refs/heads/"+h.branch()))
				case c.unborn:
					r := h.report(t)
					assert.Equal(t, "failed", r.State)
					assert.True(t, r.Verified)
					assert.Empty(t, r.Attempts)
					assert.Empty(t, h.ref("refs/heads/"+h.branch()), "the next sbx removes the branch")
				default:
					assert.Equal(t, "completed", h.truth(t, push).State)
				}
				h.again(t, c, push)
			})
		}
	}
}

// TestAKeyTakesOverFromTheDead launches the same again right after the kill.
func TestAKeyTakesOverFromTheDead(t *testing.T) {
	t.Parallel()
	for _, c := range crashes() {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			h := newMachine(t)
			h.flow = c.flow
			h.crashed(t, c, true)
			h.again(t, c, true)
		})
	}
}

// TestAStopSettlesTheBranchOfTheDead stops a task whose runner was killed: its branch holds
// what was published, or does not exist.
func TestAStopSettlesTheBranchOfTheDead(t *testing.T) {
	t.Parallel()
	for _, c := range crashes() {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			if !c.flow && c.point != "created" && c.point != "gate" {
				tiertest.SkipUnlessLong(t, "each other point of death")
			}
			h := newMachine(t)
			h.flow = true
			h.crashed(t, c, true)
			require.Eventually(t, func() bool {
				h.sbx(t, nil, "stop", "k")
				return h.report(t).over()
			}, tiertest.Limit(t), 100*time.Millisecond)
			if r := h.report(t); r.Publish == nil || r.Publish.State != "published" {
				assert.Empty(t, h.ref("refs/heads/"+h.branch()))
				assert.True(t, r.Verified)
				return
			}
			h.truth(t, true)
		})
	}
}

// again launches the same key once more: it goes on with what is there, or tells how
// it ended, and does nothing twice.
func (h machine) again(t *testing.T, c crash, push bool) {
	t.Helper()
	code, _, errs := h.sbx(t, nil, h.run(push)...)
	r := h.truth(t, push)
	assert.Equal(t, 0, code, errs)
	assert.Equal(t, "completed", r.State)
	most := 1
	if c.waits {
		most = 2
	}
	assert.Len(t, r.Attempts, most)
	if push {
		assert.Equal(t, "published", r.Publish.State)
		out, err := exec.Command("git", "--git-dir", h.origin, "rev-list", "--count", "main.."+h.branch()).Output()
		require.NoError(t, err)
		assert.NotEqual(t, "0\n", string(out))
	}
}

// TestEveryPointIsCrashed keeps the list of points complete.
func TestEveryPointIsCrashed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "task", "*.go"))
	require.NoError(t, err)
	var named, known []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile(`\br\.o\.CrashPoint\("([^"]+)"\)`).FindAllStringSubmatch(string(text), -1) {
			named = append(named, found[1])
		}
	}
	for _, c := range crashes() {
		known = append(known, c.point)
	}
	assert.ElementsMatch(t, named, known)
}
