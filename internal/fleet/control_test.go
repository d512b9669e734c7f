package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// beside makes a fleet of one provider with sources.
func beside(p providers.Provider, sources ...providers.Source) *fleet.Fleet {
	return fleet.New([]fleet.Member{{Provider: p, Timeout: 3 * time.Second, Sources: sources}}, fleet.Options{})
}

// source is a control plane beside the provider, which knows these sandboxes.
func source(name string, seeds ...fake.Seed) *fake.Provider {
	p := fake.New(fake.Options{Name: name, Type: "control"})
	p.Add(seeds...)
	return p
}

// lived is a sandbox that was made and worked at these minutes of a day.
func lived(id string, made, worked int) fake.Seed {
	day := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return day.Add(time.Duration(minute) * time.Minute) }
	return fake.Seed{Sandbox: sandbox.Sandbox{ID: id, CreatedAt: at(made), LastActivityAt: at(worked)}}
}

func abcd() sandbox.Ref { return sandbox.Ref{Provider: "prod", ID: "abcd"} }

func boxABCD() sandbox.Sandbox { return sandbox.Sandbox{Provider: "prod", ID: "abcd"} }

func TestExitComesFromItsProvider(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod"})
	made, err := p.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "exit 3"}})
	require.NoError(t, err)
	runs := p.Add(box("abcd", ""))[0]
	f := of(fake.New(fake.Options{Name: "bare"}).Bare(), p)
	exit, err := f.Exit(t.Context(), made.Ref())
	require.NoError(t, err)
	require.NotNil(t, exit)
	assert.Equal(t, 3, *exit.Code)
	exit, err = f.Exit(t.Context(), sandbox.Ref{Provider: "prod", ID: runs})
	require.NoError(t, err)
	assert.Nil(t, exit, "it runs")
	for ref, want := range map[sandbox.Ref]fault.Kind{
		{Provider: "prod", ID: "nosuch"}: fault.KindNotFound, {Provider: "bare", ID: "abcd"}: fault.KindUnsupported, {Provider: "nobody", ID: "abcd"}: fault.KindUsage,
	} {
		_, err := f.Exit(t.Context(), ref)
		assert.Equal(t, want, fault.KindOf(err), "%s: %v", ref, err)
	}
}

func TestQuotasComeFromAllAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cores := []providers.Quota{{Name: "cpu", Unit: "cores", Limit: new(8.0)}}
		hung, broken := stocked("hung"), stocked("broken")
		hung.Break(fake.Fault{Op: fake.OpQuota, Hang: true})
		broken.Break(fake.Fault{Op: fake.OpQuota, Err: planted(fault.KindAuth)})
		began := time.Now()
		got := of(hung, fake.New(fake.Options{}).Bare(), broken, fake.New(fake.Options{Name: "well", Quotas: cores})).Quotas(t.Context())
		assert.Equal(t, fleet.DefaultTimeout, time.Since(began), "nobody waits for the hung one but itself")
		require.Len(t, got, 3, "who cannot tell has no row")
		assert.Equal(t, []string{"hung", "broken", "well"}, []string{got[0].Provider, got[1].Provider, got[2].Provider})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(got[0].Err))
		assert.Equal(t, fault.KindAuth, fault.KindOf(got[1].Err))
		assert.Equal(t, fleet.ProviderQuota{Provider: "well", Quotas: cores}, got[2])
	})
}

func TestActivityIsTheLatestThatIsKnown(t *testing.T) {
	t.Parallel()
	own, plane := source("prod", lived("abcd", 0, 5)), source("plane", lived("abcd", 0, 9))
	for name, tc := range map[string]struct {
		f    *fleet.Fleet
		want fake.Seed
	}{
		"the later of two":    {beside(own, plane), lived("abcd", 0, 9)},
		"its own is later":    {beside(source("prod", lived("abcd", 0, 9)), own), lived("abcd", 0, 9)},
		"a source's":          {beside(own.Bare(), plane), lived("abcd", 0, 9)},
		"the second's":        {beside(own.Bare(), source("other"), plane), lived("abcd", 0, 9)},
		"beside a lost one's": {beside(source("prod"), plane), lived("abcd", 0, 9)},
	} {
		got, err := tc.f.Activity(t.Context(), boxABCD())
		require.NoError(t, err, name)
		assert.Equal(t, tc.want.Sandbox.LastActivityAt, got.LastWorkAt, name)
	}
}

