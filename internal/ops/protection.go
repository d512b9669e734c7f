package ops

import (
	"sbx/internal/config"
	"sbx/internal/safety"
)

// Protection is what keeps sandboxes from being ended: their labels, the configuration and
// what tasks hold. Without leases, tasks keep nothing.
func (e *Env) Protection(c *config.Config, held *Leases) safety.Protection {
	return safety.Protection{Now: e.Now, Configured: c.Protect.Covers, Leased: held.Holds}
}
