package verceltest

import (
	"os"
	"path/filepath"
	"strings"

	"sbx/internal/providers/wiretest"
)

// counters is where a machine keeps the counters of its control group.
const counters = "/sys/fs/cgroup"

// idleCounters gives a command the counters of a VM that does nothing, with Options.Rests:
// in a VM they are its own, and here they would be those of this machine. The lock is
// held.
func (f *Fake) idleCounters(m *wiretest.Machine, args []string) {
	if !f.o.Rests {
		return
	}
	dir := filepath.Join(m.Home, ".counters")
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, counters, dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.t.Errorf("counters: %v", err)
	}
	for name, text := range map[string]string{
		"memory.current": "67108864", "memory.max": "4294967296", "memory.peak": "67108864", "memory.stat": "inactive_file 0",
		"pids.current": "3", "cpu.stat": "usage_usec 1000000", "memory.events": "oom_kill 0",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			f.t.Errorf("counters: %v", err)
		}
	}
}