func TestActivityThatNobodyTells(t *testing.T) {
	t.Parallel()
	broken := source("prod", lived("abcd", 0, 5))
	broken.Break(fake.Fault{Op: fake.OpActivity, Err: planted(fault.KindUnavailable)})
	for name, tc := range map[string]struct {
		f    *fleet.Fleet
		want fault.Kind
	}{
		"nobody can":               {beside(source("prod").Bare(), source("plane").Only("events").(providers.Source)), fault.KindUnsupported}, //nolint:forcetypeassert,errcheck // it has a name
		"nobody knows":             {beside(source("prod"), source("plane")), fault.KindNotFound},
		"one fails, one knows not": {beside(broken, source("plane")), fault.KindUnavailable},
		"one knows not, one fails": {beside(source("prod"), broken), fault.KindUnavailable},
	} {
		_, err := tc.f.Activity(t.Context(), boxABCD())
		assert.Equal(t, tc.want, fault.KindOf(err), "%s: %v", name, err)
	}
	_, err := beside(broken).Activity(t.Context(), sandbox.Sandbox{Provider: "nobody", ID: "abcd"})
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
}

// recorded reads a profile's records.
func recorded(ctx context.Context, f *fleet.Fleet, profile string) (ids []string, kinds []fault.Kind) {
	for r, err := range f.Records(ctx, profile) {
		if err != nil {
			kinds = append(kinds, fault.KindOf(err))
			continue
		}
		ids = append(ids, r.SandboxID)
	}
	return ids, kinds
}

func TestRecordsComeFromAllThatKeepThem(t *testing.T) {
	t.Parallel()
	own, plane := source("prod", box("a", "")), source("plane", box("b", ""), box("c", ""))
	ids, kinds := recorded(t.Context(), beside(own, plane), "prod")
	assert.Equal(t, []string{"a", "b", "c"}, ids)
	assert.Empty(t, kinds)
	ids, kinds = recorded(t.Context(), beside(own.Bare(), plane), "prod")
	assert.Equal(t, []string{"b", "c"}, ids)
	assert.Empty(t, kinds)

	own.Break(fake.Fault{Op: fake.OpRecords, Err: planted(fault.KindAuth)})
	ids, kinds = recorded(t.Context(), beside(own, plane), "prod")
	assert.Equal(t, []string{"b", "c"}, ids, "what fails does not cost the others")
	assert.Equal(t, []fault.Kind{fault.KindAuth}, kinds)

	_, kinds = recorded(t.Context(), beside(own.Bare()), "prod")
	assert.Equal(t, []fault.Kind{fault.KindUnsupported}, kinds)
	_, kinds = recorded(t.Context(), beside(own), "nobody")
	assert.Equal(t, []fault.Kind{fault.KindUsage}, kinds)
	for r, err := range beside(plane, own).Records(t.Context(), "plane") {
		require.NoError(t, err)
		assert.Equal(t, "b", r.SandboxID)
		break // and nothing more is asked
	}
	assert.Len(t, own.Calls(fake.OpRecords), 2)
}

func TestASilentPlaneEndsItsRecordsWithAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		plane := source("plane", box("b", ""))
		plane.Break(fake.Fault{Op: fake.OpRecords, Hang: true})
		began := time.Now()
		ids, kinds := recorded(t.Context(), beside(source("prod", box("a", "")), plane), "prod")
		assert.Equal(t, []string{"a"}, ids)
		assert.Equal(t, []fault.Kind{fault.KindUnavailable}, kinds)
		assert.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestEventsOfSourcesAreMerged(t *testing.T) {
	t.Parallel()
	times := func(events []sandbox.Event) (minutes []int) {
		for _, e := range events {
			minutes = append(minutes, e.At.Minute())
		}
		return minutes
	}
	own := source("prod", lived("abcd", 5, 0))
	early, late := source("early", lived("abcd", 1, 0)), source("late", lived("abcd", 9, 0))
	broken, quiet := source("broken", lived("abcd", 7, 0)), source("quiet", fake.Seed{Sandbox: sandbox.Sandbox{ID: "abcd"}})
	broken.Break(fake.Fault{Op: fake.OpEvents, Err: planted(fault.KindAuth)})
	for name, tc := range map[string]struct {
		f    *fleet.Fleet
		want []int
		kind fault.Kind
	}{
		"in the order of time":     {beside(own, late, early), []int{1, 5, 9}, fault.KindNone},
		"of sources alone":         {beside(own.Bare(), late, early), []int{1, 9}, fault.KindNone},
		"one fails":                {beside(own, broken, late), []int{5, 9}, fault.KindAuth},
		"one knows it not":         {beside(own, source("other")), []int{5}, fault.KindNone},
		"a quiet one is known":     {beside(quiet, source("other")), nil, fault.KindNone},
		"nobody knows it":          {beside(source("prod"), source("other")), nil, fault.KindNotFound},
		"who can tell fails":       {beside(broken, source("other")), nil, fault.KindAuth},
		"nobody can tell of it":    {beside(own.Bare()), nil, fault.KindUnsupported},
		"the provider has lost it": {beside(source("prod"), late), []int{9}, fault.KindNone},
	} {
		got, err := tc.f.Events(t.Context(), sandbox.Ref{Provider: tc.f.Names()[0], ID: "abcd"})
		assert.Equal(t, tc.want, times(got), name)
		assert.Equal(t, tc.kind, fault.KindOf(err), "%s: %v", name, err)
	}
}

