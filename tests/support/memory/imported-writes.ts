// Selects, from all writes of imports, those that decide the value of a property.

import type { StoredEvent } from '#core/events/stored-event.ts'
import type { ImportedWrite } from '#core/imports/other-use.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { isLater } from '#core/processing/properties/import-registers.ts'
import { unsetKeys } from '#core/processing/properties/person-update.ts'

/** @param maps the properties of the event by op. */
export function writesOf(
  { importJobId, timestampMs, uuid }: StoredEvent,
  maps: Partial<Record<ImportedWrite['op'], JsonValue | undefined>>,
  keys: readonly string[],
): ImportedWrite[] {
  const isAsked = new Set(keys)
  return (Object.keys(maps) as ImportedWrite['op'][])
    .flatMap(op => entriesOf(op, maps[op]).map(([key, value]) => ({ op, key, value })))
    .filter(({ op, key }) => op === 'first' || isAsked.has(key))
    .map(write => ({ importJobId, ...write, timestampMs, uuid }))
}

function entriesOf(op: ImportedWrite['op'], map: JsonValue | undefined): (readonly [string, JsonValue])[] {
  if (op === 'first') return [['', null]]
  if (op === 'unset') return unsetKeys(map).map(key => [key, null])
  return map !== undefined && isJsonObject(map) ? Object.entries(map as JsonObject) : []
}

/** One write per job, op, key and subject. */
export function decisiveOf<Write extends ImportedWrite>(
  writes: readonly Write[],
  subjectOf: (write: Write) => string,
): Write[] {
  const decisive = new Map<string, Write>()
  for (const write of writes) {
    const name = JSON.stringify([write.importJobId, write.op, write.key, subjectOf(write)])
    const known = decisive.get(name)
    if (known === undefined || isLater(write, known) === isDecidedByLast(write)) decisive.set(name, write)
  }
  return [...decisive.values()]
}

function isDecidedByLast({ op }: ImportedWrite): boolean {
  return op === 'set' || op === 'unset'
}
