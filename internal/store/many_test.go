//go:build !race

package store_test

// processes is how many open a store at the same moment.
const processes = 64
