package cgroup

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseMounts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		want []mount
	}{
		"v1":              {"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n", []mount{{root: "/", point: "/sys/fs/cgroup/memory", super: []string{"rw", "memory"}}}},
		"v2":              {"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n", []mount{{root: "/", point: "/sys/fs/cgroup/unified", v2: true, super: []string{"rw"}}}},
		"optional fields": {"41 31 0:38 /docker/ab /c rw shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate", []mount{{root: "/docker/ab", point: "/c", v2: true, super: []string{"rw", "nsdelegate"}}}},
		"blank in path":   {`41 31 0:38 / /mnt/a\040b\134c rw - cgroup2 none rw`, []mount{{root: "/", point: `/mnt/a b\c`, v2: true, super: []string{"rw"}}}},
		"no super":        {"41 31 0:38 / /c rw - cgroup2", []mount{{root: "/", point: "/c", v2: true}}},
		"other":           {"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n", nil},
		"cut off":         {"31 23 0:28 / - cgroup2 cgroup2 rw", nil},
		"relative":        {"31 23 0:28 / x rw - cgroup2 cgroup2 rw", nil},
		"no separator":    {"31 23 0:28 / /x rw cgroup2 cgroup2 rw", nil},
		"bare separator":  {"31 23 0:28 / /x rw - ", nil},
		"empty":           {"", nil},
	} {
		assert.Equal(t, tc.want, parseMounts(tc.line), name)
	}
}

func TestParseMembership(t *testing.T) {
	t.Parallel()
	got := parseMembership("4:memory:/a:b/c\n3:cpu,cpuacct:/x\n9:name=systemd:/\n0::/user.slice\nrubbish\n1:pids:relative\n")
	assert.Equal(t, map[string]string{"memory": "/a:b/c", "cpu": "/x", "cpuacct": "/x", "name=systemd": "/", "": "/user.slice"}, got)
}

func TestPlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ root, group, want string }{
		"top":           {"/", "/", "/c"},
		"below":         {"/", "/a/b", "/c/a/b"},
		"container":     {"/docker/ab", "/docker/ab", "/c"},
		"in container":  {"/docker/ab", "/docker/ab/x", "/c/x"},
		"neighbour":     {"/docker/ab", "/docker/abc", ""},
		"outside":       {"/docker/ab", "/", ""},
		"other name":    {"/", "/../..", ""},
		"half way":      {"/", "/a/../b", ""},
		"not a member":  {"/", "", ""},
		"dots in names": {"/", "/a..b", "/c/a..b"},
	} {
		assert.Equal(t, tc.want, mount{root: tc.root, point: "/c"}.visibleDir(tc.group), name)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"17\n": 17, "0": 0, " 5 ": 5} {
		n, ok := parseFigure(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, n)
	}
	for _, text := range []string{"max\n", "", "9223372036854771712\n", "99999999999999999999", "1 2", "x"} {
		_, ok := parseFigure(text)
		assert.False(t, ok, text)
	}
	text := "oom 3\noom_kill 2\nbad\nworse x\n"
	n, ok := parseKeyed(text, "oom_kill")
	assert.True(t, ok)
	assert.Equal(t, int64(2), n)
	for _, key := range []string{"oom_", "bad", "worse", "absent", ""} {
		_, ok := parseKeyed(text, key)
		assert.False(t, ok, key)
	}
	assert.Equal(t, []int{7, 12}, parsePIDs("7\n0\n12\n-3\nx\n"))
}

func FuzzParseMounts(f *testing.F) {
	f.Add(`41 31 0:38 /r /mnt/a\040b rw shared:1 - cgroup2 none rw`, "0::/r/x")
	f.Add("35 31 0:32 / /m rw - cgroup cgroup rw,memory", "4:memory:/../x")
	f.Fuzz(func(t *testing.T, mountinfo, membership string) {
		groups := parseMembership(membership)
		for _, m := range parseMounts(mountinfo) {
			if !path.IsAbs(m.point) || !path.IsAbs(m.root) {
				t.Fatalf("relative mount %+v", m)
			}
			for _, group := range groups {
				if at := m.visibleDir(group); at != "" && at != path.Clean(m.point) && !strings.HasPrefix(at, strings.TrimSuffix(path.Clean(m.point), "/")+"/") {
					t.Fatalf("%q leaves %q: %q", group, m.point, at)
				}
			}
		}
	})
}

func FuzzFigures(f *testing.F) {
	f.Add("oom_kill 2\n", "oom_kill")
	f.Add("1\n2\n", "")
	f.Fuzz(func(t *testing.T, text, key string) {
		parseKeyed(text, key)
		parseFigure(text)
		for _, pid := range parsePIDs(text) {
			if pid <= 0 {
				t.Fatalf("pid %d", pid)
			}
		}
	})
}
