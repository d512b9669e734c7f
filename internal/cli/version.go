package cli

import (
	"runtime"
	"runtime/debug"

	"sbx/internal/ops"
)

// buildVersion reads what the linker recorded: the module's version and the commit
// of the checkout, so that no build flag has to name them.
func buildVersion() ops.Version {
	v := ops.Version{Version: "devel", Commit: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty {
		v.Commit += "-dirty"
	}
	return v
}
