package config

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/viper"

	"sbx/internal/fault"
)

// loader builds one Config. Its steps stand in Load, in their order.
type loader struct {
	in     Input
	file   File      // "" = there is no home directory
	doc    *document // what the file says; empty where there is none
	layers layers
	config *Config
	errs   []error

	unparsed bool // a file could not be read at all

	here             map[string]string   // sizes of task launch without the environment
	runWarnings      []string            // of task launch
	refusedVariables map[string][]string // of task launch, by the key that they would set
}

// Load reads and checks the configuration.
//
// Mistakes are fault.KindUsage, all of them at once as joined errors with
// `file:line:column:` each. A file that another user controls is fault.KindRefused. When ctx
// ends, the error is its cause. No config is returned beside an error.
func Load(ctx context.Context, in Input) (*Config, error) {
	l, err := newLoaded(ctx, in)
	if err != nil {
		return nil, err
	}
	l.explainValues()
	return l.config, nil
}

// Path is the file that Load would read, also one that is not there; "" = there is none. It reads no
// settings, so that it works while the file is broken.
func Path(in Input) (File, error) {
	l := &loader{in: in, config: &Config{}}
	if err := l.locateFile(); err != nil || l.file.Path == "" {
		return File{}, err
	}
	l.file.Found = !l.file.isAbsent()
	return l.file, nil
}

