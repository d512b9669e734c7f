package safety

import "strconv"

// Ask is the least that a person answers before an act, however few its targets are.
type Ask string

// Each is its answer, but for AskCount and AskName.
const (
	AskNothing Ask = ""      // a person has named them
	AskYes     Ask = "y"     // a rule has found a few that do not run, or a word may mean something else
	AskGate    Ask = "yes"   // at the gate of a runbook
	AskCount   Ask = "count" // a rule has found them, and they run
	AskName    Ask = "name"  // the profile decides what ends
)

// Answers are the words that a person types to allow an act, in their order: the number of its targets where there are
// more than MaxUnasked or the verb asks for it, and the name of each profile that has to be named. Beside a name no
// other word is asked for fewer. Nothing = it needs no answer.
func Answers(least Ask, targets int, names []string) []string {
	var words []string
	switch {
	case least == AskName && len(names) > 0:
	case least == AskCount, targets > MaxUnasked:
		words = append(words, strconv.Itoa(targets))
	case least == AskName:
		words = append(words, string(AskGate))
	case least != AskNothing && len(names) == 0:
		words = append(words, string(least))
	}
	return append(words, names...)
}
