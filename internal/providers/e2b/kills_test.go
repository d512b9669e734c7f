package e2b_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/wiretest"
)

func TestKills(t *testing.T) {
	t.Parallel()
	wiretest.RunKills(t, func(t *testing.T) wiretest.Victim {
		t.Helper()
		f := e2btest.New(t, e2btest.Options{})
		c, ok := open(t, f, e2b.Type()).(providers.Commander)
		require.True(t, ok)
		id := f.Add(e2btest.Seed{})
		return wiretest.Victim{
			Server: f.Server, P: c, ID: id, Stream: "POST /process.Process/Start",
			Processes: func() []*wiretest.Running { return f.Processes(id) },
		}
	})
}
