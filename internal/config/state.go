package config

import (
	"path/filepath"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
)

// stateDir is SBX_STATE_DIR, else $XDG_STATE_HOME/sbx, else below HOME, else, where HOME is not
// set as under `env -i`, below the passwd home.
func (in Input) stateDir() (entry, error) {
	if dir := in.Process.Getenv(EnvStateDir); dir != "" {
		if !filepath.IsAbs(dir) {
			return entry{}, fault.Usage("env %s: %q is not an absolute path", EnvStateDir, dir).
				WithHint("a relative state directory would change with the working directory")
		}
		return entry{text: filepath.Clean(dir), origin: "env " + EnvStateDir}, nil
	}
	if base := in.Process.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return entry{text: filepath.Join(base, "sbx"), origin: "env XDG_STATE_HOME"}, nil
	}
	home := in.homeDirectory()
	if !filepath.IsAbs(home) {
		return entry{}, fault.Usage("there is no home directory to keep state in").WithHint("set %s to an absolute path", EnvStateDir)
	}
	if owner, foreign := hostfile.ForeignHome(home, in.Process.Home); foreign {
		return entry{}, fault.New(fault.KindRefused, "HOME is %s, which belongs to %s, and this is root: no state is kept there", home, owner).
			WithHint("under sudo, `sudo -H` gives root's own home; or name the state directory with %s", EnvStateDir)
	}
	return entry{text: filepath.Join(home, ".local", "state", "sbx"), origin: originDefault}, nil
}

// checkState judges the state directory. One that cannot be used is an error of
// those who need it, and not of Load: reading verbs work without it.
func (l *loader) checkState(place entry) {
	c := l.config
	c.StateDir = place.text
	if c.stateErr != nil {
		return
	}
	if err := hostfile.CheckDirectory(c.StateDir); err != nil {
		c.stateErr = hostfile.Refused("the state directory", c.StateDir, err, "name a directory of your own with "+EnvStateDir)
		return
	}
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
