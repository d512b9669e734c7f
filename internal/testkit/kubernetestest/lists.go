package kubernetestest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"sbx/internal/testkit/wiretest"
)

// page is what a token stands for: the rest of a list, as of one moment.
type page struct {
	rows    []any
	version int
}

// serveList answers a page. All pages of a list show the moment of the first.
func (f *Fake) serveList(plural string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Has("watch") {
			f.serveWatch(plural, w, r)
			return
		}
		if q.Has("resourceVersion") || q.Has("allowWatchBookmarks") {
			f.t.Errorf("a list from the cache of the server: %s", r.URL)
		}
		limit, err := strconv.Atoi(q.Get("limit"))
		if err != nil || limit <= 0 {
			refuse(w, http.StatusBadRequest, "BadRequest", "limit: %q", q.Get("limit"))
			return
		}
		if f.o.PageSize > 0 {
			limit = min(limit, f.o.PageSize)
		}
		now, known := f.page(plural, q.Get("continue"), q.Get("labelSelector"))
		switch {
		case q.Get("continue") != "" && f.o.Expired > 0:
			f.o.Expired--
			f.expire(w, q.Get("continue"))
			return
		case !known:
			refuse(w, http.StatusBadRequest, "BadRequest", "continue key is not valid")
			return
		}
		rows, meta := now.rows, map[string]any{"resourceVersion": strconv.Itoa(now.version)}
		if len(rows) > limit {
			token := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":%d,"start":"%s-%d"}`, now.version, plural+q.Get("labelSelector"), len(rows)))
			f.pages[token] = page{rows[limit:], now.version}
			meta["continue"], rows = token, rows[:limit]
		}
		if rows == nil {
			rows = []any{}
		}
		wiretest.JSON(w, http.StatusOK, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": meta, "items": rows})
		f.kubelet()
	}
}

// page is what a token stands for, or the present list.
func (f *Fake) page(plural, token, selector string) (now page, known bool) {
	if token != "" {
		now, known = f.pages[token]
		if f.o.Moves {
			now.version++
		}
		return now, known
	}
	now.version = f.version
	for _, o := range f.things {
		if o.plural == plural && selected(o, selector) {
			now.rows = append(now.rows, f.show(o))
		}
	}
	return now, true
}

// expire answers that a token is too old, with one that shows the rest as it is now.
func (f *Fake) expire(w http.ResponseWriter, token string) {
	rest := f.pages[token]
	f.pages["inconsistent"] = page{rest.rows[min(1, len(rest.rows)):], f.version + 7}
	wiretest.JSON(w, http.StatusGone, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": http.StatusGone, "metadata": map[string]any{"continue": "inconsistent"},
		"message": "The provided continue parameter is too old to display a consistent list result.",
	})
}

// selected says whether an object has the labels of a selector.
func selected(o *thing, selector string) bool {
	for part := range strings.SplitSeq(selector, ",") {
		key, value, exact := strings.Cut(part, "=")
		if got, has := o.labels[key]; key != "" && (!has || exact && got != value) {
			return false
		}
	}
	return true
}
