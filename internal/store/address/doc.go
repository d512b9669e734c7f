// Package address reads the URL of a Postgres database and says what may be shown
// of it. The configuration checks and masks with it what the store connects to.
//
// It imports no driver: to show an address, nothing needs one.
package address
