package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// memory is a disk that counts syncs and can fail.
type memory struct {
	mu    sync.Mutex
	files map[string][]byte
	syncs int
	full  bool

	beforeSync func() // nil = nothing
}

func newMemory() *memory { return &memory{files: map[string][]byte{}} }

func (m *memory) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.files[name]; there {
		return nil, fs.ErrExist
	}
	m.files[name] = nil
	return &handle{m, name}, nil
}

func (m *memory) Extend(name string, size int64) (File, error) {
	m.files[name] = m.files[name][:size]
	return &handle{m, name}, nil
}

func (m *memory) Open(name string) (io.ReadCloser, error) {
	text, there := m.files[name]
	if !there {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

func (m *memory) Names() ([]string, error) {
	var names []string
	for name := range m.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (m *memory) Remove(name string) error {
	delete(m.files, name)
	return nil
}

type handle struct {
	m    *memory
	name string
}

func (h *handle) Write(b []byte) (int, error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.m.full {
		h.m.files[h.name] = append(h.m.files[h.name], b[:len(b)/2]...)
		return len(b) / 2, errors.New("no space left on device")
	}
	h.m.files[h.name] = append(h.m.files[h.name], b...)
	return len(b), nil
}

func (h *handle) Sync() error {
	if h.m.beforeSync != nil {
		h.m.beforeSync()
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.m.syncs++
	return nil
}

func (h *handle) Close() error { return nil }

func written(t *testing.T, d Disk, run string, n int) {
	t.Helper()
	w, err := Create(d, run, noon)
	require.NoError(t, err)
	for i := range n {
		require.NoError(t, w.Append("item", map[string]int{"n": i}))
	}
	require.NoError(t, w.Close())
}

func TestWhatIsAppendedIsRead(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]Disk{"memory": newMemory(), "folder": Dir(filepath.Join(t.TempDir(), "not", "there"))} {
		names, err := d.Names()
		require.NoError(t, err, name)
		assert.Empty(t, names, name)
		written(t, d, "r-1", 3)
		log, err := Read(d, "r-1")
		require.NoError(t, err, name)
		require.Len(t, log.Entries, 3, name)
		assert.False(t, log.Truncated)
		assert.Empty(t, log.Broken)
		var got map[string]int
		require.NoError(t, log.Entries[2].Into(&got))
		assert.Equal(t, map[string]int{"n": 2}, got)
		assert.Equal(t, "item", log.Entries[0].Kind)
		assert.Equal(t, noon(), log.Entries[0].At)
		_, err = Create(d, "r-1", noon)
		require.Error(t, err, "a run has one journal")
	}
}

func TestRunsThatAreNotThere(t *testing.T) {
	t.Parallel()
	_, err := Read(Dir(t.TempDir()), "r-none")
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
	for _, odd := range []string{"../passwd", `a\b`, ".hidden"} {
		_, err := Read(Dir(t.TempDir()), odd)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), odd)
	}
}

func TestWhatIsNoFileStopsNoRun(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(path string) error{
		"a link to a folder": func(path string) error { return os.Symlink(os.TempDir(), path) },
		"a link to nothing":  func(path string) error { return os.Symlink("nowhere", path) },
		"a device":           func(path string) error { return os.Symlink(os.DevNull, path) },
	} {
		dir := filepath.Join(t.TempDir(), "runs")
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, put(filepath.Join(dir, "r-9.jsonl")), name)
		_, err := Read(Dir(dir), "r-9")
		require.Error(t, err, name)
		written(t, Dir(dir), "r-1", 1)
		log, err := Read(Dir(dir), "r-1")
		require.NoError(t, err, name)
		assert.Len(t, log.Entries, 1, name)
	}
}

func TestFilesAreForTheOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runs")
	written(t, Dir(dir), "r-1", 1)
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "r-1.jsonl"): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode().Perm())
	}
}

func TestTamperingShows(t *testing.T) {
	t.Parallel()
	d := newMemory()
	written(t, d, "r-1", 4)
	text := string(d.files["r-1.jsonl"])
	lines := strings.SplitAfter(text, "\n")[:4]
	for name, tc := range map[string]struct{ text, want string }{
		"changed":   {strings.Replace(text, `"n":1`, `"n":7`, 1), "line 2 was changed"},
		"dropped":   {lines[0] + lines[2] + lines[3], "line 2 has the number 3"},
		"repeated":  {lines[0] + lines[0], "line 2 has the number 1"},
		"garbage":   {lines[0] + "{}}\n" + lines[1], "line 2 is not an entry"},
		"of others": {strings.ReplaceAll(text, `"run":"r-1"`, `"run":"r-2"`), `line 1 belongs to "r-2"`},
	} {
		log := parse("r-1", []byte(tc.text))
		assert.Contains(t, log.Broken, tc.want, name)
		_, err := Extend(d, log, noon)
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), name)
	}
}

