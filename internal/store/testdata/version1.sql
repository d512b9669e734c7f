-- A store as the first version of its schema left it, with a row in each table.
CREATE TABLE sbx_schema (version BIGINT NOT NULL PRIMARY KEY);
CREATE TABLE sbx_lease (
	name TEXT NOT NULL PRIMARY KEY, holder TEXT NOT NULL, fence BIGINT NOT NULL, until_us BIGINT NOT NULL);
CREATE TABLE sbx_sighting (
	kind TEXT NOT NULL, key TEXT NOT NULL, first_us BIGINT NOT NULL, last_us BIGINT NOT NULL, counted BIGINT NOT NULL,
	PRIMARY KEY (kind, key));
CREATE TABLE sbx_record (
	provider TEXT NOT NULL, id TEXT NOT NULL, task_id TEXT NOT NULL, agent_type TEXT NOT NULL,
	owner TEXT NOT NULL, host TEXT NOT NULL, state TEXT NOT NULL,
	created_us BIGINT NOT NULL, updated_us BIGINT NOT NULL, ended_us BIGINT NOT NULL, reason TEXT NOT NULL,
	PRIMARY KEY (provider, id));
CREATE TABLE sbx_run (
	id TEXT NOT NULL PRIMARY KEY, verb TEXT NOT NULL, layer TEXT NOT NULL, host TEXT NOT NULL, who TEXT NOT NULL,
	started_us BIGINT NOT NULL, ended_us BIGINT NOT NULL, selected BIGINT NOT NULL, counts TEXT NOT NULL,
	exit_code BIGINT NOT NULL, resumable BOOLEAN NOT NULL, acted BOOLEAN NOT NULL, profiles TEXT NOT NULL);
CREATE INDEX sbx_run_started ON sbx_run (started_us);
INSERT INTO sbx_schema VALUES (1);
INSERT INTO sbx_lease VALUES ('old', 'me', 41, 0);
INSERT INTO sbx_sighting VALUES ('old', 'prod/a', 1, 2, 3);
INSERT INTO sbx_record VALUES ('old', 'sb-1', 't-1', 'claude', 'me', 'here', 'running', 1, 2, 0, '');
INSERT INTO sbx_run VALUES ('r-1', 'cleanup', 'age', 'here', 'cron', 1, 2, 3, '{"verified":3}', 8, TRUE, TRUE, '["prod"]');
