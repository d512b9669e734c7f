package config

// The environment variables of sbx itself. An empty one counts as unset.
const (
	EnvConfig   = "SBX_CONFIG"    // a file instead of user and project file
	EnvStateDir = "SBX_STATE_DIR" // absolute
	EnvProvider = "SBX_PROVIDER"  // default of --provider; several with commas
	EnvNoColor  = "SBX_NO_COLOR"  // anything but 0 and false turns colour off
	EnvStoreURL = "SBX_STORE_URL" // postgres://...; whatever else is a mistake
)

const (
	keyUse        = "use"
	keyLaunch     = "launch"
	keyProduction = "production"
	keyStateDir   = "state_dir"
	keyNoColor    = "no_color"
	keyStore      = "store"
	keyStoreURL   = "store.url"
	keyConfig     = "config"
	flagConfig    = "config"
	flagProvider  = "provider"
	flagNoColor   = "no-color"
)

// RunFlagNames lists the flags of task launch that stand above the
// configuration. A launching verb hands them over as typed, and only those that
// were set.
func RunFlagNames() []string {
	var names []string
	for _, s := range runSettings() {
		if s.flag != "" {
			names = append(names, s.flag)
		}
	}
	return names
}
