package publish

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// onlyZombies reports whether all processes of a group are dead and not yet reaped: PID 1
// of a container may do that late or never. A group without entries in /proc counts as
// living.
func onlyZombies(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	dead := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
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

// stateAndGroup parses a line of /proc/PID/stat: "pid (name) state ppid group ...". The
// name may hold any character, including parentheses.
func stateAndGroup(stat string) (state string, group int) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return "", 0
	}
	group, _ = strconv.Atoi(fields[2])
	return fields[0], group
}
