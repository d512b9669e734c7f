package cgroup

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// set gives a v2 group of the model a limit.
func (k *kernel) set(group, limit, used, stat string) {
	k.put(group+"/memory.max", limit+"\n")
	k.put(group+"/memory.current", used+"\n")
	k.put(group+"/memory.stat", stat)
}

// set1 is set for v1.
func (k *kernel) set1(group, limit, used, stat string) {
	k.put(group+"/memory.limit_in_bytes", limit+"\n")
	k.put(group+"/memory.usage_in_bytes", used+"\n")
	k.put(group+"/memory.stat", stat)
}

func TestCeilings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		build func(k *kernel)
		want  []Ceiling
		fails string // the unreadable file
	}{
		"no groups": {build: func(*kernel) {}},
		"a container in v2": {
			build: func(k *kernel) { k.mountV2("/", "memory", true); k.set("v2", "1000", "700", "") },
			want:  []Ceiling{{"v2", 1000, 300}},
		},
		"no limit in v2": {build: func(k *kernel) { k.mountV2("/", "memory", true); k.set("v2", "max", "700", "") }},
		"a container in v1": {
			build: func(k *kernel) { k.mountV1("memory"); k.set1("memory", "1000", "700", "") },
			want:  []Ceiling{{"memory", 1000, 300}},
		},
		"no limit in v1": {build: func(k *kernel) { k.mountV1("memory"); k.set1("memory", "9223372036854771712", "700", "") }},
		"cache is free in v2": {
			build: func(k *kernel) {
				k.mountV2("/", "memory", true)
				k.set("v2", "1000", "700", "anon 200\nfile 900\ninactive_file 150\nactive_file 250\n")
			},
			want: []Ceiling{{"v2", 1000, 700}},
		},
		"cache of groups below is free in v1": {
			build: func(k *kernel) {
				k.mountV1("memory")
				k.set1("memory", "1000", "700", "inactive_file 1\nactive_file 2\ntotal_inactive_file 100\ntotal_active_file 300\n")
			},
			want: []Ceiling{{"memory", 1000, 700}},
		},
		"more than the limit is used": {
			build: func(k *kernel) { k.mountV1("memory"); k.set1("memory", "1000", "1200", "") },
			want:  []Ceiling{{"memory", 1000, 0}},
		},
		"more cache than use": {
			build: func(k *kernel) { k.mountV1("memory"); k.set1("memory", "1000", "10", "total_active_file 300\n") },
			want:  []Ceiling{{"memory", 1000, 1000}},
		},
		"garbage is not known": {build: func(k *kernel) {
			k.mountV2("/", "memory", true)
			k.set("v2", "lots", "700", "")
		}, fails: "v2/memory.max"},
		"use is not known": {build: func(k *kernel) {
			k.mountV2("/", "memory", true)
			k.set("v2", "1000", "x", "")
		}, fails: "v2/memory.current"},
		"a negative limit is not known": {build: func(k *kernel) { k.mountV1("memory"); k.set1("memory", "-1", "7", "") }, fails: "memory/memory.limit_in_bytes"},
		"an empty limit is not known":   {build: func(k *kernel) { k.mountV1("memory"); k.set1("memory", "", "7", "") }, fails: "memory/memory.limit_in_bytes"},
		"one that tells nothing hides no other": {
			build: func(k *kernel) {
				k.mountV2("/", "memory", true)
				k.handV2("team")
				k.set("v2", "4000", "1000", "")
				k.set("v2/team", "?", "900", "")
				k.put("proc/self/cgroup", "0::/team\n")
				k.given["v2/team"] = true
			},
			want: []Ceiling{{"v2", 4000, 3000}}, fails: "v2/team/memory.max",
		},
		"each group that is given counts": {
			build: func(k *kernel) {
				k.mountV2("/", "memory", true)
				k.handV2("team", "team/ci")
				k.set("v2", "4000", "1000", "")
				k.set("v2/team", "max", "900", "")
				k.set("v2/team/ci", "2000", "800", "")
				k.put("proc/self/cgroup", "0::/team/ci\n")
				k.given["v2/team"], k.given["v2/team/ci"] = true, true
			},
			want: []Ceiling{{"v2/team/ci", 2000, 1200}, {"v2", 4000, 3000}},
		},
		"where no group can be made, its own counts": {
			build: func(k *kernel) {
				k.mountV2("/", "memory", true)
				k.handV2("team")
				k.set("v2/team", "2000", "800", "")
				k.put("proc/self/cgroup", "0::/team\n")
				k.denied["v2"], k.denied["v2/cgroup.procs"], k.denied["v2/team"] = true, true, true
			},
			want: []Ceiling{{"v2/team", 2000, 1200}},
		},
		"sandboxes beside sbx are not under its limit": {
			build: func(k *kernel) {
				k.mountV2("/", "memory", true)
				k.handV2("cron")
				k.set("v2/cron", "2000", "1999", "")
				k.put("proc/self/cgroup", "0::/cron\n")
			},
		},
		"a group that is not seen": {build: func(k *kernel) {
			k.mountV2("/", "memory", true)
			k.set("v2", "1000", "700", "")
			k.put("proc/self/cgroup", "0::/../elsewhere\n")
			k.denied["v2"] = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKernel(t)
			tc.build(k)
			var want []Ceiling
			for _, c := range tc.want {
				c.Group = filepath.Join(k.root, c.Group)
				want = append(want, c)
			}
			got, err := k.host().Ceilings()
			assert.Equal(t, want, got)
			if tc.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, filepath.Join(k.root, tc.fails))
			}
			assert.Empty(t, k.log, "looking changes nothing")
		})
	}
}

// handV2 makes groups and hands the memory controller down to them.
func (k *kernel) handV2(groups ...string) {
	k.put("v2/cgroup.subtree_control", "memory")
	for _, g := range groups {
		k.put("v2/"+g+"/cgroup.procs", "")
		k.put("v2/"+g+"/cgroup.events", "populated 1\n")
		k.put("v2/"+g+"/cgroup.controllers", "memory")
		k.put("v2/"+g+"/cgroup.subtree_control", "memory")
	}
}
