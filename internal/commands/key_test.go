package commands

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestAKeyIsHeldByWhatMayHaveRun: a launch without any effect is none. Where its answer was lost, the key is held until
// a person says otherwise.
func TestAKeyIsHeldByWhatMayHaveRun(t *testing.T) {
	t.Parallel()
	refused := providers.NothingMade(fault.New(fault.KindUnavailable, "connection refused"))
	lost := fault.New(fault.KindUnavailable, "connection reset")
	for name, tc := range map[string]struct {
		faults []fake.Fault
		held   bool
	}{
		"every create was refused":           {[]fake.Fault{{Op: fake.OpCreate, Err: refused}}, false},
		"no right":                           {[]fake.Fault{{Op: fake.OpCreate, Err: fault.New(fault.KindAuth, "401")}}, false},
		"an answer was lost, after the work": {[]fake.Fault{{Op: fake.OpCreate, Err: lost, Late: true}}, true},
		"an answer was lost":                 {[]fake.Fault{{Op: fake.OpCreate, Err: lost}}, true},
		"one was lost, then all refused":     {[]fake.Fault{{Op: fake.OpCreate, Err: lost, Times: 1}, {Op: fake.OpCreate, Err: refused}}, true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b := newBatchBench(t, "local")
			p := b.fakes["local"]
			p.Break(tc.faults...)
			line := "run --key k --attempts 2 --retry-delay 1s -o json -- true"
			first := b.run(t, line)
			require.Equal(t, 125, first.code, first.stderr)
			if name == "no right" {
				attempts := itemsOf(first.item(t), "attempts")
				require.Len(t, attempts, 1, "it is not retried")
				assert.Equal(t, "auth", attempts[0]["class"])
			}
			time.Sleep(2 * time.Minute) // until what was lost is settled
			p.Mend()
			before := len(p.Calls(fake.OpCreate))
			second := b.run(t, line)
			assert.Equal(t, tc.held, len(p.Calls(fake.OpCreate)) == before, second.stderr)
			if tc.held {
				assert.Equal(t, 125, second.code)
				assert.Contains(t, second.stderr, "--retry-failed")
				second = b.run(t, "run --retry-failed"+line[3:])
			}
			require.Equal(t, 0, second.code, second.stderr)
			assert.Equal(t, "k~2", second.item(t)["key"])
			assert.Len(t, p.Calls(fake.OpCreate), before+1)

			third := b.run(t, "run --retry-failed"+line[3:])
			assert.Equal(t, 0, third.code, third.stderr)
			assert.Len(t, p.Calls(fake.OpCreate), before+1, "it has completed: the key is held")
			assert.Equal(t, "k~2", b.run(t, "tasks show k -o json").item(t)["key"], "the key names the latest task")
		})
	}
}

// TestAFileLaunchesAgainWhatNeverRan without --retry-failed.
func TestAFileLaunchesAgainWhatNeverRan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local")
		b.fakes["local"].Break(fake.Fault{Op: fake.OpCreate, Err: fault.New(fault.KindAuth, "401")})
		b.write(t, "tasks:\n  - {key: a, command: ['true']}\n")
		assert.Equal(t, map[string]string{"a": "failed"}, states(t, b.run(t, "run --file t.yaml -o json")))
		b.fakes["local"].Mend()
		assert.Equal(t, map[string]string{"a~2": "completed"}, states(t, b.run(t, "run --file t.yaml -o json")))
	})
}

// TestAWrongKeyIsNotRetryable: also where a launch has ended with it.
func TestAWrongKeyIsNotRetryable(t *testing.T) {
	t.Parallel()
	for kind, again := range map[fault.Kind]bool{fault.KindAuth: false, fault.KindUnavailable: true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBatchBench(t, "local")
			b.fakes["local"].Break(fake.Fault{Op: fake.OpCreate, Err: providers.NothingMade(fault.New(kind, "401"))})
			r := b.run(t, "run --attempts 1 -o json -- true")
			require.Equal(t, 125, r.code, r.stderr)
			errors := r.list(t, "errors")
			require.Len(t, errors, 1)
			assert.Equal(t, again, errors[0]["retryable"], kind)
		})
	}
}

// TestNothingListedIsNotNothingStuck: a list that failed says nothing about sandboxes.
func TestNothingListedIsNotNothingStuck(t *testing.T) {
	t.Parallel()
	b, p := oneFake()
	assert.Contains(t, b.run(t, "diagnose").stdout, "none of 0 sandboxes")
	p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
	r := b.run(t, "diagnose")
	assert.NotContains(t, r.stdout, "none of 0")
	assert.Contains(t, r.stdout, "no sandbox is listed, and not everything could be read")
}
