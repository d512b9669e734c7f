package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// kernel is a model of cgroupfs in a temporary directory: it makes the files of
// a new group, keeps the rules about handing controllers down, and logs what
// was asked of it in order. PIDs in it lie above the kernel's highest (2^22), so
// that no signal of a test, or of a bug, finds a real process.
type kernel struct {
	disk
	t      *testing.T
	root   string
	mu     sync.Mutex
	log    []string
	refuse map[string]error // by path relative to root: writes, mkdirs; after "rmdir ": rmdirs
	denied map[string]bool  // not writable, relative to root
	given  map[string]bool  // delegated, relative to root
	procs  map[string]string
}

func newKernel(t *testing.T) *kernel {
	t.Helper()
	k := &kernel{t: t, root: t.TempDir(), refuse: map[string]error{}, denied: map[string]bool{}, given: map[string]bool{}, procs: map[string]string{}}
	k.put("proc/self/mountinfo", "22 1 0:20 / / rw - ext4 /dev/vda rw\n")
	k.put("proc/self/cgroup", "")
	return k
}

func (k *kernel) put(file, text string) {
	k.t.Helper()
	file = filepath.Join(k.root, file)
	require.NoError(k.t, os.MkdirAll(filepath.Dir(file), 0o750))
	require.NoError(k.t, os.WriteFile(file, []byte(text), 0o600))
}

func (k *kernel) get(file string) string {
	k.t.Helper()
	text, err := os.ReadFile(filepath.Join(k.root, file))
	require.NoError(k.t, err)
	return string(text)
}

func (k *kernel) add(file, text string) { k.put(file, k.get(file)+text) }

// mountV2 mounts a v2 hierarchy with controllers; nested says that its top is
// not the real root, as in a container.
func (k *kernel) mountV2(own, controllers string, nested bool) {
	k.add("proc/self/mountinfo", "31 22 0:38 / "+k.root+"/v2 rw - cgroup2 cgroup2 rw\n")
	k.add("proc/self/cgroup", "0::"+own+"\n")
	k.put("v2/cgroup.controllers", controllers+"\n")
	k.put("v2/cgroup.subtree_control", "")
	k.put("v2/cgroup.procs", "")
	if nested {
		k.put("v2/cgroup.events", "populated 1\n")
	}
	dir := "v2"
	for part := range strings.SplitSeq(strings.Trim(own, "/"), "/") {
		if part == "" {
			continue
		}
		dir += "/" + part
		require.NoError(k.t, os.MkdirAll(filepath.Join(k.root, dir), 0o750))
		k.populate(filepath.Join(k.root, dir))
	}
	k.put(dir+"/cgroup.procs", "999994711\n")
}

func (k *kernel) mountV1(controllers string) {
	k.add("proc/self/mountinfo", "32 22 0:31 / "+k.root+"/"+controllers+" rw - cgroup cgroup rw,"+controllers+"\n")
	k.add("proc/self/cgroup", "4:"+controllers+":/\n")
	k.put(controllers+"/tasks", "999994711\n")
	k.put(controllers+"/cgroup.procs", "999994711\n")
}

func (k *kernel) host() Host {
	k.t.Helper()
	h, err := detectHost(Roots{Proc: filepath.Join(k.root, "proc")}, 0, k, k)
	require.NoError(k.t, err)
	return h
}

func (k *kernel) rel(file string) string {
	rel, err := filepath.Rel(k.root, file)
	require.NoError(k.t, err)
	return filepath.ToSlash(rel)
}

func (k *kernel) note(words ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, strings.Join(words, " "))
}

func (k *kernel) checkWritable(file string) error {
	if k.denied[k.rel(file)] {
		return &fs.PathError{Op: "write", Path: k.rel(file), Err: syscall.EACCES}
	}
	return nil
}

func (k *kernel) isDelegated(dir string) bool { return k.given[k.rel(dir)] }

func (k *kernel) makeGroupDir(dir string) error {
	rel := k.rel(dir)
	if err := k.refuse[rel]; err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			delete(k.refuse, rel) // a holder that vanished is there again at the next try
		}
		return err
	}
	if err := k.disk.makeGroupDir(dir); err != nil {
		return err
	}
	k.note("mkdir", rel)
	k.populate(dir)
	return nil
}

