package publish

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// onlyZombies says that all that is left of a group is dead and waits for a
// parent to take note: PID 1 of a container may take its time, or never do it.
// A group of which /proc shows nothing counts as living.
func onlyZombies(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a good one
	dead := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		state, of := stateAndGroup(string(text))
		switch {
		case of != group:
		case state != "Z" && state != "X":
			return false
		default:
			dead++
		}
	}
	return dead > 0
}

// stateAndGroup reads a line of /proc/PID/stat: "pid (name) state ppid group ...".
// The name may hold anything, parentheses as well.
func stateAndGroup(stat string) (state string, group int) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return "", 0
	}
	group, _ = strconv.Atoi(fields[2])
	return fields[0], group
}
