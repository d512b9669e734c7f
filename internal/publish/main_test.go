//go:build unix

package publish

import (
	"os"
	"testing"
	"time"

	"sbx/internal/testkit/providertest"
)

// callLimitOfTests bounds calls of git to remotes that hang. A busy machine needs seconds for
// a call that does not hang.
const callLimitOfTests = 10 * time.Second

// The tests mostly wait for git and for remotes that hang.
func TestMain(m *testing.M) {
	code := providertest.Wide{M: m}.Run()
	_ = os.RemoveAll(firstWorld.dir)
	os.Exit(code)
}
