package providers

import "sbx/internal/fault"

// IDSpeller is a provider that spells the id of one sandbox in more than one way.
// Without it, ids are compared byte by byte.
type IDSpeller interface {
	// SameID says that two ids name one sandbox.
	SameID(a, b string) bool
}

// NameReader is a provider whose Get takes the name of a sandbox besides its id. It
// makes sure itself that what it answers carries the name that was asked for.
type NameReader interface {
	// TakesName is false for a word that has the form of an id.
	TakesName(word string) bool
}

// OtherSandbox is the error for an answer about another sandbox than the one that
// was asked for. Nothing may be concluded from it, and nothing asked of answered.
func OtherSandbox(profile, op, asked, answered string) error {
	return fault.New(fault.KindUnavailable, "the answer is about another sandbox, %q", answered).At(profile, op).
		WithHint("nothing was asked of it; if %q is a name, write it without the profile, or write the id", asked)
}
