package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// openStore gives what survives the process. Where nothing is to be written, and
// nothing was written before or the state directory cannot be used, an empty one in
// memory does.
func (a *app) openStore(write bool) (store.Store, error) { //nolint:ireturn // on the disk or in memory
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	dir, unusable := c.State()
	switch {
	case c.StoreURL != "":
	case unusable != nil && write:
		return nil, unusable
	case unusable != nil:
		a.withoutState()
		return store.Memory(a.process.Now), nil //nolint:nilerr // it was said
	case !write:
		if _, err := os.Stat(filepath.Join(dir, store.FileName)); errors.Is(err, fs.ErrNotExist) {
			return store.Memory(a.process.Now), nil
		}
	}
	return store.New(store.Options{URL: c.StoreURL, StateDir: dir, Now: a.process.Now})
}

// openShared opens the store that hosts share; nil = they share none.
func (a *app) openShared() (store.Store, error) { //nolint:ireturn // as ops.Env wants it
	c, err := a.config()
	if err != nil || c.StoreURL == "" {
		return nil, err
	}
	return a.openStore(true)
}

// withoutState says, once, that nothing of earlier runs is known.
func (a *app) withoutState() {
	a.warnState.Do(func() {
		c, err := a.config()
		if err != nil {
			return
		}
		_, why := c.State()
		if p, err := a.printer(); err == nil && why != nil {
			p.Warn("the notes of earlier runs cannot be read: " + why.Error() + "; " + fault.HintOf(why))
		}
	})
}

// keptAge is how old what is known of kept sandboxes may be.
const keptAge = 2 * time.Second

// keptList says until when sbx itself keeps a sandbox: by the list of what tasks have
// kept, and by the label that their launch has written where no store here knows the
// task. The store is read for sandboxes of sbx's own tasks alone.
type keptList struct {
	open  func(write bool) (store.Store, error)
	limit time.Duration // what a slow store may cost

	mu      sync.Mutex
	at      time.Time
	failed  error
	waiting map[sandbox.Ref]time.Time
	known   map[string]bool // tasks that were asked for: whether this store has them
}

func newKeptList(open func(bool) (store.Store, error), limit time.Duration) *keptList {
	return &keptList{open: open, limit: limit}
}

func (k *keptList) keptUntil(ctx context.Context, s sandbox.Sandbox) time.Time {
	labelled := sandbox.KeptAtMost(s.Labels)
	if labelled.IsZero() && !task.IsID(s.TaskID) {
		return time.Time{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.at.IsZero() || time.Since(k.at) > keptAge {
		k.failed, k.known = k.readDocument(ctx, func(ctx context.Context, st store.Store) (err error) {
			k.waiting, err = task.KeepList{Store: st}.Waiting(ctx)
			return err
		}), map[string]bool{}
		k.at = time.Now()
	}
	until, kept := k.waiting[s.Ref()]
	switch {
	case k.failed != nil:
		return labelled
	case kept:
		return until
	case labelled.IsZero() || k.knowsTask(ctx, s.TaskID):
		return time.Time{}
	}
	return labelled
}

// knowsTask says that the store has a task: then its list says what is kept.
func (k *keptList) knowsTask(ctx context.Context, id string) bool {
	known, asked := k.known[id]
	if !asked {
		err := k.readDocument(ctx, func(ctx context.Context, st store.Store) error {
			_, err := task.Ledger{Store: st}.Read(ctx, id)
			return err
		})
		known = err == nil
		if err == nil || fault.KindOf(err) == fault.KindNotFound {
			k.known[id] = known
		}
	}
	return known
}

func (k *keptList) readDocument(ctx context.Context, do func(context.Context, store.Store) error) error {
	ctx, stop := context.WithTimeout(ctx, k.limit)
	defer stop()
	st, err := k.open(false)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, st), st.Close())
}

const (
	// endRequestKind is under what unconfirmed requests to end are kept.
	endRequestKind = "end_request"
	// endRequestsKept is for how long: far beyond the longest time that a machine of
	// any provider may run without being asked for more.
	endRequestsKept = 7 * 24 * time.Hour
)

// endRequests is fleet.EndRequests over the store, which is opened for each call:
// most runs need none.
type endRequests struct {
	open func(write bool) (store.Store, error)
	now  func() time.Time
}

// Unconfirmed is fleet.EndRequests'. What cannot be read counts as a request of
// which nothing more is known, and what is too old is left out.
func (e endRequests) Unconfirmed(ctx context.Context) (map[sandbox.Ref]sandbox.EndRequest, error) {
	all := map[sandbox.Ref]sandbox.EndRequest{}
	err := e.withStore(false, func(st store.Store) error {
		docs, err := st.Docs(ctx, endRequestKind)
		for _, d := range docs {
			profile, id, whole := strings.Cut(d.Key, "/")
			if !whole || e.now().Sub(d.UpdatedAt) > endRequestsKept {
				continue
			}
			r := sandbox.EndRequest{At: d.UpdatedAt, Detail: "no answer is recorded"}
			_ = json.Unmarshal(d.Body, &r) // then it stays unconfirmed
			all[sandbox.Ref{Provider: profile, ID: id}] = r
		}
		return err
	})
	return all, err
}

// Keep is fleet.EndRequests'.
func (e endRequests) Keep(ctx context.Context, ref sandbox.Ref, r sandbox.EndRequest) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return e.changeDocument(ctx, ref, func(st store.Store, now store.Doc) error {
		now.Body = body
		_, err := st.SwapDoc(ctx, now)
		return err
	})
}

// Forget is fleet.EndRequests'.
func (e endRequests) Forget(ctx context.Context, ref sandbox.Ref) error {
	return e.changeDocument(ctx, ref, func(st store.Store, now store.Doc) error {
		if now.Version == 0 {
			return nil
		}
		return st.DropDoc(ctx, now)
	})
}

// changeDocument applies a change to a document, and again to the new version when another
// process has changed it meanwhile.
func (e endRequests) changeDocument(ctx context.Context, ref sandbox.Ref, do func(store.Store, store.Doc) error) error {
	return e.withStore(true, func(st store.Store) error {
		for {
			now, err := st.Doc(ctx, endRequestKind, ref.Provider+"/"+ref.ID)
			if err == nil {
				err = do(st, now)
			}
			if !errors.Is(err, store.ErrSwapped) || ctx.Err() != nil {
				return err
			}
		}
	})
}

func (e endRequests) withStore(write bool, do func(store.Store) error) error {
	st, err := e.open(write)
	if err != nil {
		return err
	}
	return errors.Join(do(st), st.Close())
}
