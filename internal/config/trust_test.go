package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

const widening = "limits: {max_delete: 99}\n"

func trust(t *testing.T, w *world, path string) Grant {
	t.Helper()
	grant, err := Trust(t.Context(), w.input(), path)
	require.NoError(t, err)
	return grant
}

func TestTrustHoldsForExactlyThatContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.project(widening)
	assert.Contains(t, w.fails(), "may not raise")
	grant := trust(t, w, "")
	assert.Equal(t, path, grant.Path)
	assert.Equal(t, []string{"a project file may raise limits.max_delete above 20, here to 99"}, grant.Allows)
	assert.Len(t, grant.SHA256, 64)
	assert.Equal(t, 99, w.must().Limits.MaxDelete)

	w.project(widening + "# changed\n")
	assert.Contains(t, w.fails(), "may not raise", "a changed file is untrusted again")
	w.project(widening)
	assert.Equal(t, 99, w.must().Limits.MaxDelete)

	require.NoError(t, os.Rename(filepath.Dir(path), filepath.Join(w.home, "elsewhere")))
	w.work = filepath.Join(w.home, "elsewhere", "deep")
	assert.Contains(t, w.fails(), "may not raise", "the same content elsewhere is not trusted")
}

func TestTrustRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trust(t, w, w.project(widening))
	trust(t, w, w.project(widening+"#"))
	other := w.write(filepath.Join(w.home, "other", ProjectFile), widening)
	trust(t, w, other)
	record := filepath.Join(w.state, "trust.json")
	info, err := os.Stat(record)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	assert.JSONEq(t, `{"schema":"sbx.trust/v1","files":[
		{"path":"DIR/home/project/.sbx.yaml","sha256":"`+sha256Hex([]byte(widening+"#"))+`","at":"2026-11-20T12:00:00Z"},
		{"path":"DIR/home/other/.sbx.yaml","sha256":"`+sha256Hex([]byte(widening))+`","at":"2026-11-20T12:00:00Z"}]}`, w.short(string(text)))
	left, err := os.ReadDir(w.state)
	require.NoError(t, err)
	assert.Len(t, left, 1, "no draft is left")
}

func TestTrustFollowsTheNameOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project(widening)
	link := filepath.Join(w.root, "link")
	require.NoError(t, os.Symlink(filepath.Join(w.home, "project"), link))
	trust(t, w, link)
	assert.Equal(t, 99, w.must().Limits.MaxDelete, "a folder by a link is the same file")
	w.work = filepath.Join(link, "deep")
	assert.Equal(t, 99, w.must().Limits.MaxDelete)
	w.work = filepath.Join(w.home, "project")
	trust(t, w, ".")
	trust(t, w, ProjectFile)
}

func TestTrustIgnoresWhatReplacesTheFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.project(widening)
	w.env = append(w.env, "SBX_CONFIG=/dev/null", "SBX_PROVIDER=nobody")
	w.flags["provider"] = "nobody"
	trust(t, w, path)
	w.env, w.flags = w.env[:1], map[string]string{}
	assert.Equal(t, 99, w.must().Limits.MaxDelete)
}

func TestTrustRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make func(w *world) string
		kind fault.Kind
		want string
	}{
		"nothing there": {func(*world) string { return "" }, fault.KindUsage, "there is no .sbx.yaml from here upward"},
		"another file":  {func(w *world) string { return w.user("") }, fault.KindUsage, "is not a project file"},
		"missing":       {func(*world) string { return ProjectFile }, fault.KindUsage, "cannot be read: no such file or directory"},
		"broken":        {func(w *world) string { return w.project("limts: {}") }, fault.KindUsage, `.sbx.yaml:1:1: unknown key "limts"`},
		"broken record": {func(w *world) string {
			w.write(filepath.Join(w.state, "trust.json"), "{")
			return w.project(widening)
		}, fault.KindRefused, "trust.json: the record of trusted files cannot be used"},
		"newer record": {func(w *world) string {
			w.write(filepath.Join(w.state, "trust.json"), `{"schema":"sbx.trust/v2","files":[]}`)
			return w.project(widening)
		}, fault.KindRefused, "its schema is not sbx.trust/v1"},
		"no folder": {func(w *world) string {
			w.write(w.state, "a file where the state directory should be")
			return w.project(widening)
		}, fault.KindRefused, "trust.json: the record of trusted files cannot be used: not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := Trust(t.Context(), w.input(), tc.make(w))
			require.Error(t, err)
			assert.Contains(t, w.short(err.Error()), tc.want)
			assert.Equal(t, tc.kind, fault.KindOf(err))
			assert.NotEmpty(t, fault.HintOf(err))
		})
	}
}

func TestBrokenRecordTrustsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.project(widening)
	trust(t, w, path)
	require.NoError(t, os.WriteFile(filepath.Join(w.state, "trust.json"), []byte(`{"files":`), 0o600))
	assert.Contains(t, w.fails(), "may not raise")
	w.project("limits: {max_delete: 1}")
	assert.Equal(t, 1, w.must().Limits.MaxDelete, "what narrows needs no record")
}

func FuzzParseTrust(f *testing.F) {
	f.Add([]byte(`{"schema":"sbx.trust/v1","files":[{"path":"/a","sha256":"x","at":"2026-11-20T12:00:00Z"}]}`))
	f.Add([]byte(`{"schema":"sbx.trust/v1","files":null,"more":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		record, err := parseTrust("/trust.json", text)
		if err != nil {
			require.Empty(t, record.Files, "files beside an error")
			require.Equal(t, fault.KindRefused, fault.KindOf(err))
			return
		}
		require.Equal(t, trustSchema, record.Schema)
	})
}
