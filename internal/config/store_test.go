package config

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
)

const storeFile = "store: {url: \"postgres://me:s3cret%40@db.example/sbx?sslpassword=oth3r\"}"

func TestStoreURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.must()
	assert.Empty(t, c.StoreURL)
	assert.Equal(t, " <- default", w.origin(c, "store.url"))

	w.user(storeFile)
	c = w.must()
	assert.Equal(t, "postgres://me:s3cret%40@db.example/sbx?sslpassword=oth3r", c.StoreURL)
	assert.Equal(t, "postgres://me:********@db.example/sbx?sslpassword=******** <- DIR/home/.config/sbx/config.yaml:1", w.origin(c, "store.url"))
	assert.Equal(t, []string{"s3cret%40", "s3cret@", "oth3r"}, c.Secrets())

	w.env = append(w.env, "SBX_STORE_URL=postgresql://other@h/db")
	c = w.must()
	assert.Equal(t, "postgresql://other@h/db <- env SBX_STORE_URL", w.origin(c, "store.url"))
	assert.NotContains(t, c.Secrets(), "oth3r")

	w.user("store: {url: \"\"}")
	w.env = append(w.env, "SBX_STORE_URL=")
	assert.Equal(t, " <- DIR/home/.config/sbx/config.yaml:1", w.origin(w.must(), "store.url"))
}

func TestStoreURLThatIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "SBX_STORE_URL=mysql://me:s3cret@h/db")
	assert.Equal(t, "env SBX_STORE_URL: it is not a postgres:// or postgresql:// URL", w.fails())
	_, err := w.load()
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Contains(t, fault.HintOf(err), "%40")
}
