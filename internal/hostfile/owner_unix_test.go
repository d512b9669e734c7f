//go:build unix

package hostfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

// place is a directory that only this user controls, without links in its path.
func place(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, CheckControl(dir), "the tests need a temporary directory that nobody else controls")
	return dir
}

// file makes a file with exactly this mode.
func file(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func folder(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(path, 0o700))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

func give(t *testing.T, path string, uid, gid int) {
	t.Helper()
	require.NoError(t, os.Lchown(path, uid, gid))
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to other users")
	}
}

// stranger is a user that is neither root nor this one.
const stranger = 4242

func TestCheckControl(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		root bool // it needs other users
		make func(t *testing.T, dir string) string
		want string // "" = it is accepted; DIR is the directory of the test
		mend string
	}{
		"own file":      {make: func(t *testing.T, dir string) string { t.Helper(); return file(t, dir+"/a", 0o600) }},
		"readable":      {make: func(t *testing.T, dir string) string { t.Helper(); return file(t, dir+"/a", 0o644) }},
		"own folder":    {make: func(t *testing.T, dir string) string { t.Helper(); return folder(t, dir+"/a", 0o755) }},
		"not there":     {make: func(_ *testing.T, dir string) string { return dir + "/a/b/c" }},
		"a device":      {make: func(*testing.T, string) string { return os.DevNull }},
		"others write":  {make: func(t *testing.T, dir string) string { t.Helper(); return file(t, dir+"/a", 0o666) }, want: "DIR/a can be written by every user (mode 0666)", mend: "chmod go-w DIR/a"},
		"folder of all": {make: func(t *testing.T, dir string) string { t.Helper(); return folder(t, dir+"/a", 0o777) }, want: "DIR/a can be written by every user (mode 0777)", mend: "chmod go-w DIR/a"},
		"parent of all": {make: func(t *testing.T, dir string) string {
			t.Helper()
			f := file(t, dir+"/a/b/c", 0o600)
			folder(t, dir+"/a", 0o777)
			return f
		}, want: "DIR/a can be written by every user (mode 0777)", mend: "chmod go-w DIR/a"},
		"to be made": {make: func(t *testing.T, dir string) string { t.Helper(); return folder(t, dir+"/a", 0o777) + "/b" }, want: "DIR/a can be written by every user (mode 0777)", mend: "chmod go-w DIR/a"},
		"sticky parent": {make: func(t *testing.T, dir string) string {
			t.Helper()
			f := file(t, dir+"/a/b", 0o600)
			folder(t, dir+"/a", 0o777|os.ModeSticky)
			return f
		}},
		"own sticky": {make: func(t *testing.T, dir string) string { t.Helper(); return folder(t, dir+"/a", 0o777|os.ModeSticky) }},
		"pipe of all": {make: func(t *testing.T, dir string) string {
			t.Helper()
			require.NoError(t, syscall.Mkfifo(dir+"/a", 0o600))
			require.NoError(t, os.Chmod(dir+"/a", 0o622))
			return dir + "/a"
		}, want: "DIR/a can be written by every user (mode 0622)", mend: "chmod go-w DIR/a"},
		"link": {make: func(t *testing.T, dir string) string {
			t.Helper()
			file(t, dir+"/b/c", 0o600)
			require.NoError(t, os.Symlink("b/c", dir+"/a"))
			return dir + "/a"
		}},
		"link upward": {make: func(t *testing.T, dir string) string {
			t.Helper()
			file(t, dir+"/c", 0o600)
			folder(t, dir+"/b", 0o700)
			require.NoError(t, os.Symlink("../c", dir+"/b/a"))
			return dir + "/b/a"
		}},
		"link to theirs": {make: func(t *testing.T, dir string) string {
			t.Helper()
			file(t, dir+"/b/c", 0o666)
			require.NoError(t, os.Symlink(dir+"/b/c", dir+"/a"))
			return dir + "/a"
		}, want: "DIR/b/c can be written by every user (mode 0666)", mend: "chmod go-w DIR/b/c"},
		"link in theirs": {make: func(t *testing.T, dir string) string {
			t.Helper()
			file(t, dir+"/c", 0o600)
			folder(t, dir+"/b", 0o700)
			require.NoError(t, os.Symlink(dir+"/c", dir+"/b/a"))
			folder(t, dir+"/b", 0o777)
			return dir + "/b/a"
		}, want: "DIR/b can be written by every user (mode 0777)", mend: "chmod go-w DIR/b"},
		"circle": {make: func(t *testing.T, dir string) string {
			t.Helper()
			require.NoError(t, os.Symlink("a", dir+"/a"))
			return dir + "/a"
		}, want: "DIR/a: too many links"},
		"file in a file": {make: func(t *testing.T, dir string) string { t.Helper(); return file(t, dir+"/a", 0o600) + "/b" }},

		"a group writes": {root: true, make: func(t *testing.T, dir string) string {
			t.Helper()
			f := file(t, dir+"/a", 0o660)
			give(t, f, 0, stranger)
			return f
		}, want: "DIR/a can be written by group 4242 (mode 0660)", mend: "chmod g-w DIR/a"},
		"private group": {root: true, make: func(t *testing.T, dir string) string {
			t.Helper()
			f := file(t, dir+"/a", 0o660)
			give(t, f, 0, 0)
			return f
		}},
		"foreign file": {root: true, make: func(t *testing.T, dir string) string {
			t.Helper()
			f := file(t, dir+"/a", 0o600)
			give(t, f, stranger, 0)
			return f
		}, want: "DIR/a is owned by uid 4242, not by uid 0 (root)", mend: "chown 0 DIR/a"},
		"foreign parent": {root: true, make: func(t *testing.T, dir string) string {
			t.Helper()
			f := file(t, dir+"/a/b", 0o600)
			give(t, dir+"/a", stranger, 0)
			return f
		}, want: "DIR/a is owned by uid 4242, not by uid 0 (root)", mend: "chown 0 DIR/a"},
		"theirs in a sticky": {root: true, make: func(t *testing.T, dir string) string {
			t.Helper()
			f := file(t, dir+"/a/b", 0o600)
			give(t, f, stranger, 0)
			folder(t, dir+"/a", 0o777|os.ModeSticky)
			return f
		}, want: "DIR/a/b is owned by uid 4242, not by uid 0 (root)", mend: "chown 0 DIR/a/b"},
		"their link": {root: true, make: func(t *testing.T, dir string) string {
			t.Helper()
			file(t, dir+"/b", 0o600)
			require.NoError(t, os.Symlink("b", dir+"/a"))
			give(t, dir+"/a", stranger, 0)
			return dir + "/a"
		}, want: "DIR/a is owned by uid 4242, not by uid 0 (root)", mend: "chown 0 DIR/a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.root {
				needsRoot(t)
			}
			dir := place(t)
			err := CheckControl(tc.make(t, dir))
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Equal(t, tc.want, strings.ReplaceAll(err.Error(), dir, "DIR"))
			refusal := Refused("the configuration", dir, err, "do something else")
			assert.Equal(t, fault.KindRefused, fault.KindOf(refusal))
			if tc.mend != "" {
				assert.Equal(t, "`"+tc.mend+"` corrects it; or do something else", strings.ReplaceAll(fault.HintOf(refusal), dir, "DIR"))
			}
		})
	}
}

