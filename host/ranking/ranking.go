// Package ranking says in which order a board's jobs come, and which of them may be
// had: the order by score, class and age, the counts that a policy is shown of a key
// and what its rank makes of it, and the time as policies see it. Claims, listings,
// shadows and simulations go by it, so that they agree. It keeps no jobs, asks no
// policy and has no clock.
package ranking
