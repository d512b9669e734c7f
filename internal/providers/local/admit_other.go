//go:build !linux

package local

import "sbx/internal/providers"

// tellsQuota says that what is used of this machine is not known here.
const tellsQuota = false

// checkAdmission has nothing to say: what is free is not known here.
func (c *Client) checkAdmission() []providers.Check { return nil }

// fits refuses nothing: what this machine has is not known here.
func (c *Client) fits(int64) error { return nil }
