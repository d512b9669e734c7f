package cgroup

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if h, err := Detect(Roots{Proc: "/proc"}, 0); err == nil {
		_ = h.tidy()
	}
	os.Exit(code)
}

func BenchmarkLife(b *testing.B) {
	h, err := Detect(Roots{Proc: "/proc", Owner: "bench-" + strconv.Itoa(os.Getpid())}, 0)
	require.NoError(b, err)
	if p := h.Possible(); !p[0].OK && !p[1].OK && !p[2].OK {
		b.Skip(p)
	}
	spent := map[string]time.Duration{}
	lap := func(name string, f func() error) {
		began := time.Now()
		require.NoError(b, f())
		spent[name] += time.Since(began)
	}
	thread, end := sameThread()
	defer end()
	for b.Loop() {
		var g *Group
		lap("create-ms", func() (err error) {
			g, err = Create(h, "a1", Limits{MemoryBytes: 64 << 20, PIDs: 32, CPU: 1})
			return err
		})
		var p *os.Process
		lap("join-ms", func() error { return thread(g.JoinThread) })
		lap("spawn-ms", func() error {
			return thread(func() (err error) { p, err = spawn(g, []string{"sleep", "60"}); return err })
		})
		lap("stats-ms", func() error { g.Stats(); return nil })
		lap("kill-ms", func() error { _, err := g.Kill(b.Context()); return err })
		lap("reap-ms", func() error { _, err := p.Wait(); return err })
		lap("remove-ms", g.Remove)
	}
	for name, d := range spent {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), name)
	}
}
