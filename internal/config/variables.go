package config

// Variable is one environment variable and what it does.
type Variable struct{ Name, Help string }

// Variables are the environment variables that sbx itself reads, those of providers and of task
// launch apart.
func Variables() []Variable {
	return []Variable{
		{EnvConfig, "a configuration file instead of the user's; --config overrides it"},
		{EnvStateDir, "the directory of tasks, records and journals, as an absolute path"},
		{EnvProvider, "the profiles that are used, separated by commas; --provider overrides it"},
		{EnvStoreURL, "a postgres:// URL: a store that several hosts share"},
		{EnvUnattended, "1: a cleanup without a terminal acts within its limits as with --yes; 0: it prints its plan"},
		{EnvNoColor, "anything but 0 and false turns colour off"},
		{"SBX_ACCESSIBLE", "anything but 0 and false writes for a screen reader: rows as key: value, no line that changes in place"},
		{"XDG_CONFIG_HOME", "the user's file is sbx/config.yaml in it; else ~/.config/sbx/config.yaml"},
		{"XDG_STATE_HOME", "where SBX_STATE_DIR is not set, the state directory is sbx in it; else ~/.local/state/sbx"},
		{"HOME", "the home directory; the passwd entry counts where it is not set"},
		{"NO_COLOR", "anything turns colour off (no-color.org)"},
		{"CLICOLOR_FORCE", "anything but 0 turns colour on in a pipe too; CLICOLOR=0 turns it off"},
		{"TERM", "dumb: no colour, and nothing that changes in place"},
		{"LC_ALL, LC_CTYPE, LANG", "another character set than UTF-8: what is not ASCII is escaped"},
		{"SSL_CERT_FILE, SSL_CERT_DIR", "certificates that are trusted, instead of the system's"},
		{"HTTPS_PROXY, NO_PROXY", "the proxy of requests to providers"},
	}
}