// chained is the journal of a run as versions until November 2026 wrote it, and its last hash.
func chained(t *testing.T, run, prev string, n int) (text []byte, last string) {
	t.Helper()
	for i := range n {
		e := Entry{Seq: i + 1, At: noon(), Kind: "item", Run: run, Data: fmt.Appendf(nil, `{"n":%d}`, i), Prev: prev}
		e.Hash = e.computeHash()
		line, err := e.encodeLine()
		require.NoError(t, err)
		text, prev = append(text, line...), e.Hash
	}
	return text, prev
}

// TestChainsOfEarlierVersionsAreChecked, also where a newer version has gone on with the run.
func TestChainsOfEarlierVersionsAreChecked(t *testing.T) {
	t.Parallel()
	d := newMemory()
	text, _ := chained(t, "r-1", "", 4)
	d.files["r-1.jsonl"] = bytes.Clone(text)
	log, err := Read(d, "r-1")
	require.NoError(t, err)
	require.Empty(t, log.Broken)
	require.Len(t, log.Entries, 4)
	w, err := Extend(d, log, noon)
	require.NoError(t, err)
	require.NoError(t, w.Append("resume", nil))
	log, err = Read(d, "r-1")
	require.NoError(t, err)
	require.Empty(t, log.Broken)
	require.Len(t, log.Entries, 5)
	assert.Contains(t, parse("r-1", bytes.Replace(text, []byte(`"n":1`), []byte(`"n":7`), 1)).Broken, "line 2 was changed")
	forged := parse("r-1", text).Entries[1]
	forged.Prev = "0"
	forged.Hash = forged.computeHash()
	line, err := forged.encodeLine()
	require.NoError(t, err)
	first, _, _ := bytes.Cut(text, []byte("\n"))
	assert.Contains(t, parse("r-1", slices.Concat(first, []byte("\n"), line)).Broken, "does not follow")
}

func TestACutOffRunGoesOn(t *testing.T) {
	t.Parallel()
	d := newMemory()
	written(t, d, "r-1", 3)
	whole := d.files["r-1.jsonl"]
	for cut := range whole {
		d.files["r-1.jsonl"] = bytes.Clone(whole[:cut])
		log, err := Read(d, "r-1")
		require.NoError(t, err)
		require.Empty(t, log.Broken, "a cut is no forgery")
		if len(log.Entries) == 0 {
			_, err := Extend(d, log, noon)
			require.Error(t, err)
			continue
		}
		w, err := Extend(d, log, noon)
		require.NoError(t, err)
		require.NoError(t, w.Append("resume", nil))
		again, err := Read(d, "r-1")
		require.NoError(t, err)
		require.Empty(t, again.Broken)
		require.False(t, again.Truncated)
		require.Len(t, again.Entries, len(log.Entries)+1)
	}
}

// TestATornLineIsGoneFromTheDisk before the next one is written, or both would be lost.
func TestATornLineIsGoneFromTheDisk(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	written(t, d, "r-1", 2)
	path := filepath.Join(string(d), "r-1.jsonl")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, `{"seq":3,"at`...), 0o600))
	log, err := Read(d, "r-1")
	require.NoError(t, err)
	require.True(t, log.Truncated)
	w, err := Extend(d, log, noon)
	require.NoError(t, err)
	require.NoError(t, w.Append("resume", nil))
	require.NoError(t, w.Close())
	log, err = Read(d, "r-1")
	require.NoError(t, err)
	assert.Empty(t, log.Broken)
	assert.Len(t, log.Entries, 3)
}

// TestNoTwoEntriesSpellTheSameText: text that moves from one part to the next changes the
// hash.
func TestNoTwoEntriesSpellTheSameText(t *testing.T) {
	t.Parallel()
	a := Entry{Seq: 1, At: noon(), Kind: "result", Run: "r-1"}
	b := Entry{Seq: 1, At: noon(), Kind: "resultr", Run: "-1"}
	assert.NotEqual(t, a.computeHash(), b.computeHash())
	assert.NotEqual(t, a.computeSum(), b.computeSum())
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	t.Parallel()
	d := newMemory()
	w, err := Create(d, "r-1", noon)
	require.NoError(t, err)
	require.NoError(t, w.Append("item", 1))
	d.full = true
	err = w.Append("item", 2)
	require.ErrorContains(t, err, "no space left")
	assert.Contains(t, fault.HintOf(err), "full")
	d.full = false
	require.ErrorContains(t, w.Append("item", 3), "no space left", "a journal with a hole proves nothing")
	log, err := Read(d, "r-1")
	require.NoError(t, err)
	assert.Len(t, log.Entries, 1)
	assert.True(t, log.Truncated)
}

func TestAppendAfterClose(t *testing.T) {
	t.Parallel()
	w, err := Create(newMemory(), "r-1", noon)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.ErrorContains(t, w.Append("item", 1), "closed")
}

