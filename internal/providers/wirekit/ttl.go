package wirekit

import "time"

// defaultTTL is the longest life of a sandbox whose spec names none: every sandbox of a service has a limit, and the
// defaults of services reach from 15 s to none.
const defaultTTL = 10 * time.Minute

// TTL is the longest life of a new sandbox.
func TTL(wanted time.Duration) time.Duration {
	if wanted <= 0 {
		return defaultTTL
	}
	return wanted
}
