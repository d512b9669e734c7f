//go:build !unix

package hostfile

import "io/fs"

// Pipes have no place in the file system here.
const nonBlock = 0

var noReader = fs.ErrInvalid //nolint:gochecknoglobals // a constant elsewhere
