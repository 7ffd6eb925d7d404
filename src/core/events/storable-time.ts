// The instants that can be stored as an event's time: the years 1900 to 2299, because beyond them the event store's columns
// wrap. Epoch ms.

export const storableFromMs = Date.UTC(1900, 0, 1)
export const storableBeforeMs = Date.UTC(2300, 0, 1)

/** Whether epoch ms are whole and can be stored. */
export function isStorableTime(ms: number): boolean {
  return Number.isInteger(ms) && ms >= storableFromMs && ms < storableBeforeMs
}
