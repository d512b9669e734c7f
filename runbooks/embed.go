// Package runbooks holds the runbooks that sbx ships. The pages beside the documents are made from
// them and are not embedded.
package runbooks

import "embed"

// Files are ID.yaml for each runbook.
//
//go:embed *.yaml
var Files embed.FS
