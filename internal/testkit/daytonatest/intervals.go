package daytonatest

import (
	"net/http"
	"strconv"
	"time"

	"sbx/internal/testkit/wiretest"
)

// serveTTL sets the time to live from now on, also where it is shorter than before, and of what does not run, too
// (setTtl of the description).
func (f *Fake) serveTTL(w http.ResponseWriter, r *http.Request) {
	minutes, err := strconv.Atoi(r.PathValue("minutes"))
	b, now := f.findBox(r.PathValue("id")), f.o.Now()
	if b == nil {
		writeNotFound(w, r, r.PathValue("id"))
		return
	}
	life := time.Duration(minutes) * time.Minute
	if f.o.Longest > 0 {
		life = min(life, f.o.Longest)
	}
	switch {
	case err != nil || minutes < 0:
		writeAPIError(w, r, http.StatusBadRequest, "Validation failed (numeric string is expected)")
		return
	case f.o.Shortens:
		b.destroy = now.Add(b.destroy.Sub(now) / 2)
	case f.o.KeepsEnd:
	case minutes == 0:
		b.destroy = time.Time{}
	default:
		b.destroy = now.Add(life)
	}
	wiretest.JSON(w, http.StatusOK, f.detailRow(b))
}

// serveAutoStop sets after how many idle minutes a sandbox stops (setAutostopInterval of the description).
func (f *Fake) serveAutoStop(w http.ResponseWriter, r *http.Request) {
	minutes, err := strconv.Atoi(r.PathValue("minutes"))
	switch b := f.findBox(r.PathValue("id")); {
	case b == nil:
		writeNotFound(w, r, r.PathValue("id"))
	case err != nil || minutes < 0:
		writeAPIError(w, r, http.StatusBadRequest, "Validation failed (numeric string is expected)")
	default:
		b.autoStop = float64(minutes)
		wiretest.JSON(w, http.StatusOK, f.detailRow(b))
	}
}
