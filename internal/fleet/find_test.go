package fleet_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// town is a fleet with every kind of near miss.
func town() (f *fleet.Fleet, prod, local *fake.Provider) {
	prod, local = stocked("prod"), stocked("local")
	prod.Add(box("abcd1234", "web"), box("abcd9999", "db"), box("ef", "abcd"), box("worker-1", "same"))
	local.Add(box("worker-2", "same"), box("web", "odd"), box("abcd1234x", ""), box("zzzz", "worker-2"))
	return of(prod, local), prod, local
}

func TestFindWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	f, prod, _ := town()
	prod.Break(fake.Fault{Op: fake.OpGet, ID: "abcd1234", Err: unreadable()})
	_, err := f.Find(t.Context(), []string{"prod/abcd1234"}, fleet.FindOptions{})
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
	got, err := f.Find(t.Context(), []string{"prod/abcd1234"}, fleet.FindOptions{Destructive: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"prod/abcd1234"}, refs(got))
	assert.Equal(t, sandbox.StateUnknown, got[0].State)
}

func TestFind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		words string
		want  string
		kind  fault.Kind
		says  string
	}{
		"full reference":              {"prod/abcd1234", "prod/abcd1234", "", ""},
		"nothing of a profile":        {"prod/zzzz", "", fault.KindNotFound, "prod: get zzzz: no such sandbox"},
		"exact id over name":          {"worker-2", "local/worker-2", "", ""},
		"exact id of one, name other": {"web", "local/web", "", ""},
		"exact name over prefix":      {"abcd", "prod/ef", "", ""},
		"name":                        {"db", "prod/abcd9999", "", ""},
		"unique prefix":               {"abcd9", "prod/abcd9999", "", ""},
		"exact id over longer ids":    {"abcd1234", "prod/abcd1234", "", ""},
		"prefix too short":            {"zzz", "", fault.KindNotFound, `no sandbox matches "zzz"`},
		"prefix of 4":                 {"work", "", fault.KindUsage, `"work" matches 2 sandboxes: local/worker-2 (running), prod/worker-1 (running)`},
		"ambiguous name":              {"same", "", fault.KindUsage, "local/worker-2 (running), prod/worker-1 (running)"},
		"ambiguous prefix":            {"abcd12", "", fault.KindUsage, "local/abcd1234x (running), prod/abcd1234 (running)"},
		"several":                     {"db prod/ef worker-2", "prod/abcd9999 prod/ef local/worker-2", "", ""},
		"the same twice":              {"db prod/abcd9999 abcd9", "prod/abcd9999", "", ""},
		"found and not found":         {"db nobody", "prod/abcd9999", fault.KindNotFound, "nobody"},
		"usage refuses all":           {"db same", "", fault.KindUsage, "same"},
		"ill-formed":                  {"db ../x", "", fault.KindUsage, "not a sandbox reference"},
		"prefix in a profile":         {"prod/abcd9", "prod/abcd9999", "", ""},
		"name in a profile":           {"prod/db", "prod/abcd9999", "", ""},
		"unknown profile":             {"db prd/x", "", fault.KindUsage, `no provider is named "prd"`},
		"nothing asked":               {"", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, _ := town()
			got, err := f.Find(t.Context(), strings.Fields(tc.words), fleet.FindOptions{})
			assert.Equal(t, tc.want, strings.Join(refs(got), " "))
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				assert.Equal(t, !strings.HasPrefix(tc.words, "prod/"), fault.HintOf(err) != "", "what fleet itself refuses has a hint")
			}
		})
	}
}

// TestFindByTask: the task of another application is a reference too; one of `sbx run` is not, and
// of a name or a task that comes again the only living sandbox is meant.
func TestFindByTask(t *testing.T) {
	t.Parallel()
	prod := stocked("prod")
	seed := func(id, name, task string, state sandbox.State) fake.Seed {
		s := box(id, name)
		s.Sandbox.TaskID, s.Sandbox.State = task, state
		return s
	}
	prod.Add(seed("one1", "web", "T-1", sandbox.StateTerminated), seed("two2", "web", "T-1", sandbox.StateRunning),
		seed("thr3", "", "T-2", sandbox.StateRunning), seed("fou4", "", "T-2", sandbox.StateRunning), seed("fiv5", "", "t-abc", sandbox.StateRunning))
	f := fleet.New([]fleet.Member{{Provider: prod}}, fleet.Options{})
	for word, want := range map[string]string{"T-1": "prod/two2", "web": "prod/two2", "T-2": "matches 2 sandboxes", "t-abc": "sbx stop t-abc", "T-3": "no sandbox matches"} {
		got, err := f.Find(t.Context(), []string{word}, fleet.FindOptions{Destructive: true})
		if err != nil {
			assert.Contains(t, err.Error()+fault.HintOf(err), want, word)
			continue
		}
		assert.Equal(t, []string{want}, refs(got), word)
	}
}

