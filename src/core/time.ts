/** A day of UTC, without leap seconds. */
export const dayMs = 86_400_000