// TestManyAtOnceShareSyncs: while one sync is under way, all the others wait for the next one.
func TestManyAtOnceShareSyncs(t *testing.T) {
	t.Parallel()
	const n = 500
	d := newMemory()
	w, err := Create(d, "r-1", noon)
	require.NoError(t, err)
	d.beforeSync = func() {
		assert.Eventually(t, func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.queued == n
		}, time.Minute, time.Millisecond)
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { assert.NoError(t, w.Append("item", i)) })
	}
	all.Wait()
	log, err := Read(d, "r-1")
	require.NoError(t, err)
	assert.Len(t, log.Entries, n)
	assert.Empty(t, log.Broken)
	assert.LessOrEqual(t, d.syncs, 2)
}

// TestNoRunVanishesUnseen, of this version or an earlier one.
func TestNoRunVanishesUnseen(t *testing.T) {
	t.Parallel()
	d, prev := newMemory(), ""
	for i := range 3 {
		run := fmt.Sprintf("r-%d", i)
		d.files[run+suffix], prev = chained(t, run, prev, 2)
	}
	for _, run := range []string{"r-3", "r-4", "r-5"} {
		written(t, d, run, 2)
	}
	runs, err := Runs(d)
	require.NoError(t, err)
	assert.Equal(t, []string{"r-0", "r-1", "r-2", "r-3", "r-4", "r-5"}, runs)
	var logs []Log
	for _, run := range runs {
		log, err := Read(d, run)
		require.NoError(t, err)
		logs = append(logs, log)
	}
	assert.Empty(t, MissingPredecessor(logs))
	assert.Empty(t, MissingPredecessor(logs[1:]), "what is older than the first is not missed")
	assert.Empty(t, MissingPredecessor(logs[4:]), "the same")
	assert.Equal(t, []string{"r-2"}, MissingPredecessor(slices.Delete(slices.Clone(logs), 1, 2)), "a run between them is missing")
	assert.Equal(t, []string{"r-3"}, MissingPredecessor(slices.Delete(slices.Clone(logs), 2, 3)))
	assert.Equal(t, []string{"r-5"}, MissingPredecessor(slices.Delete(slices.Clone(logs), 4, 5)))
	unread := slices.Clone(logs)
	unread[4].Count = 1
	assert.Equal(t, []string{"r-5"}, MissingPredecessor(unread), "its end was cut")
	assert.Empty(t, MissingPredecessor([]Log{logs[2], logs[0], logs[1]}), "by what they hold, not by their order")
	assert.Empty(t, MissingPredecessor(nil))
}

func TestPruneKeepsTheNewest(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	for i := range 4 {
		written(t, d, fmt.Sprintf("r-%d", i), 1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(string(d), "other.txt"), nil, 0o600))
	require.NoError(t, Prune(d, 2))
	runs, err := Runs(d)
	require.NoError(t, err)
	assert.Equal(t, []string{"r-2", "r-3"}, runs)
	require.NoError(t, Prune(d, 5))
	assert.FileExists(t, filepath.Join(string(d), "other.txt"))
}

func FuzzParse(f *testing.F) {
	d := newMemory()
	w, err := Create(d, "r-1", noon)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 3 {
		if err := w.Append("item", i); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(d.files["r-1.jsonl"])
	f.Add([]byte("{}\n"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		log := parse("r-1", text)
		if log.size > int64(len(text)) {
			t.Fatalf("trusts %d of %d bytes", log.size, len(text))
		}
		if again := parse("r-1", text[:log.size]); again.Broken != "" || again.Truncated || len(again.Entries) != len(log.Entries) {
			t.Fatalf("what is trusted does not read back: %+v", again)
		}
		for i, e := range log.Entries {
			if e.Seq != i+1 || (e.Hash == "" && e.Sum != e.computeSum()) || (e.Hash != "" && e.Hash != e.computeHash()) {
				t.Fatalf("entry %d passed: %+v", i, e)
			}
		}
	})
}

// TestAJournalIsReadLineByLine: it holds one line at a time, and an impossible line
// ends the reading.
func TestAJournalIsReadLineByLine(t *testing.T) {
	t.Parallel()
	d := newMemory()
	w, err := Create(d, "r-1", time.Now)
	require.NoError(t, err)
	for range 5 {
		require.NoError(t, w.Append("intent", map[string]string{"logs": strings.Repeat("x", 100_000)}))
	}
	require.NoError(t, w.Close())
	seen := 0
	log, err := Scan(d, "r-1", func(e Entry) { seen += len(e.Data) })
	require.NoError(t, err)
	assert.Equal(t, 5, log.Count)
	assert.Greater(t, seen, 500_000)
	assert.Empty(t, log.Entries)
	assert.Empty(t, log.last.Data, "what was handed on is not kept")
	d.files["r-1.jsonl"] = append(d.files["r-1.jsonl"], bytes.Repeat([]byte("y"), maxLine+1)...)
	log, err = Scan(d, "r-1", nil)
	require.NoError(t, err)
	assert.Equal(t, 5, log.Count)
	assert.Contains(t, log.Broken, "line 6 is longer than")
}

// parse reads a journal from its text.
func parse(run string, text []byte) Log {
	d := newMemory()
	d.files[run+suffix] = text
	log, _ := Read(d, run) // a file in memory can be read
	return log
}
