//go:build unix

package publish

import (
	"flag"
	"os"
	"testing"
	"time"
)

// callLimitOfTests bounds calls of git to remotes that hang. A busy machine needs seconds for
// a call that does not hang.
const callLimitOfTests = 10 * time.Second

// The tests mostly wait for git and for remotes that hang: eight at once, whatever the number
// of processors.
func TestMain(m *testing.M) {
	flag.Parse()
	wanted := "8"
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.parallel" {
			wanted = f.Value.String()
		}
	})
	if err := flag.Set("test.parallel", wanted); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
