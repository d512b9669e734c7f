// Package drill stages a real incident on the local provider and walks the
// investigation of the "sandbox stuck" runbook over it: sandboxes that loop,
// hang, leak, fall silent or belong to nobody, and a healthy one that must
// survive. It names each by the same rules that every other verb uses, ends
// the stuck ones, and proves that nothing is left.
//
// Nothing is pretended: the programs are processes, the limits are limits, and
// a wrong verdict makes the drill fail. No rule about what is stuck enters this
// room; those live in triage.
package drill
