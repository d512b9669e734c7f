package config

import (
	"context"

	"sbx/internal/fault"
)

// loader builds one Config. Its steps stand in Load, in their order.
type loader struct {
	in      Input
	files   []File
	docs    []*document // of files that are there, weakest first
	layers  layers
	config  *Config
	project string // the project's file; "" = none
	errs    []error

	unparsed bool // a file could not be read at all

	here             map[string]string   // sizes of task launch without the environment
	runWarnings      []string            // of task launch
	refusedVariables map[string][]string // of task launch, by the key that they would set
}

// Load reads and checks the configuration.
//
// Mistakes are fault.KindUsage, all of them at once as joined errors with
// `file:line:column:` each. A project file that widens without trust is
// fault.KindRefused, and so is a user's or an explicit file that another user
// controls. When ctx ends, the error is its cause. No config is returned beside an
// error.
func Load(ctx context.Context, in Input) (*Config, error) {
	l, err := loadWithProject(ctx, in, "")
	if err != nil {
		return nil, err
	}
	if refusals := l.untrustedRefusals(); len(refusals) > 0 {
		return nil, joinMistakes(refusals)
	}
	l.explainValues()
	return l.config, nil
}

// Paths lists the files that Load would read, weakest first, also those that
// are not there. It reads no settings, so that it works while a file is broken.
func Paths(ctx context.Context, in Input) ([]File, error) {
	l := &loader{in: in, config: &Config{}}
	if err := l.locateFiles(ctx); err != nil {
		return nil, err
	}
	for i, f := range l.files {
		l.files[i].Found = !f.isAbsent()
		if f.Role != RoleProject || f.Ignored != "" {
			continue
		}
		if content, err := f.readContent(ctx); err == nil {
			l.files[i].sum = sha256Hex(content)
			l.files[i].Trusted = l.isTrusted(l.files[i])
		}
	}
	return l.files, nil
}

// loadWithProject does all but the question of trust, with the project file at that path;
// "" = the one that is found.
func loadWithProject(ctx context.Context, in Input, project string) (*loader, error) {
	in.Types = withCommon(in.Types)
	l := &loader{in: in, project: project, layers: newLayers(), config: &Config{}}
	if err := l.locateFiles(ctx); err != nil {
		return nil, err
	}
	if err := l.readFiles(ctx); err != nil {
		return nil, err
	}
	if len(l.errs) > 0 {
		if !l.unparsed { // the names can be judged all the same, so that one run shows all mistakes
			l.checkNames(l.possibleProfileNames())
		}
		return nil, joinMistakes(l.errs)
	}
	l.stackValues()
	l.buildProfiles()
	l.chooseProfiles()
	l.collectGuards()
	l.resolveNotify()
	l.resolveRun()
	return l, joinMistakes(l.errs)
}

// locateFiles finds the files and the state directory.
func (l *loader) locateFiles(ctx context.Context) error {
	explicit, err := l.in.explicitFile()
	if err != nil {
		return err
	}
	state, err := l.in.stateDir()
	if err != nil && l.in.Process.Getenv(EnvStateDir) != "" {
		return err
	}
	l.config.StateDir, l.config.stateErr = state.text, err
	l.checkState()
	if explicit.text != "" {
		l.files = []File{{Path: explicit.text, Role: RoleExplicit, Trusted: true}}
		return nil
	}
	if user := l.in.userFile(); user != "" {
		l.files = append(l.files, File{Path: user, Role: RoleUser, Trusted: true})
	}
	if l.project == "" {
		l.project = l.findProject(ctx)
	}
	if l.project != "" {
		l.files = append(l.files, File{Path: l.project, Role: RoleProject})
	}
	return nil
}

// readFiles decodes the files. A later one is decoded with the profiles of the
// earlier ones known. Mistakes go to errs; the error is what forbids to read on.
func (l *loader) readFiles(ctx context.Context) error {
	known := map[string]string{}
	for i, f := range l.files {
		if f.Ignored != "" {
			continue
		}
		content, err := f.readContent(ctx)
		if err != nil && (ctx.Err() != nil || fault.KindOf(err) == fault.KindRefused) {
			return err
		}
		if err != nil {
			l.errs, l.unparsed = append(l.errs, err), true
			continue
		}
		if content == nil {
			continue
		}
		l.files[i].Found = true
		l.files[i].sum = sha256Hex(content)
		l.files[i].Trusted = f.Trusted || l.isTrusted(l.files[i])
		doc, errs := decodeFile(f.Path, content, l.in.Types, known)
		l.errs = append(l.errs, errs...)
		if doc == nil {
			l.unparsed = true
			continue
		}
		for _, b := range doc.profiles {
			known[b.name.text] = b.kind
		}
		l.docs = append(l.docs, doc)
	}
	l.config.Files = l.files
	return nil
}

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
