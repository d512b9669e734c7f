package config

import (
	"github.com/spf13/viper"

	"sbx/internal/fault"
)

// stackValues lays defaults, files, environment and flags upon each other. Provider
// options of the environment follow when it is known which profiles take them.
func (l *loader) stackValues() {
	for _, m := range limitSettings() {
		l.layers.byDefault(m.settingKey(), entry{text: m.fallback, origin: originDefault})
		if text, set := l.in.Flags[m.flag]; m.flag != "" && set {
			if err := checkKind(m.kind, text); err != nil {
				l.addError("flag --%s: %w%s", m.flag, err, withUnsetHint(text))
			}
			l.layers.byFlag(m.settingKey(), entry{text: text, origin: "flag --" + m.flag})
		}
	}
	l.runDefaults()
	l.metadataDefaults()
	for _, doc := range l.docs {
		l.mergeLayer(doc.scalars)
	}
	l.hereEntries()
	l.runEnvironment()
	if text := l.in.Process.Getenv(EnvProvider); text != "" {
		l.mergeLayer(map[string]entry{keyUse: {text: text, origin: "env " + EnvProvider}})
	}
	if text, set := l.in.Flags[flagProvider]; set {
		l.layers.byFlag(keyUse, entry{text: text, origin: "flag --" + flagProvider})
	}
	l.resolveColor()
	l.resolveStore()
}

func (l *loader) resolveColor() {
	l.layers.byDefault(keyNoColor, entry{text: "false", origin: originDefault})
	if text := l.in.Process.Getenv(EnvNoColor); text != "" {
		l.mergeLayer(map[string]entry{keyNoColor: {text: boolWord(text), origin: "env " + EnvNoColor}})
	}
	if text, set := l.in.Flags[flagNoColor]; set {
		l.layers.byFlag(keyNoColor, entry{text: boolWord(text), origin: "flag --" + flagNoColor})
	}
	e, _ := l.layers.lookup(keyNoColor)
	l.config.NoColor = e.text == "true"
}

// withUnsetHint adds to an error about an empty text where such a text comes from.
func withUnsetHint(text string) string {
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

func (l *loader) mergeLayer(batch map[string]entry) {
	if err := l.layers.mergeOver(batch); err != nil {
		l.addError("settings cannot be merged: %w", err)
	}
}

func (l *loader) addError(format string, args ...any) {
	l.errs = append(l.errs, fault.Usage(format, args...).WithHint("`sbx config explain` and `sbx config path` show what is read"))
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
// environment over files over default. Values are entries, so that the winner
// brings its origin along.
//
// Keys may hold dots, which mean nothing here.
type layers struct{ v *viper.Viper }

func newLayers() layers {
	return layers{viper.NewWithOptions(viper.KeyDelimiter("\x00"))}
}

func (l layers) byDefault(key string, e entry) { l.v.SetDefault(key, e) }

func (l layers) byFlag(key string, e entry) { l.v.Set(key, e) }

// mergeOver lays files and then the environment over what is there, so the caller
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
