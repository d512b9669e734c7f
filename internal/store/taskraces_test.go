package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/store"
)

// envTasks is how many tasks the processes race on; `.ci/run` uses more than a test run at
// a desk has time for.
const (
	envTasks = "SBX_TEST_TASKS"
	racers   = 5
)

// endings are the three changes that race, and whether they end the task.
func endings() map[string]bool {
	return map[string]bool{"stopping": false, "publishing": false, "timed_out": true}
}

// race tries one of three changes on every task as it was added, and reports which it made,
// and how often it was too late.
func race(ctx context.Context, o store.Options) error {
	d, err := store.Open(ctx, o)
	if err != nil {
		return err
	}
	list, err := d.Tasks(ctx, store.TaskQuery{})
	if err != nil {
		return err
	}
	states, late := []string{"stopping", "publishing", "timed_out"}, 0
	for _, t := range list {
		t.Version = 1
		t.State = states[rand.IntN(len(states))]
		t.Ended, t.Owner, t.Fence = endings()[t.State], strconv.Itoa(os.Getpid()), t.Fence+1
		switch _, err := d.SwapTask(ctx, t, 0); {
		case err == nil:
			fmt.Println(t.State)
		case errors.Is(err, store.ErrSwapped), errors.Is(err, store.ErrTaskEnded):
			late++
		default:
			return err
		}
	}
	fmt.Println("late", late)
	return d.Close()
}

func TestProcessesRaceOnTasks(t *testing.T) {
	t.Parallel()
	racing(t, store.Options{StateDir: t.TempDir()})
}

func TestProcessesRaceOnTasksOfPostgres(t *testing.T) {
	t.Parallel()
	racing(t, store.Options{URL: own(t), StateDir: "unused"})
}

func racing(t *testing.T, o store.Options) {
	t.Helper()
	n := 40
	if raw := os.Getenv(envTasks); raw != "" {
		var err error
		n, err = strconv.Atoi(raw)
		require.NoError(t, err)
	}
	d := opened(t, o)
	fill(t, d, n)
	won, late := map[string]int{}, 0
	for line := range strings.Lines(together(t, o, "race", racers)) {
		var count int
		if _, err := fmt.Sscanf(line, "late %d", &count); err == nil {
			late += count
			continue
		}
		won[strings.TrimSpace(line)]++
	}
	list, err := d.Tasks(t.Context(), store.TaskQuery{})
	require.NoError(t, err)
	require.Len(t, list, n)
	found := map[string]int{}
	for _, one := range list {
		found[one.State]++
		assert.EqualValues(t, 2, one.Version)
		assert.EqualValues(t, 1, one.Fence)
		assert.Equal(t, endings()[one.State], one.Ended)
	}
	assert.Equal(t, found, won, "each has the one change that somebody made")
	assert.Equal(t, (racers-1)*n, late, "and all others came too late")
	t.Logf("%d tasks: %v", n, won)
}

// fill adds tasks, from several goroutines to be done sooner.
func fill(t *testing.T, d store.TaskStore, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for first := range 4 {
		wg.Go(func() {
			for i := first; i < n; i += 4 {
				if _, added, err := d.AddTask(t.Context(), store.Task{ID: fmt.Sprintf("t-%d", i), State: "running"}); err != nil || !added {
					t.Error("not added:", err)
				}
			}
		})
	}
	wg.Wait()
}

const (
	counters = 8  // tasks that are counted up
	most     = 50 // changes of one process that is not killed
)

// count counts tasks up, reports each change, and ends after the most.
func count(ctx context.Context, o store.Options) error { return countTo(ctx, o, most) }

func countForEver(ctx context.Context, o store.Options) error {
	return countTo(ctx, o, math.MaxInt)
}

func countTo(ctx context.Context, o store.Options, most int) error {
	d, err := store.Open(ctx, o)
	if err != nil {
		return err
	}
	for made := 0; made < most; {
		t, err := d.Task(ctx, fmt.Sprintf("t-%d", rand.IntN(counters)))
		if err != nil {
			return err
		}
		n := 0
		if len(t.Body) > 0 {
			if err := json.Unmarshal(t.Body, &n); err != nil {
				return err
			}
		}
		t.Body, t.State, t.Fence = []byte(strconv.Itoa(n+1)), strconv.Itoa(n+1), t.Fence+1
		switch _, err := d.SwapTask(ctx, t, 0); {
		case err == nil:
			made++
			fmt.Println(t.ID)
		case !errors.Is(err, store.ErrSwapped):
			return err
		}
	}
	return d.Close()
}

func TestKilledProcessesLeaveWholeTasks(t *testing.T) {
	t.Parallel()
	o := store.Options{StateDir: t.TempDir()}
	killed(t, o)
	db, err := sql.Open("sqlite", filepath.Join(o.StateDir, store.FileName))
	require.NoError(t, err)
	var verdict string
	require.NoError(t, db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict))
	assert.Equal(t, "ok", verdict)
	require.NoError(t, db.Close())
}

func TestKilledProcessesLeaveWholeTasksInPostgres(t *testing.T) {
	t.Parallel()
	killed(t, store.Options{URL: own(t), StateDir: "unused"})
}

// killed lets four processes count, and kills one of them: every reported change is stored,
// with at most one unreported, and no change is stored twice or in part.
func killed(t *testing.T, o store.Options) {
	t.Helper()
	d := opened(t, o)
	fill(t, d, counters)
	list, says, gate := children(t, o, "count for ever", "count", "count", "count")
	require.NoError(t, gate.Close())
	said := make([]map[string]int64, len(list))
	var wg sync.WaitGroup
	for i, cmd := range list {
		said[i] = map[string]int64{}
		wg.Go(func() {
			lines := 0
			for scan := bufio.NewScanner(says[i]); scan.Scan(); lines++ {
				said[i][scan.Text()]++
				if i == 0 && lines == 10 {
					_ = cmd.Process.Kill() // its exit shows whether it worked
				}
			}
			if err := cmd.Wait(); (err != nil) != (i == 0) {
				t.Errorf("process %d, of which the first is killed: %v", i, err)
			}
			if i > 0 {
				assert.Equal(t, most, lines)
			}
		})
	}
	wg.Wait()
	total := map[string]int64{}
	for _, one := range said {
		for id := range maps.Keys(one) {
			total[id] += one[id]
		}
	}
	whole(t, d, total)
}

// whole compares the tasks with the reported changes.
func whole(t *testing.T, d store.TaskStore, said map[string]int64) {
	t.Helper()
	list, err := d.Tasks(t.Context(), store.TaskQuery{})
	require.NoError(t, err)
	var unsaid int64
	for _, one := range list {
		n := one.Version - 1
		assert.Equal(t, strconv.FormatInt(n, 10), string(one.Body), "as often as the version says")
		assert.Equal(t, []any{string(one.Body), n}, []any{one.State, one.Fence}, "all of the change or nothing")
		assert.GreaterOrEqual(t, n, said[one.ID], "what was said is there")
		unsaid += n - said[one.ID]
	}
	assert.LessOrEqual(t, unsaid, int64(1))
}
