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
func anonymous(pid int) (float64, error) { return memory(pid, "RssAnon") }

// memory is one field of a process's memory, in KiB.
func memory(pid int, field string) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	kib, ok := statusField(string(raw), field)
	if !ok {
		return 0, fmt.Errorf("process %d: no %s", pid, field)
	}
	return kib, nil
}

// switches counts how often the threads of a process were put on a processor
// and left it again: one wake-up each.
func switches(pid int) (float64, error) {
	return ofThreads(pid, "status", func(text string) float64 {
		voluntary, _ := statusField(text, "voluntary_ctxt_switches")
		forced, _ := statusField(text, "nonvoluntary_ctxt_switches")
		return voluntary + forced
	})
}

// onProcessor is how long the threads of a process ran, in milliseconds. Those that have ended do not
// count; a Go program keeps its threads.
func onProcessor(pid int) (float64, error) {
	return ofThreads(pid, "schedstat", func(text string) float64 {
		ran, _, _ := strings.Cut(text, " ")
		ns, _ := strconv.ParseFloat(ran, 64) // the kernel writes a number
		return ns / 1e6
	})
}

// ofThreads adds up what a file of each thread of a process says.
func ofThreads(pid int, file string, figure func(text string) float64) (float64, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/%s", pid, file))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("process %d: no threads: %w", pid, errors.Join(err, fs.ErrNotExist))
	}
	sum := 0.0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a thread that has ended does nothing
		}
		if err != nil {
			return 0, err
		}
		sum += figure(string(raw))
	}
	return sum, nil
}
