package fake

import "time"

// Lie is a way to break the contract while looking well. The conformance suite
// must turn red at each of them.
type Lie string

// The lies that a fake can be told to live.
const (
	LieResumeOnRead   Lie = "resume_on_read"   // a read wakes what is paused and pushes its expiry
	LieEndOnRead      Lie = "end_on_read"      // a read ends it
	LieGoneForUnknown Lie = "gone_for_unknown" // says gone of what never was
	LieLeak           Lie = "leak"             // each request leaves a goroutine, until Release
	LieDeaf           Lie = "deaf"             // does not hear the end of ctx; what follows goes on until Release
	LieShowEnv        Lie = "show_env"         // shows environment values as labels
	LieEnvInLogs      Lie = "env_in_logs"      // shows environment values as the first log line
	LieSecretInError  Lie = "secret_in_error"  // errors quote the credential, Secret
	LieZeroUsage      Lie = "zero_usage"       // says 0 where it does not know
	LieMixedStreams   Lie = "mixed_streams"    // exec writes stderr to stdout
	LieTailAll        Lie = "tail_all"         // ignores how many lines of log were asked for
	LieEmptyLabels    Lie = "empty_labels"     // create drops labels, name and task
	LieAnswersTwice   Lie = "answers_twice"    // accepts to end what has ended
	LieListsTwice     Lie = "lists_twice"      // every sandbox is listed twice
	LieOtherID        Lie = "other_id"         // get answers with the record of another one
	LieIndependent    Lie = "independent"      // calls the absence of a record an independent proof of an end

	LieEndsWithProgram Lie = "ends_with_program" // a sandbox that shall linger ends with its program
	LieForgetsExit     Lie = "forgets_exit"      // what ends a lingering sandbox becomes its program's exit
	LieFollowsOn       Lie = "follows_on"        // following a log goes on after the program's end
	LieShutAfter       Lie = "shut_after"        // no command runs after the program's end
	LieOwnNonce        Lie = "own_nonce"         // create puts a nonce of its own over the caller's

	LieStaleLog      Lie = "stale_log"      // what is written comes into the log with times of an hour ago
	LieHidesCommands Lie = "hides_commands" // no command of another client is listed
)

// Lies lists every lie.
func Lies() []Lie {
	return []Lie{
		LieResumeOnRead, LieEndOnRead, LieGoneForUnknown, LieLeak, LieDeaf, LieShowEnv, LieEnvInLogs,
		LieSecretInError, LieZeroUsage, LieMixedStreams, LieTailAll, LieEmptyLabels, LieAnswersTwice, LieListsTwice, LieOtherID, LieIndependent,
		LieEndsWithProgram, LieForgetsExit, LieFollowsOn, LieShutAfter, LieOwnNonce, LieStaleLog, LieHidesCommands,
	}
}

// Secret is the credential that this provider pretends to hold.
const Secret = "fake-9f2c71" //nolint:gosec // it opens nothing

// Tell makes the fake live the given lies.
func (p *Provider) Tell(lies ...Lie) {
	for _, l := range lies {
		p.lies.Store(l, true)
	}
}

// Release lets go what LieLeak and LieDeaf hold back. It may be called once.
func (p *Provider) Release() { close(p.released) }

func (p *Provider) lied(l Lie) bool {
	_, told := p.lies.Load(l)
	return told
}

// read applies the lies about reading to one box. The lock is held.
func (p *Provider) read(b *box, now time.Time) {
	if p.lied(LieResumeOnRead) {
		if b.s.State == "paused" {
			b.s.State = "running"
		}
		if !b.s.ExpiresAt.IsZero() {
			b.s.ExpiresAt = b.s.ExpiresAt.Add(time.Minute)
		}
	}
	if p.lied(LieEndOnRead) && b.asked.IsZero() {
		b.asked = now
	}
}