// newLoaded is Load without what explains the settings.
func newLoaded(ctx context.Context, in Input) (*loader, error) {
	in.Types = withCommon(in.Types)
	l := &loader{in: in, layers: newLayers(), doc: newDocument(""), config: &Config{}}
	if err := l.locateFile(); err != nil {
		return nil, err
	}
	if err := l.readFile(ctx); err != nil {
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
	l.resolveThresholds()
	l.resolveNotify()
	l.resolveKeys()
	l.resolveRun()
	return l, joinMistakes(l.errs)
}

// locateFile finds the file of --config, else the user's.
func (l *loader) locateFile() error {
	explicit, err := l.in.explicitFile()
	if err != nil {
		return err
	}
	state, err := l.in.stateDir()
	if err != nil && l.in.Process.Getenv(EnvStateDir) != "" {
		return err
	}
	l.config.stateErr = err
	l.checkState(state)
	if explicit.text != "" {
		l.file = File{Path: explicit.text, Role: RoleExplicit}
	} else if user := l.in.userFile(); user != "" {
		l.file = File{Path: user, Role: RoleUser}
	}
	return nil
}

// readFile decodes the file. Mistakes go to errs; the error is what forbids to read on.
func (l *loader) readFile(ctx context.Context) error {
	if l.file.Path == "" {
		return nil
	}
	content, err := l.file.readContent(ctx)
	switch {
	case err != nil && (ctx.Err() != nil || fault.KindOf(err) == fault.KindRefused):
		return err
	case err != nil:
		l.errs, l.unparsed = append(l.errs, err), true
	case content != nil:
		l.file.Found = true
		doc, errs := decodeFile(l.file.Path, content, l.in.Types)
		if l.errs = errs; doc == nil {
			l.unparsed = true
			break
		}
		l.doc = doc
	}
	l.config.File = l.file
	return nil
}

// The environment variables of sbx itself. An empty one counts as unset.
const (
	EnvConfig     = "SBX_CONFIG"     // a file instead of the user's
	EnvStateDir   = "SBX_STATE_DIR"  // absolute
	EnvProvider   = "SBX_PROVIDER"   // default of --provider; several with commas
	EnvUnattended = "SBX_UNATTENDED" // 1: a cleanup without a terminal acts; 0: it does not
	EnvNoColor    = "SBX_NO_COLOR"   // anything but 0 and false turns colour off
	EnvStoreURL   = "SBX_STORE_URL"  // postgres://...; whatever else is a mistake
)

const (
	keyUse        = "use"
	keyLaunch     = "launch"
	keyProduction = "production"
	keyStateDir   = "state_dir"
	keyNoColor    = "no_color"
	keyUnattended = "cleanup.unattended"
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

// stackValues lays defaults, file, environment and flags upon each other. Provider
// options of the environment follow when it is known which profiles take them.
func (l *loader) stackValues() {
	for _, s := range allSettings() {
		l.layers.byDefault(s.settingKey(), entry{text: s.fallback, origin: originDefault})
		if text, set := l.in.Flags[s.flag]; s.flag != "" && set {
			l.bindValue(s, "flag --"+s.flag, text, l.layers.byFlag)
		}
	}
	l.metadataDefaults()
	l.mergeLayer(l.doc.scalars)
	l.hereEntries()
	l.runEnvironment()
	if text := l.in.Process.Getenv(EnvProvider); text != "" {
		l.mergeLayer(map[string]entry{keyUse: {text: text, origin: "env " + EnvProvider}})
	}
	if text, set := l.in.Flags[flagProvider]; set {
		l.layers.byFlag(keyUse, entry{text: text, origin: "flag --" + flagProvider})
	}
	for _, s := range allSettings() {
		if text := l.in.Process.Getenv(s.variable); s.variable != "" && text != "" {
			l.bindValue(s, "env "+s.variable, text, func(key string, e entry) { l.mergeLayer(map[string]entry{key: e}) })
		}
	}
	l.resolveStore()
	l.config.NoColor = l.text(keyNoColor) == wordTrue
	l.config.Unattended = l.text(keyUnattended) == wordTrue
	l.config.Mouse = l.text(keyMouse) == mouseOn
}

// bindValue checks what a flag or a variable says of a setting, and lays it where it belongs.
func (l *loader) bindValue(s setting, origin, text string, lay func(string, entry)) {
	value, err := s.readText(text)
	if err != nil {
		l.addError("%s: %w%s", origin, err, withUnsetHint(text))
	}
	lay(s.settingKey(), entry{text: value, origin: origin})
}

// text is what holds of a setting.
func (l *loader) text(key string) string {
	e, _ := l.layers.lookup(key)
	return e.text
}

// amount is text in the smallest unit of the setting; it was checked where it came in.
func (l *loader) amount(key string) int64 {
	n, _ := settingOf(key).parseSetting(l.text(key))
	return n
}

// withUnsetHint adds to an error about an empty text where such a text comes from.
func withUnsetHint(text string) string {
	if text == "" {
		return " (is a shell variable unset?)"
	}
	return ""
}

// boolWord reads a switch that is on unless it says 0 or false.
func boolWord(text string) (string, error) {
	return strconv.FormatBool(text != "0" && text != wordFalse), nil
}

// oneOrZero reads a switch that decides over sandboxes: a word that is no yes or no is a mistake.
func oneOrZero(text string) (string, error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return "", errors.New("must be 1 or 0")
	}
	return strconv.FormatBool(on), nil
}

func (l *loader) mergeLayer(batch map[string]entry) {
	if err := l.layers.mergeOver(batch); err != nil {
		l.addError("settings cannot be merged: %w", err)
	}
}

func (l *loader) addError(format string, args ...any) {
	err := fault.Usage(format, args...).WithHint("`sbx config explain` and `sbx config path` show the files that are read")
	if strings.HasPrefix(err.Error(), "flag ") { // no configuration is to blame
		err.Hint = "correct the flag, or leave it out: the configuration decides then"
	}
	l.errs = append(l.errs, err)
}

const originDefault = "default"

// entry is one scalar with where it came from.
type entry struct {
	text     string
	origin   string
	variable string   // when set, the text is the value of this environment variable
	command  []string // when set, the text is the first line that this program prints
}

// layers decides which of several scalars of one key holds: flag over
// environment over file over default. Values are entries, so that the winner
// brings its origin along.
//
// Keys may hold dots, which mean nothing here.
type layers struct{ v *viper.Viper }

func newLayers() layers {
	return layers{viper.NewWithOptions(viper.KeyDelimiter("\x00"))}
}

func (l layers) byDefault(key string, e entry) { l.v.SetDefault(key, e) }

func (l layers) byFlag(key string, e entry) { l.v.Set(key, e) }

// mergeOver lays the file and then the environment over what is there, so the caller
// goes from the weakest to the strongest.
func (l layers) mergeOver(batch map[string]entry) error {
	loose := make(map[string]any, len(batch))
	for k, e := range batch {
		loose[k] = e
	}
	return l.v.MergeConfigMap(loose)
}

// lookup gives the entry that holds; false where nobody set the key.
func (l layers) lookup(key string) (entry, bool) {
	e, ok := l.v.Get(key).(entry)
	return e, ok
}
