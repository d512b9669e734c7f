// Package launch is what starts work and stops it: sandboxes, tasks, batches, commands in a sandbox.
package launch