// TestABrokenSourceCostsItsProviderNothing: a control plane that is down is left
// alone for a while, and what its provider has can be read and ended.
func TestABrokenSourceCostsItsProviderNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		own, plane, other := stocked("prod", "abcd"), source("plane"), source("other", lived("abcd", 0, 9))
		plane.Break(fake.Fault{Op: fake.OpEvents, Err: planted(fault.KindUnavailable)})
		f := beside(own.Bare(), plane, other)
		for range 20 {
			got, err := f.Events(t.Context(), abcd())
			require.Error(t, err)
			require.Len(t, got, 1, "the others tell all the same")
		}
		assert.Len(t, plane.Calls(), policy.OpensAfter)
		assert.Len(t, other.Calls(), 20)
		_, err := f.Get(t.Context(), abcd())
		require.NoError(t, err)
		advance(t, policy.StaysOpen+time.Second)
		plane.Mend()
		_, err = f.Events(t.Context(), abcd())
		require.NoError(t, err)
	})
}

// TestAFailingSourceStandsBesideTheOthers: what one source knows does not hide that
// another, which may have seen later work, could not be asked.
func TestAFailingSourceStandsBesideTheOthers(t *testing.T) {
	t.Parallel()
	own, plane := source("prod", lived("abcd", 0, 5)), source("plane", lived("abcd", 0, 9))
	plane.Break(fake.Fault{Op: fake.OpActivity, Err: planted(fault.KindUnavailable)})
	got, err := beside(own, plane).Activity(t.Context(), boxABCD())
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	assert.Equal(t, lived("abcd", 0, 5).Sandbox.LastActivityAt, got.LastWorkAt)
	seen := beside(own, plane).ObserveLife(t.Context(), boxABCD())
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(seen.SourceErr()), "%v", seen.SourceErr())
}

// linked is a source with ids of its own.
type linked struct {
	*fake.Provider

	link func(sandbox.Sandbox) (string, error)
}

func (l linked) Link(_ context.Context, s sandbox.Sandbox) (string, error) { return l.link(s) }

func TestASourceIsAskedUnderItsOwnID(t *testing.T) {
	t.Parallel()
	plane := source("plane", lived("own-0001", 0, 9))
	by := func(id string, err error) *fleet.Fleet {
		return beside(source("prod", lived("abcd", 0, 5)).Bare(), linked{plane, func(sandbox.Sandbox) (string, error) { return id, err }})
	}
	got, err := by("own-0001", nil).Activity(t.Context(), boxABCD())
	require.NoError(t, err)
	assert.Equal(t, lived("", 0, 9).Sandbox.LastActivityAt, got.LastWorkAt)
	events, err := by("own-0001", nil).Events(t.Context(), abcd())
	require.NoError(t, err)
	assert.NotEmpty(t, events)
	_, err = by("", planted(fault.KindNotFound)).Activity(t.Context(), boxABCD())
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "it is none of the source's: %v", err)
	seen := by("", planted(fault.KindUnavailable)).ObserveLife(t.Context(), boxABCD())
	assert.Error(t, seen.SourceErr(), "it may be one, and the link cannot be made")
}