func TestFindIsFrugal(t *testing.T) {
	t.Parallel()
	f, prod, local := town()
	_, err := f.Find(t.Context(), []string{"prod/ef", "prod/worker-1"}, fleet.FindOptions{})
	require.NoError(t, err)
	assert.Len(t, prod.Calls(), 2, "one GET each")
	assert.Len(t, prod.Calls(fake.OpGet), 2)
	assert.Empty(t, local.Calls(), "the other profile is not asked")

	_, err = f.Find(t.Context(), []string{"db", "worker-2", "nobody"}, fleet.FindOptions{})
	require.Error(t, err)
	assert.Len(t, local.Calls(fake.OpList), 2, "one listing of two pages for all bare words")

	before := len(prod.Calls())
	_, err = f.Find(t.Context(), []string{"db", "a/b/c"}, fleet.FindOptions{})
	require.Error(t, err)
	assert.Len(t, prod.Calls(), before, "nothing is called when a word is ill-formed")
}

// TestTheBeginningOfAnID means the same with a profile and without, says that it is no more, and is refused where
// nobody can be asked.
func TestTheBeginningOfAnID(t *testing.T) {
	t.Parallel()
	for word, tc := range map[string]struct {
		want  string
		begun bool
	}{
		"prod/abcd9":    {"prod/abcd9999", true},
		"abcd9":         {"prod/abcd9999", true},
		"prod/db":       {"prod/abcd9999", false},
		"db":            {"prod/abcd9999", false},
		"prod/abcd9999": {"prod/abcd9999", false},
		"prod/abcd":     {"prod/ef", false}, // its name
		"abcd":          {"prod/ef", false},
		"prod/work":     {"prod/worker-1", true},
		"work":          {"matches 2 sandboxes", true},
		"prod/abc":      {"", true},
		"abc":           {"", true},
	} {
		f, _, _ := town()
		found, err := f.FindEach(t.Context(), []string{word}, fleet.FindOptions{Destructive: true})
		if err != nil {
			assert.Contains(t, err.Error(), tc.want, word)
		} else {
			require.Len(t, found, 1, word)
			assert.Equal(t, tc.want, found[0].Ref().String(), word)
			assert.Equal(t, tc.begun, found[0].Begun, word)
		}
		found, err = f.FindEach(t.Context(), []string{word, "prod/ef"}, fleet.FindOptions{Destructive: true, Full: true})
		assert.Equal(t, !tc.begun, err == nil, "%s: %v", word, err)
		if tc.begun && strings.HasPrefix(tc.want, "prod/") {
			assert.Empty(t, found, word)
			assert.Equal(t, fault.KindUsage, fault.KindOf(err), word)
			assert.Contains(t, fault.HintOf(err), "write "+tc.want, word)
		}
	}
}

// TestASecondEndMeansNoOther: a script that ends `job-1` a second time must not end `job-10`.
func TestASecondEndMeansNoOther(t *testing.T) {
	t.Parallel()
	for _, after := range []fake.After{fake.AfterGone, fake.AfterMissing} {
		p := fake.New(fake.Options{Name: "prod", After: after})
		p.Add(box("job-1", ""), box("job-10", ""))
		f := of(p)
		end(t, f, fleet.EndOptions{Recheck: unread()}, "prod/job-1")
		for _, word := range []string{"prod/job-1", "job-1"} {
			found, err := f.FindEach(t.Context(), []string{word}, fleet.FindOptions{Destructive: true, Full: true})
			if err == nil {
				require.Len(t, found, 1)
				assert.Equal(t, "prod/job-1", found[0].Ref().String(), word)
			}
		}
	}
}

