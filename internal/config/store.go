package config

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	dsn "sbx/internal/store/address"
)

// readStoreURL reads where the store is. What it says of a bad URL shows nothing of it.
func (d *decoder) readStoreURL(v value) {
	text := ""
	if v.Node.Kind != yaml.ScalarNode || v.Node.Value != "" { // an empty one is a choice: SQLite
		var ok bool
		if text, ok = d.readText(v, keyStoreURL); !ok {
			return
		}
	}
	if _, err := storeAddress(text); err != nil {
		bad := mistakeAt(d.doc.path, v.At(), "%s: %w", keyStoreURL, err)
		d.errs = append(d.errs, fault.Usage("%w", bad).WithHint("%s", fault.HintOf(err)))
		return
	}
	d.doc.setValue(keyStoreURL, text, v.At())
}

// resolveStore settles where the store is, and keeps its secrets from every text.
func (l *loader) resolveStore() {
	l.layers.byDefault(keyStoreURL, entry{origin: originDefault})
	if text := l.in.Process.Getenv(EnvStoreURL); text != "" {
		if _, err := storeAddress(text); err != nil {
			l.errs = append(l.errs, fault.Placed(err, "", "env "+EnvStoreURL))
			return
		}
		l.mergeLayer(map[string]entry{keyStoreURL: {text: text, origin: "env " + EnvStoreURL}})
	}
	e, _ := l.layers.lookup(keyStoreURL)
	l.config.StoreURL = e.text
	at, _ := storeAddress(e.text) // checked where it came in
	for _, secret := range at.Secrets() {
		if !slices.Contains(l.config.secrets, secret) {
			l.config.secrets = append(l.config.secrets, secret)
		}
	}
}

// shownStore is the address of the store as it may be shown.
func (l *loader) shownStore() entry {
	e, _ := l.layers.lookup(keyStoreURL)
	at, _ := storeAddress(e.text)
	e.text = at.String()
	return e
}

// storeAddress is address.Parse that takes no URL for no address.
func storeAddress(text string) (dsn.Postgres, error) {
	if text == "" {
		return dsn.Postgres{}, nil
	}
	return dsn.Parse(text)
}
