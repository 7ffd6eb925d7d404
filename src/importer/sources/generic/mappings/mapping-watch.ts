// Watches the records of a job for the fields and events that a mapping names.
// Source: docs/wire/import.md §1.9, §2.7.

import { isRawNumber, type JsonObject, type JsonValue } from '#core/json.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'
import {
  EventNameWatch,
  KnownNames,
  type NameWatch,
  type UnseenName,
  type WatchState,
} from '#importer/records/unseen-names.ts'
import { findValue, parseMembers } from './field-path.ts'
import type { FieldSelection, Mapping } from './mapping-schema.ts'

interface WaitingField {
  readonly key: string
  readonly name: string
  /** The field is seen when a record has any of these. */
  readonly paths: readonly string[]
  /** Whether it must be a field of the record itself, not of a nested object. */
  readonly isOwn: boolean
}

export class MappingWatch implements NameWatch {
  #waiting: readonly WaitingField[]
  #hasLooked = false
  readonly #eventPaths: readonly string[]
  readonly #events: EventNameWatch
  #known = new KnownNames()

  /** @param columns of the files, including those that no row fills. */
  constructor(mapping: Mapping, columns: ReadonlySet<string>) {
    this.#waiting = listFields(mapping).filter(({ paths }) => !paths.some(path => columns.has(path)))
    this.#eventPaths = [mapping.event ?? []].flat()
    this.#events = new EventNameWatch(Object.keys(mapping.event_names ?? {}))
    for (const column of columns) this.#known.add(column)
  }

  state(): readonly WatchState[] {
    const waiting = this.#waiting.map(formatKey)
    return [{ hasSeen: this.#hasLooked, waiting, known: this.#known.all() }, ...this.#events.state()]
  }

  restore([fields, ...events]: readonly WatchState[]): void {
    const waiting = new Set(fields!.waiting)
    this.#hasLooked = fields!.hasSeen
    this.#waiting = this.#waiting.filter(field => waiting.has(formatKey(field)))
    this.#known = new KnownNames(fields!.known)
    this.#events.restore(events)
  }

  /** Costs nothing when all names have been seen. */
  look(record: JsonObject, constantName: string | undefined): void {
    this.#hasLooked = true
    if (this.#events.isWaiting) {
      const name = this.#nameOf(record) ?? constantName
      if (name !== undefined) this.#events.see(name)
    }
    if (this.#waiting.length === 0) return
    if (this.#waiting.some(field => hasField(record, field)))
      this.#waiting = this.#waiting.filter(field => !hasField(record, field))
    for (const key of Object.keys(record)) this.#known.add(key)
    for (const { paths } of this.#waiting) for (const path of paths) this.#addSiblings(record, path)
  }

  unseen(): readonly UnseenName[] {
    // Without any readable record, no name is known to be wrong.
    if (!this.#hasLooked) return []
    const fields = this.#waiting.map(({ key, name, paths, isOwn }) => {
      const near = paths.map(path => this.#known.near(path)).find(each => each !== null) ?? null
      // A nested field has exactly this name, but the key only accepts a field of the record itself.
      if (isOwn && near === name) return { kind: 'field' as const, name, key, near: null, isOwn: true as const }
      return { kind: 'field' as const, name, key, near }
    })
    return [...fields, ...this.#events.unseen()]
  }

  #nameOf(record: JsonObject): string | undefined {
    for (const path of this.#eventPaths) {
      const value = findValue(record, path)
      if (!isEmptyValue(value)) return readText(value)
    }
    return undefined
  }

  /** Records the names next to the last step of a path, any of which may have been meant. */
  #addSiblings(record: JsonObject, path: string): void {
    const dot = path.lastIndexOf('.')
    if (dot < 0) return
    const parent = path.slice(0, dot)
    for (const key of Object.keys(parseMembers(findValue(record, parent)) ?? {})) this.#known.add(`${parent}.${key}`)
  }
}

function formatKey({ key, name }: WaitingField): string {
  return `${key}\n${name}`
}

function hasField(record: JsonObject, { paths, isOwn }: WaitingField): boolean {
  return paths.some(path => (isOwn ? Object.hasOwn(record, path) : findValue(record, path) !== undefined))
}

function readText(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : isRawNumber(value) ? value.rawJSON : JSON.stringify(value)
}

/** All fields that the mapping reads, by its keys. */
function listFields(mapping: Mapping): readonly WaitingField[] {
  const { event, distinct_id, timestamp, uuid, anon_id, spread = [], omit = [] } = mapping
  const single = Object.entries({ event, distinct_id, anon_id, timestamp, uuid })
  const selections = (['properties', 'set', 'set_once', 'groups'] as const).flatMap(key =>
    listSelectedFields(key, mapping[key]),
  )
  const { filters = [] } = mapping
  const filtered = Array.isArray(filters) ? filters.map(({ field }) => field) : Object.keys(filters)
  return [
    ...single.flatMap(([key, paths]) => [paths ?? []].flat().map(path => toWaitingField(key, path))),
    ...selections,
    ...Object.keys(mapping.types ?? {}).map(path => toWaitingField('types', path)),
    ...filtered.map(path => toWaitingField('filters', path)),
    ...listRenamedFields(mapping).map(name => ({
      ...toWaitingField('rename', name),
      paths: findPossiblePaths(name, mapping),
    })),
    ...[...spread].map(name => ({ ...toWaitingField('spread', name), isOwn: true })),
    ...[...omit].map(name => ({ ...toWaitingField('omit', name), isOwn: true })),
  ]
}

function toWaitingField(key: string, path: string): WaitingField {
  return { key, name: path, paths: [path], isOwn: false }
}

function listSelectedFields(key: string, selection: FieldSelection | undefined): readonly WaitingField[] {
  if (selection === undefined) return []
  if (typeof selection === 'string') return [toWaitingField(key, selection)]
  if (Array.isArray(selection)) return selection.map(path => toWaitingField(key, path))
  return Object.entries(selection).map(([name, path]) => toWaitingField(`${key}.${name}`, path))
}

function listRenamedFields({ rename, event_names = {} }: Mapping): readonly string[] {
  const ofEvents = Object.values(event_names).flatMap(each =>
    typeof each === 'object' && 'event' in each ? Object.keys(each.rename ?? {}) : [],
  )
  return [...new Set([...Object.keys(rename ?? {}), ...ofEvents])]
}

/** `rename` applies to property names, so the field may be in the record, in a spread object or in `properties`. */
function findPossiblePaths(name: string, { properties, spread = [] }: Mapping): readonly string[] {
  const inside = typeof properties === 'string' ? [properties] : spread
  const given = typeof properties === 'object' && !Array.isArray(properties) ? properties[name] : undefined
  return [name, ...inside.map(path => `${path}.${name}`), ...(given === undefined ? [] : [given])]
}
