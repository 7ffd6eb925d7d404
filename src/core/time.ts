/** A day of UTC, without leap seconds. */
export const dayMs = 86_400_000

/** The days since 1970 of a day such as `2024-05-01`; NaN for anything else. */
export function parseDayNumber(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) / dayMs
}
