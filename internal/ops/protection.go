package ops

import (
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/safety"
)

// Protection is what keeps sandboxes from being ended.
func (e *Env) Protection(c *config.Config, held *Leases) safety.Protection {
	return safety.Protection{Now: e.Now, Configured: c.Protect.Covers, Leased: held.Holds}
}

// Limits are the limits of the configuration; allowed are the production profiles that the
// operator has named.
func (e *Env) Limits(c *config.Config, allowed []string) (safety.Limits, error) {
	for _, name := range allowed {
		if _, known := c.Find(name); !known {
			return safety.Limits{}, fault.Usage("--production: there is no profile %q", name)
		}
	}
	return safety.Limits{MaxDelete: c.Limits.MaxDelete, MaxFraction: int(c.Limits.MaxFraction), Production: c.Production, Allowed: allowed}, nil
}
