package record_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

func prepared(t *testing.T, id string) (record.Store, *os.File) {
	t.Helper()
	s := record.Store{Root: filepath.Join(t.TempDir(), "local")}
	lock, err := s.Prepare(id)
	require.NoError(t, err)
	t.Cleanup(func() { lock.Close() })
	return s, lock
}

func sample(id string) record.Record {
	code := 3
	r := record.Record{
		Schema: record.Schema, Version: "1", ID: id, Name: "n", State: sandbox.StateRunning, Command: []string{"sleep", "1"},
		Labels: map[string]string{"a.B": "c"}, CreatedAt: time.Date(2026, 11, 20, 1, 2, 3, 4, time.UTC),
		Exit: &record.Exit{Code: &code},
	}
	r.Note(r.CreatedAt, "created", "")
	return r
}

func TestARecordComesBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	s, _ := prepared(t, "abc")
	require.NoError(t, s.Write(sample("abc")))
	got, err := s.Read("abc")
	require.NoError(t, err)
	assert.Equal(t, sample("abc"), got)
	assert.False(t, got.Newer())
	info, err := os.Stat(filepath.Join(s.Dir("abc"), "record.json"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), "records are the owner's alone")
}

func TestReadersSeeTheOldOrTheNewRecord(t *testing.T) {
	t.Parallel()
	s, _ := prepared(t, "abc")
	require.NoError(t, s.Write(sample("abc")))
	var writing sync.WaitGroup
	done := make(chan struct{})
	writing.Go(func() {
		defer close(done)
		r := sample("abc")
		for i := range 50 {
			r.Name = strings.Repeat("x", i*100)
			assert.NoError(t, s.Write(r))
		}
	})
	for {
		_, err := s.Read("abc")
		require.NoError(t, err)
		select {
		case <-done:
			writing.Wait()
			left, err := filepath.Glob(filepath.Join(s.Dir("abc"), ".record*"))
			require.NoError(t, err)
			require.Empty(t, left, "no temporary file stays")
			return
		default:
		}
	}
}

func TestGarbageIsCalledGarbage(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty": "", "no json": "{", "another id": `{"schema":1,"id":"other"}`, "no schema": `{"id":"abc"}`,
		"huge": strings.Repeat(" ", 2<<20), "binary": "\x00\xff\xfe", "an array": "[]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := prepared(t, "abc")
			require.NoError(t, os.WriteFile(filepath.Join(s.Dir("abc"), "record.json"), []byte(content), 0o600))
			_, err := s.Read("abc")
			require.ErrorIs(t, err, record.ErrGarbage)
		})
	}
	s, _ := prepared(t, "abc")
	require.NoError(t, os.Mkdir(filepath.Join(s.Dir("abc"), "record.json"), 0o700))
	_, err := s.Read("abc")
	require.ErrorIs(t, err, record.ErrGarbage, "a folder in its place")
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"schema":1,"id":"abc","state":"running","exit":{"code":1}}`))
	f.Add([]byte(`{"schema":1e9,"id":"abc","limits":{"memory_bytes":-1}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		s := record.Store{Root: t.TempDir()}
		if err := errors.Join(os.Mkdir(s.Dir("abc"), 0o700), os.WriteFile(filepath.Join(s.Dir("abc"), "record.json"), content, 0o600)); err != nil {
			t.Fatal(err)
		}
		r, err := s.Read("abc")
		if err == nil && (r.ID != "abc" || r.Schema < 1) {
			t.Fatalf("accepted %q as %+v", content, r)
		}
	})
}

func TestTheLockTellsWhoLives(t *testing.T) {
	t.Parallel()
	s, lock := prepared(t, "abc")
	held := func() bool {
		h, err := s.Held("abc")
		require.NoError(t, err)
		return h
	}
	assert.True(t, held())
	_, got, err := s.TryLock("abc")
	require.NoError(t, err)
	assert.False(t, got)
	self, err := identity.Self()
	require.NoError(t, err)
	require.NoError(t, record.SignLock(lock, self))
	holder, known := s.Holder("abc")
	assert.True(t, known)
	assert.Equal(t, self, holder)

	require.NoError(t, lock.Close())
	assert.False(t, held())
	again, got, err := s.TryLock("abc")
	require.NoError(t, err)
	require.True(t, got)
	defer again.Close()
	assert.True(t, held())

	assert.True(t, s.Unfinished("abc"))
	require.NoError(t, s.Finish("abc"))
	require.NoError(t, s.Finish("abc"), "finishing twice is no error")
	assert.False(t, s.Unfinished("abc"))
	_, known = s.Holder("abc")
	assert.False(t, known)
}

func TestTheFirstStopStays(t *testing.T) {
	t.Parallel()
	s, _ := prepared(t, "abc")
	none, err := s.Stop("abc")
	require.NoError(t, err)
	assert.Nil(t, none)
	var asking sync.WaitGroup
	answers := make(chan record.Stop, 8)
	for i := range 8 {
		asking.Go(func() {
			got, err := s.AskStop("abc", record.Stop{By: strings.Repeat("x", i+1), GraceSeconds: float64(i)})
			assert.NoError(t, err)
			answers <- got
		})
	}
	asking.Wait()
	first := <-answers
	for range 7 {
		assert.Equal(t, first, <-answers, "all are told of the same request")
	}
}

func TestRemoveStaysInItsFolder(t *testing.T) {
	t.Parallel()
	s, _ := prepared(t, "abc")
	for _, id := range []string{"", ".", "..", "../abc", "a/b"} {
		require.ErrorIs(t, s.Remove(id), fs.ErrInvalid, id)
	}
	require.NoError(t, s.Remove("abc"))
	require.NoDirExists(t, s.Dir("abc"))
	ids, err := s.IDs()
	require.NoError(t, err)
	assert.Empty(t, ids)
}

func TestNoRootIsNoSandbox(t *testing.T) {
	t.Parallel()
	ids, err := record.Store{Root: filepath.Join(t.TempDir(), "nothing")}.IDs()
	require.NoError(t, err)
	assert.Empty(t, ids)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = record.Store{Root: file}.IDs()
	require.Error(t, err, "a root that cannot be read is not an empty one")
}

func TestOwnersDiffer(t *testing.T) {
	t.Parallel()
	a, b := record.Store{Root: "/a"}, record.Store{Root: "/b"}
	assert.Equal(t, a.Owner(), record.Store{Root: "/a"}.Owner())
	assert.NotEqual(t, a.Owner(), b.Owner())
}
