//go:build linux

package guest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// metered is a Shell over counters of its own: each program that a script starts costs 20 ms of
// processor time, a sleep 2 ms, and beside it the sandbox works for so many milliseconds.
func metered(t *testing.T, shell, kind string, works int) guest.Shell {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	write("uptime", "100.00 1.00\n", 0o600)
	write("pids.current", "5\n", 0o600)
	counter, add := "cpu.stat", `read -r k n < "$F"; echo "usage_usec $((n + MS * 1000))" > "$F"`
	switch kind {
	case "cgroup2":
		write("memory.current", "5000\n", 0o600)
		write(counter, "usage_usec 7000000\n", 0o600)
	case "cgroup1":
		counter, add = "cpuacct/cpuacct.usage", `read -r n < "$F"; echo "$((n + MS * 1000000))" > "$F"`
		write("memory/memory.usage_in_bytes", "5000\n", 0o600)
		write("pids/pids.current", "5\n", 0o600)
		write(counter, "7000000000\n", 0o600)
	default: // a tick is 10 ms, and a part of one may be counted as a whole
		counter, add = "stat", `read -r k n rest < "$F"; echo "cpu  $((n + (MS + 9) / 10)) 0 0 0 0 0 0 0" > "$F"`
		write(counter, "cpu  700 0 0 0 0 0 0 0\n", 0o600)
	}
	for _, name := range []string{"head", "grep", "sed", "getconf", "sleep"} {
		program, err := exec.LookPath(name)
		require.NoError(t, err)
		text := fmt.Sprintf("#!/bin/sh\nF=%s/%s MS=20\n%s\nexec %s \"$@\"\n", dir, counter, add, program)
		if name == "sleep" {
			text = fmt.Sprintf("#!/bin/sh\nF=%s/%s MS=%d\n%s\nread -r s rest < %s/uptime; echo \"$((${s%%.*} + 1)).00 1.00\" > %[1]s/uptime\n", dir, counter, 2+works, add, dir)
		}
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700))
	}
	return func(ctx context.Context, text string) ([]byte, int, error) {
		text = strings.NewReplacer("/sys/fs/cgroup", dir, "/proc/stat", dir+"/stat", "/proc/uptime", dir+"/uptime").Replace(text)
		c := exec.CommandContext(ctx, shell, "-c", text)
		c.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
		out, err := c.Output()
		return out, 0, err
	}
}

// TestOurOwnCostIsNoWork: a look at a sandbox that does nothing starts programs in it.
func TestOurOwnCostIsNoWork(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"dash", "bash"} {
		for _, kind := range []string{"cgroup2", "cgroup1", "machine"} {
			for works, want := range map[int][2]float64{0: {0, 0.5}, 200: {19, 21}, 990: {97, 100}} {
				t.Run(fmt.Sprintf("%s %s %d ms", shell, kind, works), func(t *testing.T) {
					t.Parallel()
					if _, err := exec.LookPath(shell); err != nil {
						t.Skipf("no %s here", shell)
					}
					sh, began := metered(t, shell, kind, works), time.Now()
					var samples []sandbox.Usage
					for n := range 2 {
						u, err := guest.Usage(t.Context(), sh, began.Add(time.Duration(n)*time.Second))
						require.NoError(t, err)
						require.NotNil(t, u.CPUPercent)
						assert.GreaterOrEqual(t, *u.CPUPercent, want[0])
						assert.LessOrEqual(t, *u.CPUPercent, want[1])
						require.NotNil(t, u.CPUSeconds)
						assert.GreaterOrEqual(t, *u.CPUSeconds, 7.0)
						require.NotNil(t, u.PIDs)
						assert.True(t, kind == "machine" || *u.PIDs == 4, "its own process is none of the sandbox: %d", *u.PIDs)
						samples = append(samples, u)
					}
					limits := triage.DefaultThresholds()
					assert.Equal(t, works == 200, triage.ShowsWork(samples, limits), "at its limit it may be a loop")
					assert.Equal(t, works == 990, triage.TrendOf(samples, limits).AtLimit(limits))
				})
			}
		}
	}
}

// TestNoScriptRunsBesideAMeasurement of the same sandbox, and ctx ends the wait for it.
func TestNoScriptRunsBesideAMeasurement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var turns guest.Turns
		var mu sync.Mutex
		running, seen := 0, []int{}
		sh := func(context.Context, string) ([]byte, int, error) {
			count := func(by int) {
				mu.Lock()
				defer mu.Unlock()
				if running += by; by > 0 {
					seen = append(seen, running)
				}
			}
			count(1)
			time.Sleep(time.Second)
			count(-1)
			return nil, 0, nil
		}
		run := func(sh guest.Shell) { _, _, _ = sh(t.Context(), "") }
		seenSoFar := func() []int {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(seen)
		}
		go run(turns.Script("one", sh))
		go run(turns.Script("one", sh))
		synctest.Wait()
		go run(turns.Measurement("one", sh))
		synctest.Wait()
		assert.Equal(t, []int{1, 2}, seenSoFar(), "scripts run beside each other")
		time.Sleep(time.Second)
		synctest.Wait()
		go run(turns.Script("one", sh))
		synctest.Wait()
		assert.Equal(t, []int{1, 2, 1}, seenSoFar(), "the measurement is alone")
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("no time")
		cancel(why)
		_, _, err := turns.Measurement("one", sh)(ctx, "")
		require.ErrorIs(t, err, why)
		run(turns.Script("two", sh))
		time.Sleep(3 * time.Second)
		assert.Equal(t, []int{1, 2, 1, 2}, seenSoFar()[:4], "another sandbox does not wait")
		run(turns.Measurement("one", sh))
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		assert.Zero(t, running)
	})
}
