package config

import "github.com/spf13/viper"

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
