package config

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/process"
	"sbx/internal/providers"
)

// ProjectFile is the name of a project's file.
const ProjectFile = ".sbx.yaml"

// Input is everything that Load looks at.
type Input struct {
	Process process.Process
	Types   []providers.Type
	// File is the value of --config, relative to Workdir; it is read instead of
	// user and project file. Empty = SBX_CONFIG.
	File string
	// Flags are the flags that were set, by name without dashes; the values of
	// a repeated flag are joined by commas. Names that Load does not know
	// are the business of others.
	Flags   map[string]string
	Workdir string // empty = that of the process
}

// Role says what a file may do.
type Role string

// The roles. An explicit file is one that --config or SBX_CONFIG names.
const (
	RoleUser     Role = "user"
	RoleProject  Role = "project"
	RoleExplicit Role = "explicit"
)

// File is one configuration file, read or looked for.
type File struct {
	Path    string // absolute
	Role    Role
	Found   bool
	Trusted bool   // it may widen: every file but a project file that nobody trusted in its present content
	Ignored string // why it is not read although it is there; "" = it is read

	sum string // of the content that was read
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

// projectFile is the nearest of projectFiles; "" = none.
func (in Input) projectFile() string {
	if all := in.projectFiles(); len(all) > 0 {
		return all[0]
	}
	return ""
}

// projectFiles are the .sbx.yaml upward from the working directory, the nearest
// first. The home directory ends the search and is not searched itself: what lies
// there or above is nobody's project. A directory that cannot be searched counts as
// one without such a file.
func (in Input) projectFiles() []string {
	dir := in.workingDirectory()
	if !filepath.IsAbs(dir) {
		return nil
	}
	var found []string
	home, homeErr := os.Stat(in.homeDirectory())
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && homeErr == nil && os.SameFile(info, home) {
			return found
		}
		file := filepath.Join(dir, ProjectFile)
		if _, err := os.Lstat(file); err == nil { // a dangling link is found here and refused when it is read
			found = append(found, file)
		}
		if dir == filepath.Dir(dir) {
			return found
		}
	}
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

// findProject is the nearest project file that may be read. One of another user
// is passed over, unless the operator trusts its present content: it could stand
// in every directory that others may write to. Its mode does not matter, because it
// may only narrow.
func (l *loader) findProject(ctx context.Context) string {
	for _, path := range l.in.projectFiles() {
		err := hostfile.CheckOwner(path)
		if err == nil {
			return path
		}
		f := File{Path: path, Role: RoleProject, Found: true}
		if content, err := f.readContent(ctx); err == nil {
			f.sum = sha256Hex(content)
		}
		if f.sum != "" && l.isTrusted(f) {
			return path
		}
		f.Ignored = err.Error()
		l.files = append(l.files, f)
		l.config.Warnings = append(l.config.Warnings,
			"a project file is not read: "+f.Ignored+"; `sbx config trust "+path+"` has its present content read")
	}
	return ""
}
