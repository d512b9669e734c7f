// Package e2b speaks E2B's API, and that of clouds that speak it too: Novita is
// a second type of provider from this room, with a dialect of its own.
//
// Sandboxes are VMs that end at a time of their own; there is no stop, and a
// paused one lives in a snapshot that DELETE destroys. Commands run through envd
// inside the VM, over the Connect protocol in JSON. Reading never connects,
// resumes or refreshes: each of these lengthens a sandbox's life.
//
// No policy (deadlines, verification, breakers) and no output enters this room.
package e2b
