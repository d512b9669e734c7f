// Package address reads the URL of a Postgres database and says what may be shown
// of it. The configuration checks and masks with it what the store connects to.
//
// No driver enters, so that whoever only shows an address links none.
package address
