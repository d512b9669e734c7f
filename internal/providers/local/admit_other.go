//go:build !linux

package local

import "sbx/internal/providers"

// reportsQuota is false: the memory in use is unknown on this system.
const reportsQuota = false

// checkAdmission has no result: the free memory is unknown on this system.
func (c *Client) checkAdmission() []providers.Check { return nil }

// checkMemoryFits refuses nothing: the memory is unknown on this system.
func (c *Client) checkMemoryFits(int64) error { return nil }
