package config

import (
	"context"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
)

// checkState judges the state directory. One that cannot be used is an error of
// those who need it, and not of Load: reading verbs work without it.
func (l *loader) checkState() {
	c := l.config
	if c.stateErr != nil {
		return
	}
	if err := hostfile.CheckDirectory(c.StateDir); err != nil {
		c.stateErr = hostfile.Refused("the state directory", c.StateDir, err, "name a directory of your own with "+EnvStateDir)
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

// State gives the state directory, or why there is none that can be used:
// fault.KindRefused where another user controls it, fault.KindUsage where there is
// no place for one.
func (c *Config) State() (string, error) {
	if c.stateErr != nil {
		return "", c.stateErr
	}
	if c.StateDir == "" {
		return "", fault.Usage("there is no state directory")
	}
	return c.StateDir, nil
}
