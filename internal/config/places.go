package config

import (
	"cmp"
	"path/filepath"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/process"
	"sbx/internal/providers"
)

// Input is everything that Load looks at.
type Input struct {
	Process process.Process
	Types   []providers.Type
	// File is the value of --config, relative to Workdir; it is read instead of the
	// user's file. Empty = SBX_CONFIG.
	File string
	// Flags are the flags that were set, by name without dashes; the values of
	// a repeated flag are joined by commas. Names that Load does not know
	// are the business of others.
	Flags   map[string]string
	Workdir string // empty = that of the process
}

// Role says how a file was named.
type Role string

// The roles. An explicit file is one that --config or SBX_CONFIG names.
const (
	RoleUser     Role = "user"
	RoleExplicit Role = "explicit"
)

// File is one configuration file, read or looked for.
type File struct {
	Path  string // absolute
	Role  Role
	Found bool
}

func (in Input) workingDirectory() string {
	if in.Workdir != "" {
		return in.Workdir
	}
	return in.Process.Workdir
}

// homeDirectory is $HOME, else the home of the passwd entry, so that `env -i` finds the
// same files.
func (in Input) homeDirectory() string {
	if h := in.Process.Getenv("HOME"); filepath.IsAbs(h) {
		return h
	}
	return in.Process.Home
}

// userFile is $XDG_CONFIG_HOME/sbx/config.yaml, else the same under ~/.config.
// A relative XDG value is ignored, as the XDG specification says.
func (in Input) userFile() string {
	if base := in.Process.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "sbx", "config.yaml")
	}
	if home := in.homeDirectory(); home != "" {
		return filepath.Join(home, ".config", "sbx", "config.yaml")
	}
	return ""
}

// RunbookFolder is the folder runbooks beside the file of --config, else beside the user's; "" without
// a home directory.
func (in Input) RunbookFolder() (string, error) {
	explicit, err := in.explicitFile()
	if err != nil {
		return "", err
	}
	path := cmp.Or(explicit.text, in.userFile())
	if path == "" {
		return "", nil
	}
	return filepath.Join(filepath.Dir(path), "runbooks"), nil
}

// explicitFile is what --config names, else SBX_CONFIG; "" for neither.
func (in Input) explicitFile() (entry, error) {
	path, origin := in.File, "flag --config"
	if given, set := in.Flags[flagConfig]; path == "" && set {
		if given == "" {
			return entry{}, fault.Usage("flag --config: is empty (is a shell variable unset?)").WithHint("name a file, or leave the flag out")
		}
		path = given
	}
	if path == "" {
		path, origin = in.Process.Getenv(EnvConfig), "env "+EnvConfig
	}
	switch {
	case path == "":
		return entry{}, nil
	case filepath.IsAbs(path):
		return entry{text: filepath.Clean(path), origin: origin}, nil
	case in.workingDirectory() == "":
		return entry{}, fault.Usage("%s: %q is relative and the working directory no longer exists", origin, path).WithHint("write the absolute path")
	}
	return entry{text: filepath.Join(in.workingDirectory(), path), origin: origin}, nil
}

// checkControl refuses a file that another user can change: it says which
// programs sbx runs and what it may end.
func (f File) checkControl() error {
	err := hostfile.CheckControl(f.Path)
	if err == nil {
		return nil
	}
	instead := "copy it to a file of your own, and name that with --config FILE"
	if f.Role == RoleUser {
		instead = "name a file of your own with --config FILE; under sudo, -H gives root's own"
	}
	return hostfile.Refused("the configuration", f.Path, err, instead)
}
