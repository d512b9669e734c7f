package providertest

import (
	"flag"
	"runtime"
	"strconv"
	"testing"
)

// AtOnce is how many parallel tests of one binary run at a time in a room whose
// tests mostly wait: for a process, a limit, a poll. Go's own number is one per
// core. Measured on two cores: 6 takes half as long as 2, and 8 gains no more.
const AtOnce = 6

// Wide runs a room's tests AtOnce abreast. It is for TestMain:
//
//	os.Exit(providertest.Wide{M: m}.Run())
type Wide struct{ *testing.M }

// Run runs the tests and gives the exit code. -parallel goes before, and so does
// a machine with more cores. Fuzzing keeps one worker per core: it computes.
func (w Wide) Run() int {
	if !flag.Parsed() {
		flag.Parse()
	}
	if err := widen(flag.CommandLine, runtime.GOMAXPROCS(0)); err != nil {
		panic(err) // the flags of go test have other names than this room knows
	}
	return w.M.Run()
}

// widen sets the flag of go test, unless somebody else decided.
func widen(flags *flag.FlagSet, cores int) error {
	decided := cores >= AtOnce
	flags.Visit(func(f *flag.Flag) {
		decided = decided || f.Name == "test.parallel" || f.Name == "test.fuzz"
	})
	if decided {
		return nil
	}
	return flags.Set("test.parallel", strconv.Itoa(AtOnce))
}
