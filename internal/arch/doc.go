// Package arch guards the floors of the house: who may import whom, and which
// room owns which library. It holds nothing but its test.
package arch
