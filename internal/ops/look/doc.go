// Package look is what reads and judges: lists, figures, one sandbox, logs, the investigation of a
// fleet, its targets, and the checks of sbx itself. It ends and starts nothing.
package look
