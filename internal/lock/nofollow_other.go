//go:build !unix

package lock

// noFollow does not exist where making links is a right of its own.
const noFollow = 0
