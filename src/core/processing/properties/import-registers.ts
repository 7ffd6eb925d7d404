// An import's writes to one property, kept so that the same events give the same result in any order: the latest `$set` or
// `$unset`, and the earliest `$set_once`, which has no effect while a `$set` sets the property. A property's mark and value
// encode exactly these two writes. `import-update.ts` has the rules for whole profiles; live writes are not handled here.

import type { JsonValue } from '#core/json.ts'
import type { PropertyMark } from '#core/persons/person.ts'

/** When an import's event happened; the uuid orders events of the same millisecond. */
export interface ImportTime {
  readonly timestampMs: number
  readonly uuid: string
}

export interface ImportRegisters {
  readonly importJobId: number
  readonly latest:
    | (ImportTime & ({ readonly kind: 'set'; readonly value: JsonValue } | { readonly kind: 'unset' }))
    | null
  /** The earliest `$set_once`. Its value is dropped once a later `$set` or `$unset` ensures that it can never be shown. */
  readonly once: (ImportTime & { readonly value?: JsonValue }) | null
}

export const noRegisters: ImportRegisters = { importJobId: 0, latest: null, once: null }

export function isImportTimeLater(a: ImportTime, b: ImportTime): boolean {
  return a.timestampMs !== b.timestampMs ? a.timestampMs > b.timestampMs : a.uuid > b.uuid
}

/** Reads the two writes from a mark of an import and the property's current value. */
export function readRegisters(mark: PropertyMark, value: JsonValue | undefined): ImportRegisters {
  const { importJobId, timestampMs, uuid, once, unset } = mark
  if (mark.kind === 'import_once') {
    const latest = unset === undefined ? null : { kind: 'unset' as const, ...unset }
    return { importJobId, latest, once: { timestampMs, uuid, ...(value === undefined ? {} : { value }) } }
  }
  const latest =
    mark.kind === 'import_set' && value !== undefined
      ? { kind: 'set' as const, timestampMs, uuid, value }
      : { kind: 'unset' as const, timestampMs, uuid }
  return { importJobId, latest, once: once ?? null }
}

/**
 * Joins the writes of two histories of a property: takes the later `latest` (an `$unset` wins a tie) and the earlier
 * `once`. If they belong to two imports, the mark names the import whose value is shown: that is how undoing an implicit
 * job finds its writes.
 */
export function mergeRegisters(a: ImportRegisters, b: ImportRegisters): ImportRegisters {
  const latest = pickLater(a.latest, b.latest)
  const once = pickEarlier(a.once, b.once)
  if (latest === a.latest && once === a.once) return a
  const isOfA = latest === null || isOnceShown(latest, once) ? once === a.once : latest === a.latest
  return { importJobId: (isOfA ? a : b).importJobId, latest, once }
}

function isOnceShown(latest: ImportRegisters['latest'], once: ImportRegisters['once']): boolean {
  return latest?.kind !== 'set' && isOnceAlive(latest, once)
}

/** Whether the `$set_once` value can still become visible, even if a `$set` value hides it now. */
function isOnceAlive(latest: ImportRegisters['latest'], once: ImportRegisters['once']): boolean {
  return once !== null && once.value !== undefined && (latest === null || isImportTimeLater(once, latest))
}

function pickLater(a: ImportRegisters['latest'], b: ImportRegisters['latest']): ImportRegisters['latest'] {
  if (a === null || b === null) return a ?? b
  if (isImportTimeLater(a, b)) return a
  if (isImportTimeLater(b, a)) return b
  return a.kind === 'set' && b.kind === 'unset' ? b : a
}

function pickEarlier(a: ImportRegisters['once'], b: ImportRegisters['once']): ImportRegisters['once'] {
  if (a === null || b === null) return a ?? b
  return isImportTimeLater(a, b) ? b : a
}

/** The mark and the value (undefined for no property) that encode these writes; there is at least one write. */
export function toMarkAndValue(registers: ImportRegisters): { mark: PropertyMark; value: JsonValue | undefined } {
  const { importJobId, latest, once } = registers
  if (once !== null && isOnceShown(latest, once)) {
    const { timestampMs, uuid } = once
    const unset = latest === null ? {} : { unset: { timestampMs: latest.timestampMs, uuid: latest.uuid } }
    return { mark: { kind: 'import_once', timestampMs, uuid, importJobId, ...unset }, value: once.value }
  }
  const { timestampMs, uuid } = latest ?? once!
  const beneath =
    once === null
      ? {}
      : {
          once: isOnceAlive(latest, once) ? once : { timestampMs: once.timestampMs, uuid: once.uuid },
        }
  return latest?.kind === 'set'
    ? { mark: { kind: 'import_set', timestampMs, uuid, importJobId, ...beneath }, value: latest.value }
    : { mark: { kind: 'import_unset', timestampMs, uuid, importJobId, ...beneath }, value: undefined }
}
