package providers

import "io"

// Command is a program to run inside a sandbox.
type Command struct {
	Args    []string
	Env     []string // KEY=VALUE, added to the sandbox's own
	Workdir string   // "" = the sandbox's own
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	TTY     *Terminal // nil = plain streams
}

// Terminal asks for a terminal around the command.
type Terminal struct {
	Term string // the TERM of the caller
	Size Size
	// Resize delivers new sizes while the command runs; nil = fixed.
	Resize <-chan Size
}

// Size is a terminal's size in character cells.
type Size struct{ Columns, Rows uint16 }
