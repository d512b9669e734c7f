//go:build !linux

package local

import "sbx/internal/providers"

// checkAdmission has nothing to say: what is free is not known here.
func (c *Client) checkAdmission() []providers.Check { return nil }
