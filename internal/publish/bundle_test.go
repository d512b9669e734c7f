package publish

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

// bundled writes a bundle by hand: header lines, then a pack of the objects.
func (w *world) bundled(header string, objects ...string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	path := filepath.Join(dir, "b")
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, "list"), []byte(strings.Join(objects, "\n")+"\n"), 0o600))
	w.run(w.inside, "-c", "alias.packed=!git pack-objects --quiet --stdout <"+dir+"/list >"+dir+"/pack", "packed")
	pack, err := os.ReadFile(filepath.Join(dir, "pack"))
	require.NoError(w.t, err)
	require.NoError(w.t, os.WriteFile(path, append([]byte(header+"\n"), pack...), 0o600))
	return path
}

// object stores any object, also an invalid one.
func (w *world) object(kind, content string) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "content")
	require.NoError(w.t, os.WriteFile(path, []byte(content), 0o600))
	return w.run(w.inside, "hash-object", "--literally", "-t", kind, "-w", path)
}

func (w *world) treeOf(mode, name, oid string) string {
	w.t.Helper()
	raw := make([]byte, 0, 20)
	for i := 0; i < len(oid); i += 2 {
		raw = append(raw, unhex(oid[i])<<4|unhex(oid[i+1]))
	}
	return w.object("tree", mode+" "+name+"\x00"+string(raw))
}

func unhex(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

func (w *world) commitOf(tree string) string {
	w.t.Helper()
	return w.object("commit", "tree "+tree+"\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nodd\n")
}

func TestHostileBundles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	harmless := w.object("blob", "x")
	file := w.treeOf("100644", "file", harmless)
	commit := w.commitOf(file)
	hostile := func(mode, name, content string) string {
		blob := w.object("blob", content)
		tree := w.treeOf(mode, name, blob)
		if mode == "40000" {
			blob, tree = file, w.treeOf(mode, name, file)
		}
		c := w.commitOf(tree)
		return w.bundled("# v2 git bundle\n"+c+" HEAD\n", c, tree, blob, file, harmless)
	}
	missing := strings.Repeat("a", 40)
	for name, path := range map[string]string{
		".git in a tree":                       hostile("40000", ".git", ""),
		".GIT in a tree":                       hostile("40000", ".GIT", ""),
		".git as another disk spells it":       hostile("40000", "git~1", ""),
		".. in a tree":                         hostile("40000", "..", ""),
		"a slash in a name":                    hostile("100644", "a/b", "x"),
		"a submodule's address that is option": hostile("100644", ".gitmodules", "[submodule \"a\"]\n\tpath = a\n\turl = -u./payload\n"),
		"a submodule that leaves its place":    hostile("100644", ".gitmodules", "[submodule \"../../x\"]\n\tpath = a\n\turl = https://h/r\n"),
		".gitmodules as a link":                hostile("120000", ".gitmodules", "/etc/passwd"),
		"HEAD that is not in it":               w.bundled("# v2 git bundle\n"+missing+" HEAD\n", commit, file, harmless),
		"HEAD that is a tree":                  w.bundled("# v2 git bundle\n"+file+" HEAD\n", file, harmless),
		"HEAD that is a blob":                  w.bundled("# v2 git bundle\n"+harmless+" HEAD\n", harmless),
		"a file that is missing":               w.bundled("# v2 git bundle\n"+commit+" HEAD\n", commit, file),
		"a parent that is missing":             w.bundled("# v2 git bundle\n"+w.commit("child")+" HEAD\n", w.head()),
		"a ref like an option":                 w.bundled("# v2 git bundle\n"+commit+" --upload-pack=touch\n"+commit+" HEAD\x00\n", commit, file, harmless),
		"no HEAD among several":                w.bundled("# v2 git bundle\n"+commit+" refs/heads/a\n"+commit+" refs/heads/b\n", commit, file, harmless),
		"left out objects":                     w.bundled("# v3 git bundle\n@filter=blob:none\n"+commit+" HEAD\n", commit, file),
		"another version":                      w.bundled("# v9 git bundle\n"+commit+" HEAD\n", commit, file, harmless),
		"two kinds of names":                   w.bundled("# v3 git bundle\n@object-format=sha256\n"+commit+" HEAD\n", commit, file, harmless),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := w.git.Publish(t.Context(), Push{Task: "t1", Target: w.target("agent/t1"), Bundle: path})
			require.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, "the bundle")
			if name == ".git in a tree" {
				require.ErrorContains(t, err, "hasDotgit", "the reason is told")
			}
			assert.Empty(t, w.at("refs/heads/agent/t1"))
			assert.Empty(t, w.at("refs/sbx/fence/t1"))
		})
	}
	// without the invalid objects the publish succeeds
	_, err := w.git.Publish(t.Context(), Push{Task: "t2", Target: w.target("agent/t2"), Bundle: w.bundled("# v2 git bundle\n"+commit+" refs/heads/only\n", commit, file, harmless)})
	require.NoError(t, err)
}

func TestCheckBundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("work")
	path := w.collect(w.base)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	b, err := CheckBundle(path)
	require.NoError(t, err)
	require.Equal(t, Bundle{Head: w.head(), Prerequisites: []string{w.base}}, b)
	header := strings.Index(string(good), "\n\n") + 2
	flipped := []byte(string(good))
	flipped[len(flipped)-30] ^= 1
	many := "# v2 git bundle\n" + strings.Repeat("-"+w.base+" x\n", maxPrerequisites+1) + "\n"
	for name, text := range map[string]string{
		"empty": "", "nothing of git": "<html>502</html>\n\n", "cut in the header": string(good[:30]), "no pack": string(good[:header]),
		"cut in the pack": string(good[:len(good)-7]), "one bit": string(flipped), "more behind it": string(good) + "x",
		"text before it": "warning: x\n" + string(good), "endless line": strings.Repeat("x", maxHeader+10), "endless header": many + string(good[header:]),
	} {
		bad := filepath.Join(t.TempDir(), "b")
		require.NoError(t, os.WriteFile(bad, []byte(text), 0o600))
		_, err := CheckBundle(bad)
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%s: %v", name, err)
	}
	_, err = CheckBundle(filepath.Join(t.TempDir(), "missing"))
	require.Error(t, err)
}

func TestLimitFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "b")
	f, err := NewLimitFile(path, 5)
	require.NoError(t, err)
	n, err := f.Write([]byte("abc"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	_, err = f.Write([]byte("def"))
	require.ErrorIs(t, err, ErrTooBig)
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	_, err = f.Write([]byte("d"))
	require.ErrorIs(t, err, ErrTooBig, "a hole in the middle would be worse than an end")
	require.ErrorIs(t, f.Close(), ErrTooBig)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "abc", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, err = NewLimitFile(path, 5)
	require.Error(t, err, "what lies there is not written over")
	full, err := NewLimitFile(path+"2", 3)
	require.NoError(t, err)
	_, err = full.Write([]byte("abc"))
	require.NoError(t, errors.Join(err, full.Close()), "the limit itself fits")
}

func FuzzBundleHeader(f *testing.F) {
	oid := strings.Repeat("a", 40)
	f.Add("# v2 git bundle\n-" + oid + " x\n" + oid + " HEAD\n\nPACK")
	f.Add("# v3 git bundle\n@object-format=sha256\n" + oid + strings.Repeat("b", 24) + " HEAD\n\n")
	f.Add("# v2 git bundle\n" + oid + " -x\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := readHeader(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			if fault.KindOf(err) != fault.KindRefused {
				t.Fatal(err)
			}
			return
		}
		for _, oid := range append(b.Prerequisites, b.Head) {
			if !isOID(oid) {
				t.Fatalf("%q gives %+v", text, b)
			}
		}
	})
}
