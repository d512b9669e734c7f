// Package runbooks holds the runbooks that sbx ships, and which requirement is answered where. The
// pages beside the documents are made from them and are not embedded.
package runbooks

import "embed"

// Files are ID.yaml for each runbook, and coverage.yaml.
//
//go:embed *.yaml
var Files embed.FS
