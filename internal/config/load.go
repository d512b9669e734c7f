package config

import (
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
}

// Load reads and checks the configuration.
//
// Mistakes are fault.KindUsage, all of them at once as joined errors with
// `file:line:column:` each. A project file that widens without trust is
// fault.KindRefused. No config is returned beside an error.
func Load(in Input) (*Config, error) {
	l, err := assemble(in, in.projectFile())
	if err != nil {
		return nil, err
	}
	if refusals := l.refusals(); len(refusals) > 0 {
		return nil, joined(refusals)
	}
	l.explain()
	return l.config, nil
}

// Paths lists the files that Load would read, weakest first, also those that
// are not there. It reads no settings, so that it works while a file is broken.
func Paths(in Input) ([]File, error) {
	l := &loader{in: in, project: in.projectFile(), config: &Config{}}
	if err := l.locate(); err != nil {
		return nil, err
	}
	for i, f := range l.files {
		l.files[i].Found = !f.absent()
		if f.Role != RoleProject {
			continue
		}
		if content, err := f.read(); err == nil {
			l.files[i].sum = sum(content)
			l.files[i].Trusted = l.trusted(l.files[i])
		}
	}
	return l.files, nil
}

// assemble does all but the question of trust.
func assemble(in Input, project string) (*loader, error) {
	l := &loader{in: in, project: project, layers: newLayers(), config: &Config{}}
	if err := l.locate(); err != nil {
		return nil, err
	}
	l.read()
	if len(l.errs) > 0 {
		if !l.unparsed { // the names can be judged all the same, so that one run shows all mistakes
			l.checkNames(l.possible())
		}
		return nil, joined(l.errs)
	}
	l.stack()
	l.profiles()
	l.choose()
	l.guards()
	return l, joined(l.errs)
}

// locate finds the files and the state directory.
func (l *loader) locate() error {
	explicit, err := l.in.explicitFile()
	if err != nil {
		return err
	}
	state, err := l.in.stateDir()
	if err != nil {
		return err
	}
	l.config.StateDir = state.text
	if explicit.text != "" {
		l.files = []File{{Path: explicit.text, Role: RoleExplicit, Trusted: true}}
		return nil
	}
	if user := l.in.userFile(); user != "" {
		l.files = append(l.files, File{Path: user, Role: RoleUser, Trusted: true})
	}
	if l.project != "" {
		l.files = append(l.files, File{Path: l.project, Role: RoleProject})
	}
	return nil
}

// read decodes the files. A later one is decoded with the profiles of the
// earlier ones known.
func (l *loader) read() {
	known := map[string]string{}
	for i, f := range l.files {
		content, err := f.read()
		if err != nil {
			l.errs, l.unparsed = append(l.errs, err), true
			continue
		}
		if content == nil {
			continue
		}
		l.files[i].Found = true
		l.files[i].sum = sum(content)
		l.files[i].Trusted = f.Trusted || l.trusted(l.files[i])
		doc, errs := decode(f.Path, content, l.in.Types, known)
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
}

// stack lays defaults, files, environment and flags upon each other. Provider
// options of the environment follow when it is known which profiles take them.
func (l *loader) stack() {
	for _, m := range limits() {
		l.layers.byDefault(m.key(), entry{text: m.fallback, origin: originDefault})
		if text, set := l.in.Flags[m.flag]; m.flag != "" && set {
			if err := check(m.kind, text); err != nil {
				l.fail("flag --%s: %w%s", m.flag, err, unset(text))
			}
			l.layers.byFlag(m.key(), entry{text: text, origin: "flag --" + m.flag})
		}
	}
	for _, doc := range l.docs {
		l.merge(doc.scalars)
	}
	if text := l.in.Process.Getenv(EnvProvider); text != "" {
		l.merge(map[string]entry{keyUse: {text: text, origin: "env " + EnvProvider}})
	}
	if text, set := l.in.Flags[flagProvider]; set {
		l.layers.byFlag(keyUse, entry{text: text, origin: "flag --" + flagProvider})
	}
	l.colour()
}

func (l *loader) colour() {
	l.layers.byDefault(keyNoColor, entry{text: "false", origin: originDefault})
	if text := l.in.Process.Getenv(EnvNoColor); text != "" {
		l.merge(map[string]entry{keyNoColor: {text: boolWord(text), origin: "env " + EnvNoColor}})
	}
	if text, set := l.in.Flags[flagNoColor]; set {
		l.layers.byFlag(keyNoColor, entry{text: boolWord(text), origin: "flag --" + flagNoColor})
	}
	e, _ := l.layers.get(keyNoColor)
	l.config.NoColor = e.text == "true"
}

// unset adds to an error about an empty text where such a text comes from.
func unset(text string) string {
	if text == "" {
		return " (is a shell variable unset?)"
	}
	return ""
}

func boolWord(text string) string {
	if text == "0" || text == "false" {
		return "false"
	}
	return "true"
}

func (l *loader) merge(batch map[string]entry) {
	if err := l.layers.merge(batch); err != nil {
		l.fail("settings cannot be merged: %w", err)
	}
}

func (l *loader) fail(format string, args ...any) {
	l.errs = append(l.errs, fault.Usage(format, args...).WithHint("`sbx config explain` and `sbx config path` show what is read"))
}
