package config

import (
	"slices"
	"strings"

	"sbx/internal/providers"
)

// Value is one effective setting as `config explain` shows it.
type Value struct {
	Key    string
	Value  string // a secret is masked
	Origin string // "flag --provider", "env E2B_API_KEY", "/path/config.yaml:12", "default"; several with commas
	Secret bool
}

// Values lists every effective setting, the general ones first.
func (c *Config) Values() []Value { return slices.Clone(c.values) }

func (l *loader) explainValues() {
	l.explainGeneral()
	l.explainLists()
	for _, m := range limitSettings() {
		l.explainSetting(m.settingKey())
	}
	l.explainSetting(keyUnattended)
	l.explainThresholds()
	l.explainMetadata("")
	l.explainRun()
	l.explainNotify()
	l.explainKeys()
	l.explainSetting(keyMouse)
	for _, p := range slices.Concat(l.config.Profiles, l.config.Sources) {
		l.explainProfile(p)
	}
}

func (l *loader) showValue(key string, e entry, secret bool) {
	text := withoutPassword(e.text)
	if secret && (e.text != "" || len(e.command) > 0) {
		text = Mask
	}
	l.config.values = append(l.config.values, Value{Key: key, Value: text, Origin: e.origin, Secret: secret})
}

func (l *loader) explainSetting(key string) {
	e, _ := l.layers.lookup(key)
	l.showValue(key, e, false)
}

func (l *loader) explainGeneral() {
	explicit, _ := l.in.explicitFile() // an error has ended Load before
	state, _ := l.in.stateDir()
	if explicit.text == "" {
		explicit.origin = originDefault
	}
	l.showValue(keyConfig, explicit, false)
	l.showValue(keyStateDir, state, false)
	l.showValue(keyStoreURL, l.shownStore(), false)
	l.explainSetting(keyNoColor)
	use, ok := l.layers.lookup(keyUse)
	if !ok {
		use = entry{text: strings.Join(l.config.profileNames(), ","), origin: originDefault}
	}
	l.showValue(keyUse, use, false)
	launch, ok := l.layers.lookup(keyLaunch)
	if !ok {
		launch = entry{text: l.config.Launch, origin: originDefault}
	}
	l.showValue(keyLaunch, launch, false)
}

// explainLists shows the lists of the file.
func (l *loader) explainLists() {
	var production, labels, ids gathered
	for _, w := range l.doc.production {
		production.add(w.text, l.doc.originAt(w.at))
	}
	for _, p := range l.doc.labels {
		labels.add(p.value.Key+"="+p.value.Value, l.doc.originAt(p.at))
	}
	for _, p := range l.doc.ids {
		ids.add(p.value.String(), l.doc.originAt(p.at))
	}
	l.showValue(keyProduction, production.joinedEntry(), false)
	l.showValue("protect.labels", labels.joinedEntry(), false)
	l.showValue("protect.ids", ids.joinedEntry(), false)
}

// gathered is a list with the origins of its items, in the order of the file.
type gathered struct{ texts, origins []string }

func (g *gathered) add(text, origin string) {
	g.texts, g.origins = append(g.texts, text), append(g.origins, origin)
}

func (g *gathered) joinedEntry() entry {
	if len(g.texts) == 0 {
		return entry{origin: originDefault}
	}
	return entry{text: strings.Join(g.texts, ","), origin: joinWords(slices.Compact(g.origins))}
}

func (l *loader) explainProfile(p Profile) {
	t, _ := findType(l.in.Types, p.Type)
	l.showValue(optionKey(p.Name, keyType), entry{text: p.Type, origin: l.profileCause(p, t)}, false)
	if t.Attach == nil {
		l.showValue(optionKey(p.Name, keyOwned), entry{text: p.Owned.String(), origin: l.ownedBy(p)}, false)
	}
	l.explainMetadata(p.Name)
	for _, o := range t.Options {
		e := l.resolveEntry(optionKey(p.Name, o.Name), o)
		if e.origin == "" {
			e.origin = originDefault
		}
		l.showValue(optionKey(p.Name, o.Name), e, o.Secret)
		l.keepSecret(o, e.text)
	}
}

func (l *loader) profileCause(p Profile, t providers.Type) string {
	switch {
	case !p.Implicit:
		return l.whereIs(p.Name)
	case t.Always:
		return originDefault
	}
	return "env " + strings.Join(t.SwitchedOn, ", ")
}

func (l *loader) ownedBy(p Profile) string {
	if b, ok := l.doc.block(p.Name); ok && b.owned != nil {
		return l.doc.originAt(b.at)
	}
	return originDefault
}

// Mask stands for every secret, whatever its length; an option without a value
// is shown empty.
const Mask = "********"

func (l *loader) keepSecret(o providers.Option, text string) {
	if !o.Secret {
		text = passwordOf(text)
	}
	if text != "" && !slices.Contains(l.config.secrets, text) {
		l.config.secrets = append(l.config.secrets, text)
	}
}

// passwordOf gives the password that stands in a URL, as it is written there.
func passwordOf(text string) string {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return ""
	}
	authority, _, _ := strings.Cut(rest, "/")
	i := strings.LastIndex(authority, "@")
	if i < 0 {
		return ""
	}
	_, secret, _ := strings.Cut(authority[:i], ":")
	return secret
}

func withoutPassword(text string) string {
	if secret := passwordOf(text); secret != "" {
		return strings.Replace(text, ":"+secret+"@", ":"+Mask+"@", 1)
	}
	return text
}

// withoutQuery masks what follows the ? of an address: a token often stands
// there.
func withoutQuery(text string) string {
	if before, query, ok := strings.Cut(text, "?"); ok && query != "" {
		return before + "?" + Mask
	}
	return text
}

func (l *loader) keepAddress(text string) {
	l.keepSecret(providers.Option{}, text)
	if _, query, ok := strings.Cut(text, "?"); ok {
		l.keepSecret(providers.Option{Secret: true}, query)
	}
}
