// Package commands is the command line: one file a verb, each with its
// arguments, its flags and one call downstairs. What a verb does lives in the
// rooms below; what it prints is said as columns and decided in output.
//
// No HTTP, no provider type and no exit of the process enters this room, and a
// verb never asks which format it prints.
package commands

import (
	"context"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/providers"
)

// Deps is what every verb is handed: what operations need, and the command line's own. The
// costly parts are functions, so that help and version touch neither configuration nor
// provider.
type Deps struct {
	*ops.Env

	Globals *Globals

	Printer func() (*output.Printer, error)
	// Size reads the size of the terminal and, after it, every change; the
	// func stops it. Zero sizes mean that there is no terminal.
	Size func() (providers.Size, <-chan providers.Size, func())
	// RawTerminal puts the terminal into raw mode; the func puts it back.
	RawTerminal func() (func(), error)
	// Began is called when a verb starts, with the context that ends it; an earlier failure is
	// wrong use. Printer, Config and Input are ready by then.
	Began func(ctx context.Context)
}

// Globals are the flags that every verb takes.
type Globals struct {
	Providers []string
	Output    string
	Columns   []string
	Timeout   string
	Config    string
	NoColor   bool
	Quiet     bool
	Verbose   int
	// Settings are flags of a verb that win over the configuration, by their names there; a
	// verb sets them before it asks for Config.
	Settings map[string]string
}
