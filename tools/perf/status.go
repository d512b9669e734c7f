package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// statusField reads one number of a process's or thread's status, such as
// "RssAnon" in KiB.
func statusField(text, name string) (float64, bool) {
	for line := range strings.Lines(text) {
		value, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		fields := strings.Fields(value)
		if len(fields) == 0 {
			return 0, false
		}
		n, err := strconv.ParseFloat(fields[0], 64)
		return n, err == nil
	}
	return 0, false
}

// anonymous is what a process holds in memory of its own, in KiB.
func anonymous(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	kib, ok := statusField(string(raw), "RssAnon")
	if !ok {
		return 0, fmt.Errorf("process %d: no RssAnon", pid)
	}
	return kib, nil
}

// switches counts how often the threads of a process were put on a processor
// and left it again: one wake-up each.
func switches(pid int) (float64, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) == 0 {
		return 0, fmt.Errorf("process %d: no threads: %w", pid, errors.Join(err, fs.ErrNotExist))
	}
	sum := 0.0
	for _, task := range tasks {
		raw, err := os.ReadFile(task)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a thread that has ended wakes nobody
		}
		if err != nil {
			return 0, err
		}
		for _, name := range []string{"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"} {
			n, _ := statusField(string(raw), name)
			sum += n
		}
	}
	return sum, nil
}
