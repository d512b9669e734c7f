package publish

import (
	"context"
	"os"
)

// The two ways a repository names its objects.
const (
	sha1Format   = "sha1"
	sha256Format = "sha256"
)

func formatOf(oid string) string {
	if len(oid) == 64 {
		return sha256Format
	}
	return sha1Format
}

// adopt makes the scratch repository anew where the remote names its objects
// otherwise: that shows only when an object of it is seen.
func (s *scratch) adopt(ctx context.Context, oid string) error {
	if format := formatOf(oid); format != s.format {
		return s.remake(ctx, format)
	}
	return nil
}

// remake empties the scratch repository and makes it in another format.
func (s *scratch) remake(ctx context.Context, format string) error {
	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return err
	}
	return s.prepare(ctx, format)
}
