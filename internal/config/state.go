package config

import (
	"os"
	"path/filepath"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
)

// statePlace is where state is kept, and where else it may lie.
type statePlace struct {
	entry

	// belongs is the directory to which the state of an earlier version has to be moved; "" =
	// it is where it belongs.
	belongs string
	// other is a state directory of an earlier version that is not used, as there is one where
	// it belongs; "" = there is none.
	other string
}

// stateDir is SBX_STATE_DIR, else $XDG_STATE_HOME/sbx, else below HOME, else, where HOME is not
// set as under `env -i`, below the passwd home. Earlier versions preferred the passwd home to
// HOME: what lies there is used as long as nothing lies where it belongs.
func (in Input) stateDir() (statePlace, error) {
	if dir := in.Process.Getenv(EnvStateDir); dir != "" {
		if !filepath.IsAbs(dir) {
			return statePlace{}, fault.Usage("env %s: %q is not an absolute path", EnvStateDir, dir).
				WithHint("a relative state directory would change with the working directory")
		}
		return statePlace{entry: entry{text: filepath.Clean(dir), origin: "env " + EnvStateDir}}, nil
	}
	if base := in.Process.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return statePlace{entry: entry{text: filepath.Join(base, "sbx"), origin: "env XDG_STATE_HOME"}}, nil
	}
	home := in.homeDirectory()
	if !filepath.IsAbs(home) {
		return statePlace{}, fault.Usage("there is no home directory to keep state in").WithHint("set %s to an absolute path", EnvStateDir)
	}
	if owner, foreign := hostfile.ForeignHome(home, in.Process.Home); foreign {
		return statePlace{}, fault.New(fault.KindRefused, "HOME is %s, which belongs to %s, and this is root: no state is kept there", home, owner).
			WithHint("under sudo, `sudo -H` gives root's own home; or name the state directory with %s", EnvStateDir)
	}
	place := statePlace{entry: entry{text: stateBelow(home), origin: originDefault}}
	if old := stateBelow(in.Process.Home); in.Process.Home != "" && old != place.text && hasEntries(old) {
		if hasEntries(place.text) {
			place.other = old
			return place, nil
		}
		place.belongs, place.entry = place.text, entry{text: old, origin: "the place of an earlier version"}
	}
	return place, nil
}

func stateBelow(home string) string { return filepath.Join(home, ".local", "state", "sbx") }

func hasEntries(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// checkState judges the state directory. One that cannot be used is an error of
// those who need it, and not of Load: reading verbs work without it.
func (l *loader) checkState(place statePlace) {
	c := l.config
	c.StateDir, c.StateBelongs, c.StateOther = place.text, place.belongs, place.other
	if c.stateErr != nil {
		return
	}
	if err := hostfile.CheckDirectory(c.StateDir); err != nil {
		c.stateErr = hostfile.Refused("the state directory", c.StateDir, err, "name a directory of your own with "+EnvStateDir)
		return
	}
	if c.StateOther != "" {
		c.Warnings = append(c.Warnings, "state is in "+c.StateDir+", and "+c.StateOther+" of an earlier version is not read; `sbx doctor` prints the command that shows what it holds")
	}
	if c.StateBelongs != "" {
		c.Warnings = append(c.Warnings, "state is still in "+c.StateDir+", the place of an earlier version; `sbx doctor` prints the command that moves it to "+c.StateBelongs)
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
