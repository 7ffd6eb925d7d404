// Watches the records of a job for the fields and events that a mapping names.
// Source: docs/wire/import.md §1.9, §2.7.

import { isRawNumber, type JsonObject, type JsonValue } from '#core/json.ts'
import { isEmptyValue } from '#importer/records/record-fields.ts'
import type { UnseenNames, WatchedName } from '#importer/records/unseen-names.ts'
import { findValueAtPath, parseObjectMembers } from './field-path.ts'
import type { FieldSelection, Mapping } from './mapping-schema.ts'

/** @returns a function that looks at a record. Calling it costs nothing once all names have been seen. */
export function trackMappingUse(mapping: Mapping, names: UnseenNames): (record: JsonObject) => void {
  const fields = names.watchFields(listMappedFields(mapping))
  const events = names.watchEvents(Object.keys(mapping.event_names ?? {}))
  const eventPaths = [mapping.event ?? []].flat()
  return record => {
    if (events.isWaiting) {
      const value = eventPaths.map(path => findValueAtPath(record, path)).find(each => !isEmptyValue(each))
      const name = value === undefined ? mapping.event_constant : readText(value)
      if (name !== undefined) events.see(name)
    }
    if (!fields.isWaiting) return
    const unseen = fields.seeFields(({ paths, isOwn }) =>
      paths.some(path => (isOwn === true ? Object.hasOwn(record, path) : findValueAtPath(record, path) !== undefined)),
    )
    for (const key of Object.keys(record)) fields.addKnown(key)
    for (const { paths } of unseen)
      for (const name of paths.flatMap(path => listSiblings(record, path))) fields.addKnown(name)
  }
}

/** The names that the last step of a path could have had: suggestions for what may have been meant. */
function listSiblings(record: JsonObject, path: string): string[] {
  const dot = path.lastIndexOf('.')
  if (dot < 0) return []
  const parent = path.slice(0, dot)
  return Object.keys(parseObjectMembers(findValueAtPath(record, parent)) ?? {}).map(key => `${parent}.${key}`)
}

function readText(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : isRawNumber(value) ? value.rawJSON : JSON.stringify(value)
}

/** All fields that the mapping reads, each with the mapping key that names the field. */
export function listMappedFields(mapping: Mapping): readonly WatchedName[] {
  const { event, distinct_id, timestamp, uuid, anon_id, types = {}, filters = [], spread = [], omit = [] } = mapping
  const single = { event, distinct_id, anon_id, timestamp, uuid }
  return [
    ...Object.entries(single).flatMap(([key, paths]) => toWatchedFields(key, [paths ?? []].flat())),
    ...(['properties', 'set', 'set_once', 'groups'] as const).flatMap(key => listSelectedFields(key, mapping[key])),
    ...toWatchedFields('types', Object.keys(types)),
    ...toWatchedFields('filters', Array.isArray(filters) ? filters.map(({ field }) => field) : Object.keys(filters)),
    ...toWatchedFields('rename', listRenamedFields(mapping)).map(each => ({
      ...each,
      paths: findPossiblePaths(each.name, mapping),
    })),
    ...[...toWatchedFields('spread', spread), ...toWatchedFields('omit', omit)].map(each => ({ ...each, isOwn: true })),
  ]
}

function toWatchedFields(key: string, paths: readonly string[]): WatchedName[] {
  return paths.map(path => ({ kind: 'field', key, name: path, paths: [path] }))
}

function listSelectedFields(key: string, selection: FieldSelection = []): WatchedName[] {
  if (typeof selection === 'string') return toWatchedFields(key, [selection])
  if (Array.isArray(selection)) return toWatchedFields(key, selection)
  return Object.entries(selection).flatMap(([name, path]) => toWatchedFields(`${key}.${name}`, [path]))
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
