package sandbox

// ExitWord is what a provider writes where others give an exit code: an error code, an
// HTTP status, the state of a session, or a number that is no program's own. A word of
// one provider means nothing for another: `aborted` is a session of Vercel, a code of
// E2B, and a signal everywhere else.
type ExitWord struct {
	Raw        string // lower case
	Class      Class
	Cause      Cause
	Confidence Confidence
	Says       string // what it proves, and what it leaves open
}

// ExitWords are words of one class that name no cause.
func ExitWords(class Class, says string, raw ...string) []ExitWord {
	words := make([]ExitWord, len(raw))
	for i, w := range raw {
		words[i] = ExitWord{Raw: w, Class: class, Cause: CauseUnknown, Confidence: ConfidenceUnknown, Says: says}
	}
	return words
}

// TimeoutWords are words by which a provider says that a time limit ended a program.
func TimeoutWords(confidence Confidence, says string, raw ...string) []ExitWord {
	words := ExitWords(ClassTimeout, says, raw...)
	for i := range words {
		words[i].Cause, words[i].Confidence = CauseTimeout, confidence
	}
	return words
}
