package ops

import (
	"fmt"

	"sbx/internal/metrics"
)

// BuildInfo is what metrics say of this program.
func (e *Env) BuildInfo() metrics.Build {
	return metrics.Build{Version: e.Version.Version, Commit: e.Version.Commit, Go: e.Version.Go}
}

// WriteTextfile writes figures, if a file was named.
func (e *Env) WriteTextfile(path string, figures func() metrics.Set) error {
	if path == "" {
		return nil
	}
	if err := metrics.WriteTextfile(e.Path(path), figures()); err != nil {
		return fmt.Errorf("--textfile: %w", err)
	}
	return nil
}
