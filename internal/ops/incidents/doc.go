// Package incidents answers what happened: an incident is an id, times and notes, and the rest of its
// page is asked of the records of that time.
package incidents
