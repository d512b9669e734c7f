package store_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// tasksTable is the application's table, as far as sbx reads it.
const tasksTable = `CREATE TABLE tasks (id text PRIMARY KEY, status text NOT NULL, sandbox_id text, keep_alive boolean DEFAULT false,
	max_duration integer DEFAULT 5, created_at timestamp DEFAULT now() NOT NULL, updated_at timestamp DEFAULT now() NOT NULL,
	completed_at timestamp, deleted_at timestamp, prompt text);
INSERT INTO tasks VALUES
	('b', 'completed', 'sbx_2', true, 300, '2026-11-20 10:00:00.123456', '2026-11-20 10:05:00', '2026-11-20 10:06:00', '2026-11-20 10:07:00', 'x'),
	('a', 'processing', 'sbx_1', NULL, NULL, '2026-11-20 09:00:00', '2026-11-20 09:05:00', NULL, NULL, 'x'),
	('c', 'pending', NULL, false, 5, now(), now(), NULL, NULL, 'x')`

// foreign makes another application's tables in a schema of their own.
func foreign(t *testing.T, statements string) (raw string) {
	t.Helper()
	raw = own(t)
	execute(t.Context(), t, raw, statements)
	return raw
}

func TestReadTasks(t *testing.T) {
	t.Parallel()
	raw := foreign(t, tasksTable)
	u, err := url.Parse(raw)
	require.NoError(t, err)
	query := u.Query()
	query.Set("timezone", "Asia/Tokyo") // whatever the session is set to
	query.Set("datestyle", "SQL,DMY")
	u.RawQuery = query.Encode()
	at := func(h, m, s, us int) time.Time { return time.Date(2026, 11, 20, h, m, s, us*1000, time.UTC) }
	want := []store.TaskRow{
		{ID: "a", Status: "processing", SandboxID: "sbx_1", CreatedAt: at(9, 0, 0, 0), UpdatedAt: at(9, 5, 0, 0)},
		{
			ID: "b", Status: "completed", SandboxID: "sbx_2", KeepAlive: true, MaxDurationMinutes: 300,
			CreatedAt: at(10, 0, 0, 123456), UpdatedAt: at(10, 5, 0, 0), CompletedAt: at(10, 6, 0, 0), DeletedAt: at(10, 7, 0, 0),
		},
	}
	for _, address := range []string{raw, u.String()} {
		list, err := store.ReadTasks(t.Context(), address)
		require.NoError(t, err)
		assert.Equal(t, want, list)
	}
}

// TestReadTasksWritesNothing reads a view that would write: the server refuses.
func TestReadTasksWritesNothing(t *testing.T) {
	t.Parallel()
	raw := foreign(t, tasksTable+`; ALTER TABLE tasks RENAME TO rows; CREATE TABLE touched (n int);
		CREATE FUNCTION touch() RETURNS boolean LANGUAGE sql VOLATILE AS 'INSERT INTO touched VALUES (1) RETURNING true';
		CREATE VIEW tasks AS SELECT * FROM rows WHERE touch()`)
	_, err := store.ReadTasks(t.Context(), raw)
	refuses(t, err, fault.KindUsage, "read-only transaction")
}

func TestReadTasksElsewhere(t *testing.T) {
	t.Parallel()
	_, err := store.ReadTasks(t.Context(), foreign(t, "SELECT 1"))
	refuses(t, err, fault.KindUsage, `relation "tasks" does not exist`)
	_, err = store.ReadTasks(t.Context(), foreign(t, "CREATE TABLE tasks (id text)"))
	refuses(t, err, fault.KindUsage, "does not exist")
	_, err = store.ReadTasks(t.Context(), foreign(t, tasksTable+"; ALTER TABLE tasks ALTER status DROP NOT NULL; UPDATE tasks SET status = NULL"))
	require.Error(t, err, "a row that cannot be read is an error, never one row less")
}
