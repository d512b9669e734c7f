package wiretest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Guests are the programs that shell texts of sbx have left on the machine, whose
// pids stand in its folder. Of these, Signal and KillChild may be used; nobody
// here waits for their end.
func (m *Machine) Guests() []*Running {
	files, _ := filepath.Glob(filepath.Join(m.Home, ".sbx", "runs", "*", "pid")) // the pattern is well-formed
	var all []*Running
	for _, f := range files {
		text, err := os.ReadFile(f)
		words := strings.Fields(string(text))
		if err != nil || len(words) == 0 {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(f), "code")); err == nil {
			continue
		}
		pid, err := strconv.Atoi(words[0])
		if err != nil {
			continue
		}
		for _, p := range m.living() {
			if process, err := os.FindProcess(pid); p.pid == pid && err == nil {
				all = append(all, &Running{PID: pid, machine: m, process: process, done: make(chan struct{})})
			}
		}
	}
	return all
}
