// Package storetest is the contract of store.Store as tests, for memory, SQLite and
// Postgres. A store passes when Run passes.
//
// Tests for one store alone do not belong here.
package storetest
