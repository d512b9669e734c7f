package config

import (
	"maps"
	"slices"
	"strings"

	"sbx/internal/yamltext"
)

// NotifyServices are the services that notify.routes and notify.levels name.
func NotifyServices() []string { return []string{"slack", "pagerduty", "webhook"} }

// NotifySeverities are the keys of notify.routes.
func NotifySeverities() []string { return []string{"critical", "warning"} }

// NotifyLevels are the keys of notify.levels.
func NotifyLevels() []string { return []string{"agents", "infrastructure", "vendor"} }

// routeTable is a table below notify that names services.
type routeTable struct {
	name, help, sample string
	keys               []string
	field              func(*Notify) *map[string][]string
}

func routeTables() []routeTable {
	return []routeTable{
		{
			"routes", "which services get messages of a severity; a severity without a line goes to all", "{critical: [pagerduty, slack], warning: [slack]}",
			NotifySeverities(), func(n *Notify) *map[string][]string { return &n.Routes },
		},
		{
			"levels", "which services get alerts of a level (who acts first), in place of routes", "{vendor: [webhook]}",
			NotifyLevels(), func(n *Notify) *map[string][]string { return &n.Levels },
		},
	}
}

func (t routeTable) settingKey(name string) string { return keyNotify + "." + t.name + "." + name }

// readServices reads the services of one key of such a table.
func (d *decoder) readServices(key string, v value) {
	words := d.readWords(v)
	for _, w := range words {
		if !slices.Contains(NotifyServices(), w.text) {
			d.RefuseWord(w.at, w.text, NotifyServices(), "%s names the unknown service %s", strings.TrimPrefix(key, keyNotify+"."), yamltext.QuoteKey(w.text))
		}
	}
	d.doc.setValue(key, strings.Join(wordTexts(words), ", "), v.At())
}

// address is where a service is reached; "" = it is not configured.
func (n Notify) address(service string) string {
	return map[string]string{"slack": n.Slack, "pagerduty": n.PagerDuty, "webhook": n.Webhook}[service]
}

// resolveRoutes fills the tables, after the addresses.
func (l *loader) resolveRoutes() {
	for _, t := range routeTables() {
		var table map[string][]string
		for _, key := range t.keys {
			if e, ok := l.layers.lookup(t.settingKey(key)); ok {
				if table == nil {
					table = map[string][]string{}
				}
				table[key] = strings.FieldsFunc(e.text, func(r rune) bool { return r == ',' || r == ' ' })
			}
		}
		*t.field(&l.config.Notify) = table
		for _, key := range slices.Sorted(maps.Keys(table)) {
			for _, service := range table[key] {
				if l.config.Notify.address(service) == "" {
					l.config.Notify.Unset = append(l.config.Notify.Unset, t.settingKey(key)+" names "+service+", which has no address")
				}
			}
		}
	}
}

func (l *loader) explainRoutes() {
	for _, t := range routeTables() {
		for _, key := range t.keys {
			e, ok := l.layers.lookup(t.settingKey(key))
			switch {
			case !ok:
				e = entry{text: map[string]string{"routes": "every service", "levels": "as its severity"}[t.name], origin: originDefault}
			case e.text == "":
				e.text = "nobody"
			}
			l.showValue(t.settingKey(key), e, false)
		}
	}
}
