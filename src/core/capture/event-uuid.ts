// Makes a uuid for an event that was sent without a uuid. Callers pass the randomness, so that equal input gives equal
// uuids.

/** A source of independent, unpredictable integers of 32 bits, 0 to 2^32 - 1. */
export type RandomUint32 = () => number

/**
 * A UUIDv7 whose time part is the event's own time, so that ids sort as their events do.
 * @param timestampMs epoch ms; times before 1970 count as 1970.
 * Source: docs/wire/ingestion.md 2.6.
 */
export function createEventUuid(timestampMs: number, random: RandomUint32): string {
  const ms = Math.max(timestampMs, 0)
  const time = `${hex8(Math.floor(ms / 0x1_0000))}-${hex4(ms % 0x1_0000)}`
  const bits = random()
  const versioned = hex4(0x7000 | (bits & 0xfff))
  const variant = hex4(0x8000 | ((bits >>> 12) & 0x3fff))
  return `${time}-${versioned}-${variant}-${hex8(random())}${hex4(random())}`
}

/** Takes 32-bit integers from a pool that `fill` refills 4 KiB at a time: one system call per thousand integers. */
export function createPooledRandomUint32(fill: (pool: Uint32Array<ArrayBuffer>) => void): RandomUint32 {
  const pool = new Uint32Array(1024)
  let next = pool.length
  return () => {
    if (next === pool.length) {
      fill(pool)
      next = 0
    }
    return pool[next++]!
  }
}

const byteHex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

function hex4(value: number): string {
  return byteHex[(value >>> 8) & 0xff]! + byteHex[value & 0xff]!
}

function hex8(value: number): string {
  return hex4(value >>> 16) + hex4(value)
}
