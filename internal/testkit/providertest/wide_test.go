package providertest

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWide(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args  []string
		cores int
		want  int
	}{
		"few cores":          {nil, 2, AtOnce},
		"other flags":        {[]string{"-test.run=X"}, 2, AtOnce},
		"many cores":         {nil, 16, 16},
		"the user decides":   {[]string{"-test.parallel=1"}, 2, 1},
		"also for as many":   {[]string{"-test.parallel=2"}, 2, 2},
		"fuzzing computes":   {[]string{"-test.fuzz=FuzzX"}, 2, 2},
		"cores before -fuzz": {[]string{"-test.fuzz=FuzzX"}, 16, 16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := flag.NewFlagSet("test", flag.ContinueOnError)
			parallel := flags.Int("test.parallel", tc.cores, "")
			flags.String("test.run", "", "")
			flags.String("test.fuzz", "", "")
			require.NoError(t, flags.Parse(tc.args))
			require.NoError(t, setParallel(flags, tc.cores))
			assert.Equal(t, tc.want, *parallel)
		})
	}
	require.Error(t, setParallel(flag.NewFlagSet("test", flag.ContinueOnError), 1), "no such flag: it says so")
}
