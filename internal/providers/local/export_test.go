//go:build unix

package local

import (
	"time"

	"sbx/internal/providers/local/identity"
)

// SetAge makes every supervisor look that old, as if the machine had run on.
func (c *Client) SetAge(age time.Duration) {
	c.age = func(identity.Process) (time.Duration, bool) { return age, true }
}