func TestFindWhileAProviderIsDown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		words       string
		destructive bool
		want        string
		kind        fault.Kind
	}{
		"found elsewhere":              {"worker-2", false, "local/worker-2", ""},
		"not found elsewhere":          {"nobody", false, "", fault.KindUnavailable},
		"found, but to be ended":       {"worker-2", true, "", fault.KindUnavailable},
		"full reference of another":    {"local/worker-2", true, "local/worker-2", ""},
		"full reference where listing": {"prod/ef", true, "prod/ef", ""},
		"one of each":                  {"local/worker-2 db", true, "local/worker-2", fault.KindUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, prod, _ := town()
			prod.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
			got, err := f.Find(t.Context(), strings.Fields(tc.words), fleet.FindOptions{Destructive: tc.destructive})
			assert.Equal(t, tc.want, strings.Join(refs(got), " "))
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			if err != nil {
				require.ErrorContains(t, err, "prod, which could not be listed: prod: list: 503")
				assert.Contains(t, fault.HintOf(err), "write profile/")
				assert.NotContains(t, err.Error(), "\n")
			}
		})
	}
}

func TestFindOfManyMatchesNamesSome(t *testing.T) {
	t.Parallel()
	f := of(stocked("prod", "work-1", "work-2", "work-3", "work-4", "work-5", "work-6", "work-7"))
	_, err := f.Find(t.Context(), []string{"work"}, fleet.FindOptions{})
	require.ErrorContains(t, err, "prod/work-5 (running) and 2 more")
}

func TestFindCountsARepeatedListingOnce(t *testing.T) {
	t.Parallel()
	p := stocked("prod", "work-1")
	p.Tell(fake.LieListsTwice)
	got, err := of(p).Find(t.Context(), []string{"work-1"}, fleet.FindOptions{})
	require.NoError(t, err)
	assert.Len(t, got, 1)
}

func TestFindOfWhatIsGone(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod", After: fake.AfterGone})
	p.Add(box("abcd", ""))
	f := of(p)
	end(t, f, fleet.EndOptions{Recheck: unread()}, "prod/abcd")
	_, err := f.Find(t.Context(), []string{"prod/abcd"}, fleet.FindOptions{})
	assert.Equal(t, fault.KindGone, fault.KindOf(err))

	got, err := f.Find(t.Context(), []string{"prod/abcd"}, fleet.FindOptions{Destructive: true})
	require.NoError(t, err, "ending it is already_gone")
	require.Len(t, got, 1)
	assert.Equal(t, sandbox.Sandbox{Provider: "prod", ProviderType: "fake", ID: "abcd"}, got[0])
}

func TestFindCanceled(t *testing.T) {
	t.Parallel()
	f, _, _ := town()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, word := range []string{"db", "prod/ef"} {
		_, err := f.Find(ctx, []string{word}, fleet.FindOptions{})
		assert.Equal(t, fault.KindCanceled, fault.KindOf(err), "%s: %v", word, err)
	}
}

func FuzzFind(f *testing.F) {
	f.Add("abcd")
	f.Add("prod/ef")
	f.Add("work\nworker-2")
	f.Fuzz(func(t *testing.T, words string) {
		all, _, _ := town()
		got, err := all.Find(t.Context(), strings.Split(words, "\n"), fleet.FindOptions{})
		if fault.KindOf(err) == fault.KindUsage {
			assert.Empty(t, got, "what is refused acts on nothing")
		}
		assert.LessOrEqual(t, len(got), 1+strings.Count(words, "\n"), "a word never means more than one")
	})
}

// TestWhoHasNamedWhat: each sandbox comes once, with all the words that mean it, and says
// whether anything but its id could be read.
func TestWhoHasNamedWhat(t *testing.T) {
	t.Parallel()
	p := stocked("prod", "abcd1234", "efgh5678")
	p.Break(fake.Fault{Op: fake.OpGet, ID: "efgh5678", Err: unreadable()})
	found, err := of(p).FindEach(t.Context(), []string{"abcd", "prod/efgh5678", "prod/abcd1234"}, fleet.FindOptions{Destructive: true})
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.Equal(t, []string{"abcd", "prod/abcd1234"}, found[0].Words)
	assert.False(t, found[0].Unreadable)
	assert.Equal(t, []string{"prod/efgh5678"}, found[1].Words)
	assert.True(t, found[1].Unreadable)
}
