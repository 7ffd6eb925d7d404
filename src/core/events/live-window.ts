/** Imported events younger than this are stored like older ones, and counted as recent. Source: docs/wire/import.md 3.2. */
export const liveWindowMs = 48 * 3_600_000
