package commands

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/testkit/fake"
)

func TestCompareRunsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local", "one")
		b.fakes["local"].Break(fake.Fault{Op: fake.OpCreate, Delay: 2 * time.Second})
		r := b.runArgs(t, "run", "--compare", "local,one", "-o", "json", "--", "sh", "-c", "sleep 3; echo hi; sleep 1")
		require.Zero(t, r.code, r.stderr)
		items := r.list(t, "items")
		require.Len(t, items, 2)
		for i, want := range []string{"local", "one"} {
			assert.Equal(t, want, items[i]["compared"], "in the order of --compare")
			assert.Equal(t, want, items[i]["provider"])
			assert.Equal(t, "completed", items[i]["state"])
			assert.Equal(t, "ok", items[i]["class"])
			assert.EqualValues(t, 0, items[i]["exit_code"])
			assert.InDelta(t, 3, items[i]["first_output_seconds"], 0.2)
			assert.InDelta(t, 4, items[i]["duration_seconds"], 0.6)
			assert.NotNil(t, items[i]["attempts"], "what every item of run has")
		}
		assert.InDelta(t, 2, items[0]["create_seconds"], 0.1)
		assert.InDelta(t, 0, items[1]["create_seconds"], 0.1)
		assert.Equal(t, "it completed at all 2, and none was much slower", r.object(t)["difference"])
		assert.Contains(t, r.stderr, "local | hi")

		// what fails is not tried again: the difference is what is looked for
		b.fakes["local"].Mend()
		b.fakes["local"].Break(fake.Fault{Op: fake.OpCreate, Err: fault.New(fault.KindAuth, "no")})
		r = b.run(t, "run --compare one,local -- true")
		assert.Equal(t, fault.KindPartial.Row().Code, r.code)
		assert.Contains(t, r.stdout, "completed")
		assert.Contains(t, r.stderr, "the provider makes a difference: completed at one, ")
		r = b.run(t, "run --compare one,nowhere -- true")
		assert.Equal(t, fault.KindUsage.Row().Code, r.code)
	})
}