func (k *kernel) populate(dir string) {
	rel, parent := k.rel(dir), k.rel(filepath.Dir(dir))
	has := strings.Split(strings.SplitN(rel, "/", 2)[0], ",")
	files := map[string]string{"cgroup.procs": "", "tasks": ""}
	version := "1"
	if has[0] == "v2" {
		version = "2"
		has = strings.Fields(k.get(parent + "/cgroup.subtree_control"))
		files = map[string]string{
			"cgroup.procs": "", "cgroup.controllers": strings.Join(has, " "), "cgroup.subtree_control": "",
			"cgroup.kill": "", "cgroup.freeze": "0", "cgroup.events": "populated 0\nfrozen 0\n", "cpu.stat": "usage_usec 0\n",
		}
	}
	for _, c := range has {
		for _, f := range filesOf(c + version) {
			files[f] = ""
		}
	}
	for name, text := range files {
		k.put(rel+"/"+name, text)
	}
}

func filesOf(controller string) []string {
	return map[string][]string{
		"memory2":  {"memory.max", "memory.swap.max", "memory.oom.group", "memory.events", "memory.events.local", "memory.current", "memory.peak", "memory.stat"},
		"memory1":  {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.swappiness", "memory.oom_control", "memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.stat"},
		"pids2":    {"pids.max"},
		"pids1":    {"pids.max"},
		"cpu2":     {"cpu.max"},
		"cpu1":     {"cpu.cfs_period_us", "cpu.cfs_quota_us"},
		"cpuacct1": {"cpuacct.usage"},
		"freezer1": {"freezer.state"},
	}[controller]
}

func (k *kernel) removeGroupDir(dir string) error {
	if err := k.refuse["rmdir "+k.rel(dir)]; err != nil {
		return err
	}
	if text, err := k.readFile(filepath.Join(dir, "cgroup.procs")); err == nil && strings.TrimSpace(text) != "" {
		return syscall.EBUSY
	}
	if below, err := k.childDirs(dir); err != nil || len(below) > 0 {
		return errors.Join(err, syscall.EBUSY)
	}
	k.note("rmdir", k.rel(dir))
	return os.RemoveAll(dir)
}

func (k *kernel) writeFile(file, value string) error {
	rel := k.rel(file)
	if err := k.refuse[rel]; err != nil {
		return err
	}
	if _, err := os.Stat(file); err != nil {
		return err
	}
	k.note("write", rel, value)
	switch dir := filepath.Dir(rel); filepath.Base(rel) {
	case "cgroup.subtree_control":
		return k.handDown(dir, strings.TrimPrefix(value, "+"))
	case "cgroup.kill":
		k.put(dir+"/cgroup.procs", "")
		k.put(dir+"/cgroup.events", "populated 0\nfrozen 0\n")
	case "cgroup.freeze":
		k.put(dir+"/cgroup.events", "populated 1\nfrozen "+value+"\n")
	case "tasks":
		k.procs[filepath.Dir(file)] += "thread "
	default:
		k.put(rel, value)
	}
	return nil
}

// handDown keeps the two rules: a controller must come from above, and a group
// with processes hands none down, the real root excepted.
func (k *kernel) handDown(dir, controller string) error {
	if !slices.Contains(strings.Fields(k.get(dir+"/cgroup.controllers")), controller) {
		return syscall.ENOENT
	}
	_, err := os.Stat(filepath.Join(k.root, dir, "cgroup.events"))
	if err == nil && strings.TrimSpace(k.get(dir+"/cgroup.procs")) != "" {
		return syscall.EBUSY
	}
	if words := strings.Fields(k.get(dir + "/cgroup.subtree_control")); !slices.Contains(words, controller) {
		k.put(dir+"/cgroup.subtree_control", strings.Join(append(words, controller), " "))
		return k.receive(dir, controller)
	}
	return nil
}

// receive gives a controller to the groups that are there already.
func (k *kernel) receive(dir, controller string) error {
	below, err := k.childDirs(filepath.Join(k.root, dir))
	for _, name := range below {
		k.add(dir+"/"+name+"/cgroup.controllers", " "+controller)
		for _, f := range filesOf(controller + "2") {
			k.put(dir+"/"+name+"/"+f, "")
		}
	}
	return err
}

// anew is a kernel on which one process removes the empty holder and another makes it again,
// just before a group is made in it.
type anew struct{ *kernel }

func (a anew) makeGroupDir(dir string) error {
	if filepath.Base(dir) != holderName {
		a.put(a.rel(filepath.Dir(dir))+"/cgroup.subtree_control", "")
	}
	return a.kernel.makeGroupDir(dir)
}

// onThread runs f locked to a thread that is not the first of the process. The
// thread lives on only if f says so.
func onThread(f func() (keep bool)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if threadID() == os.Getpid() {
			defer runtime.UnlockOSThread()
			onThread(f) // this goroutine holds the first thread, so another gets another
			return
		}
		if f() {
			runtime.UnlockOSThread()
		}
	}()
	<-done
}
