package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/store"
)

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