// What root owns is root's to change, for every user, and what another user owns
// is not.
func TestEveryUserAcceptsRootAndItself(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	dir := place(t)
	mine, theirs := file(t, dir+"/mine", 0o600), file(t, dir+"/theirs", 0o600)
	give(t, mine, stranger, stranger)
	give(t, theirs, stranger+1, stranger+1)
	u := user{uid: stranger, private: func(int) bool { return true }}
	require.NoError(t, u.checkPath(mine))
	require.NoError(t, u.checkPath(file(t, dir+"/roots", 0o600)))
	require.Error(t, u.checkPath(theirs))
	require.NoError(t, os.Chmod(mine, 0o664))
	require.NoError(t, u.checkPath(mine), "its own group, of umask 002")
	u.private = func(int) bool { return false }
	require.Error(t, u.checkPath(mine))
}

// The volume of a pod with fsGroup is root's, and the user's own group may write to it.
func TestTheUsersOwnGroupMayWriteToWhatIsRoots(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	volume := folder(t, place(t)+"/volume", 0o775)
	give(t, volume, 0, stranger)
	u := user{uid: stranger, private: func(int) bool { return true }}
	require.NoError(t, u.checkPath(volume))
	give(t, volume, 0, stranger+1)
	require.Error(t, u.checkPath(volume), "the group of a third user")
	give(t, volume, 0, stranger)
	u.private = func(int) bool { return false }
	require.Error(t, u.checkPath(volume), "a group with other members")
}

// A directory that was open to everybody may hold what another user left there.
func TestCheckDirectoryJudgesItsEntries(t *testing.T) {
	t.Parallel()
	dir := place(t)
	require.NoError(t, CheckDirectory(filepath.Join(dir, "none")))
	file(t, dir+"/sbx.db", 0o600)
	folder(t, dir+"/runs", 0o700)
	require.NoError(t, CheckDirectory(dir))
	planted := file(t, dir+"/planted", 0o666)
	require.ErrorContains(t, CheckDirectory(dir), planted+" can be written by every user")
	require.NoError(t, os.Remove(planted))
	needsRoot(t)
	require.NoError(t, os.Symlink("/etc/passwd", planted))
	give(t, planted, stranger, 0)
	require.ErrorContains(t, CheckDirectory(dir), planted+" is owned by uid 4242")
}

func TestPrivateGroup(t *testing.T) {
	t.Parallel()
	const groups = "root:x:0:\nadm:x:4:syslog,bob\nbob:x:1000:\nann:x:1001:ann,root\nodd:x:1002\nsys:x:1003:,\n"
	for gid, want := range map[int]bool{0: true, 4: false, 1000: true, 1001: true, 1002: false, 1003: true, 7: false} {
		assert.Equal(t, want, privateIn(groups, gid), "group %d", gid)
	}
}
