// Package storetest is the contract of store.Store as tests: what memory, SQLite
// and Postgres must all do. A store passes when Run passes.
//
// Nothing enters that holds for one of them alone.
package storetest
