// Package daytona speaks Daytona's API and the toolbox inside its sandboxes.
//
// An end is a stop, which keeps the disk; only a delete destroys, and it is
// asynchronous, hides what has failed, and a 404 proves it only twice and with the
// list beside it. Every call to the toolbox resets a sandbox's auto-stop timer
// unless a header says otherwise: every look from here says otherwise.
//
// Commands run detached, with their output in files that are read by offset: the
// toolbox's own sessions are one long shell that `exit 5` ends for ever, and its
// answers are no place for binary output.
package daytona
