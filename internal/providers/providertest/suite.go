// Package providertest is the conformance suite of the provider contract: what
// every provider passes, and what turns red when one lies.
//
// A check talks to the provider through the contract alone. What a check needs
// beyond it (how a sandbox comes to be where the provider cannot launch) is
// handed in by Config. No knowledge of any one provider enters this room.
package providertest

import (
	"context"
	"testing"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// T is the part of testing.TB that checks use, so that a check can also be run
// for its verdict (see Attempt).
type T interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
	Skipf(format string, args ...any)
	Cleanup(f func())
	Context() context.Context
}

// Config says how to test one provider.
type Config struct {
	// New opens a provider of its own for one check.
	New func(t T) providers.Provider
	// Start brings one running sandbox into being and returns its id. Nil:
	// Create with spec, whose Command is `sleep 600` where it is empty.
	Start func(t T, p providers.Provider, spec sandbox.Spec) string
	// Write brings a running sandbox into being that has written the given
	// lines to stdout, each a single word. Nil: a `sh -c` with echoes.
	Write func(t T, p providers.Provider, lines []string) string
	// Paused gives a paused sandbox; nil = the provider knows no pause.
	Paused func(t T, p providers.Provider) string
	// Orphan gives a sandbox whose machine runs on and whose record is gone, as after
	// a request to end it that its node refused; nil = the provider's cannot be staged.
	Orphan func(t T, p providers.Provider) string
	// Many is how many sandboxes exceed one page of a listing; 0 = 3.
	Many int
	// Limit bounds each wait for something to happen; 0 = 10 s.
	Limit time.Duration
	// Eventually waits until ok holds, false when limit passed before; nil =
	// it looks every few milliseconds.
	Eventually func(limit time.Duration, ok func() bool) bool
	// Settle lets go what may outlive a call, such as idle connections,
	// before goroutines are counted; nil = nothing.
	Settle func(p providers.Provider)
	// Secrets are credentials that no error may quote.
	Secrets []string
}

// Check is one promise of the contract.
type Check struct {
	Name    string
	Ability string // that it needs, as in providers.Abilities; "" = none
	Run     func(t T, s *Subject)
}

// Checks lists every check.
func Checks() []Check {
	var all []Check
	for _, group := range [][]Check{
		listChecks(), getChecks(), endChecks(), contextChecks(), honestyChecks(),
		logChecks(), followChecks(), usageChecks(), execChecks(), createChecks(), readerChecks(), controlChecks(), lingerChecks(), verifyChecks(), lifeChecks(),
	} {
		all = append(all, group...)
	}
	return all
}

// Run checks a provider. Only checks of a missing ability are skipped.
func Run(t *testing.T, c Config) {
	t.Helper()
	for _, check := range Checks() {
		t.Run(check.Name, func(t *testing.T) { perform(t, c, check) })
	}
}

func perform(t T, c Config, check Check) {
	t.Helper()
	s := newSubject(t, c)
	if check.Ability != "" && !able(s.P, check.Ability) {
		t.Skipf("%s has no %s", s.P.Type(), check.Ability)
	}
	check.Run(t, s)
}

func able(p providers.Provider, ability string) bool {
	for _, a := range providers.Abilities() {
		if a.Name == ability {
			return a.Has(p)
		}
	}
	return false
}
