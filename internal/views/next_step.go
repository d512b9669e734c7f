package views

import (
	"strings"

	"sbx/internal/ops"
	"sbx/internal/output"
)

// step is a command that helps on, and what for.
type step struct{ Why, Command string }

// compareRecords repairs what is only a record, which no termination does.
func compareRecords() step { return step{"compare records and reality", "reconcile"} }

// taskWords say the state of a task, and why it is so.
func taskWords(t *ops.TaskState) string {
	return t.ID + " is " + ops.WithDetail(string(t.State), t.Why())
}

// attemptsOf shows more of a task.
func attemptsOf(t *ops.TaskState) step {
	return step{"see its attempts", "tasks show " + ShellWord(t.ID)}
}

// addNext has what to type, the best first.
func addNext(s *output.Sheet, program string, steps []step) {
	name := "next"
	for _, n := range steps {
		s.Field(name, program+" "+n.Command+"  # "+n.Why)
		name = "or"
	}
}

// ShellLine is a command as a shell takes it.
func ShellLine(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = ShellWord(word)
	}
	return strings.Join(words, " ")
}

// ShellWord quotes what a shell would not take as it is: ids are the
// provider's, and the line is meant to be pasted.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_.:@%+-,=", r)
	}
	if word != "" && word[0] != '=' && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
