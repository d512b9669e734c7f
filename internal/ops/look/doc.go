// Package look is what reads and judges: lists, figures, one sandbox, logs, the investigation of a
// fleet, its targets, and the checks of sbx itself. It ends and starts nothing.
//
// An investigation reads each source once: a profile is listed and looked at by itself, so that a slow one
// delays no other, and a step whose source fails has unknown answers with the reason. A look at many ends 5 s,
// or a tenth, before its caller's limit: what has answered is judged, the rest is an error and unjudged. What was
// read in time (fleetLook) is the only input of the conclusions.
//
// Causes are ranked by triage.Causes. Causes of a whole profile never explain a sandbox that is at work, and an
// effect ("it does not start") ranks behind a probable fault of the profile. One sandbox has one judgement:
// inspect and diagnose of a REF call one function. What is gone is explained by what is on record.
package look
