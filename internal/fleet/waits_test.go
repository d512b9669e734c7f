package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/testkit/fake"
)

// TestTheProviderThatHasNotAnsweredIsKnown, while the others have.
func TestTheProviderThatHasNotAnsweredIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, quick := stocked("slow", "box-1"), stocked("quick", "box-2")
		slow.Break(fake.Fault{Op: fake.OpList, Hang: true})
		quick.Break(fake.Fault{Op: fake.OpList, Delay: time.Second})
		var waits fleet.Waits
		f := with(fleet.Options{Asking: waits.Begin}, slow, quick)
		names, since := waits.Awaited()
		assert.Empty(t, names)
		assert.True(t, since.IsZero())
		began, done := time.Now(), make(chan struct{})
		go func() {
			defer close(done)
			f.Collect(t.Context(), providers.Query{})
		}()
		synctest.Wait()
		names, since = waits.Awaited()
		assert.ElementsMatch(t, []string{"slow", "quick"}, names)
		assert.Equal(t, began, since)
		advance(t, 5*time.Second)
		names, _ = waits.Awaited()
		assert.Equal(t, []string{"slow"}, names)
		<-done
		names, _ = waits.Awaited()
		assert.Empty(t, names)
	})
}
