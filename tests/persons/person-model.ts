// Persons and groups written down a second time, as plainly as the specification says it and sharing no code with what
// it is compared with: no chunks, no working copies, no overrides. One live event after the other changes one set of
// maps; whose an event is, is looked up at the end, by its distinct id.
// Source: docs/wire/ingestion.md 6.2–6.7; docs/wire/import.md 3.4 R1, R2 (what a live `$set_once` leaves behind).

import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

type Json = unknown
type Bag = Record<string, Json>

export interface ModelEvent {
  readonly name: string
  readonly distinctId: string
  readonly properties: Bag
  /** The top-level map. */
  readonly set: Bag | null
  readonly timestampMs: number
  readonly uuid: string
}

interface ModelPerson {
  uuid: string
  properties: Map<string, Json>
  /** Keys that a `$set_once` wrote and no `$set` since. */
  once: Set<string>
  createdAtMs: number
  isIdentified: boolean
  version: number
}

export interface ModelRow {
  readonly uuid: string
  readonly distinctId: string
  readonly mode: string
  readonly groups: readonly string[]
  readonly personCreatedAtMs: number
  readonly personProperties: Bag
}

const filtered = ['$browser']
const merging = ['$identify', '$create_alias', '$merge_dangerously']
const describing = ['$groupidentify', '$group_identify']
const illegalInAnyCase = 'anonymous guest distinctid distinct_id id not_authenticated email undefined true false'.split(
  ' ',
)
const illegalAsWritten = ['[object Object]', 'NaN', 'None', 'none', 'null', '0', 'undefined']

export class PersonModel {
  readonly ids = new Map<string, { person: ModelPerson; version: number }>()
  readonly groups = new Map<string, { properties: Bag; version: number; createdAtMs: number }>()
  readonly groupTypes: string[] = []
  readonly rows: ModelRow[] = []
  readonly warnings: string[] = []
  private readonly personless = new Set<string>()

  apply(event: ModelEvent): void {
    const { name, distinctId, properties } = event
    const wish = properties.$process_person_profile
    const isPersonless = wish === false
    if (merging.includes(name)) {
      const isNoId = (id: Json) => id !== undefined && id !== null && typeof id !== 'string'
      if (isNoId(properties.$anon_distinct_id) || isNoId(properties.alias)) {
        this.warnings.push(isNoId(properties.$anon_distinct_id) ? 'invalid_anon_distinct_id' : 'invalid_alias')
        return
      }
      if (isPersonless) {
        this.warnings.push('invalid_event_when_process_person_profile_is_false')
        return
      }
    }
    const describesGroup = describing.includes(name)
    const type = properties.$group_type
    const key = properties.$group_key
    const hasGroup = describesGroup && typeof type === 'string' && type !== '' && Boolean(key)
    const groupKey = typeof key === 'object' ? JSON.stringify(key) : String(key)
    if (describesGroup && key && groupKey.length > 400) {
      this.warnings.push('group_key_too_long')
      return
    }
    if (wish !== undefined && typeof wish !== 'boolean') this.warnings.push('invalid_process_person_profile')
    if (isPersonless) {
      this.storePersonless(event)
      return
    }
    const maps = describesGroup ? noMaps : mapsOf(event)
    const person = this.personAfter(event, maps)
    if (hasGroup) this.describeGroup(String(type), groupKey, properties.$group_set, event.timestampMs)
    this.rows.push({
      uuid: event.uuid,
      distinctId,
      mode: 'full',
      groups: this.groupColumns(properties.$groups),
      personCreatedAtMs: person.createdAtMs,
      personProperties: { ...Object.fromEntries(person.properties), ...maps.set },
    })
  }

  /** Whose an event with this distinct id is by now. */
  personIdOf(distinctId: string): string {
    return this.ids.get(distinctId)?.person.uuid ?? uuidOf(distinctId)
  }

  persons(): ReadonlySet<ModelPerson> {
    return new Set([...this.ids.values()].map(({ person }) => person))
  }

  private storePersonless({ uuid, distinctId, timestampMs }: ModelEvent): void {
    const person = this.ids.get(distinctId)?.person
    if (person === undefined) this.personless.add(distinctId)
    this.rows.push({
      uuid,
      distinctId,
      mode: person !== undefined && timestampMs > person.createdAtMs + 60_000 ? 'force_upgrade' : 'propertyless',
      groups: ['', '', '', '', ''],
      personCreatedAtMs: person?.createdAtMs ?? 5_000,
      personProperties: {},
    })
  }

  private personAfter(event: ModelEvent, maps: Maps): ModelPerson {
    const survivorId = event.distinctId
    const otherId = linkedIdOf(event)
    const survivor = this.ids.get(survivorId)
    if (otherId === null || otherId === survivorId) return this.ordinary(event, maps)
    if (isIllegal(survivorId) || isIllegal(otherId)) {
      this.warnings.push('cannot_merge_with_illegal_distinct_id')
      return this.ordinary(event, maps)
    }
    const other = this.ids.get(otherId)
    if (survivor === undefined && other === undefined) {
      const survivorWas = this.personless.has(survivorId)
      const otherWas = this.personless.has(otherId)
      const person = aPersonOf(otherWas && !survivorWas ? otherId : survivorId, event, maps)
      person.isIdentified = true
      this.ids.set(survivorId, { person, version: 0 })
      this.ids.set(otherId, { person, version: survivorWas && otherWas ? 1 : 0 })
      return person
    }
    if (survivor === undefined || other === undefined) {
      const { person } = (survivor ?? other)!
      const newId = survivor === undefined ? survivorId : otherId
      this.ids.set(newId, { person, version: this.personless.has(newId) ? 1 : 0 })
      return written(person, event, maps, { identifies: true })
    }
    if (survivor.person === other.person) return written(survivor.person, event, maps, { identifies: true })
    if (other.person.isIdentified && event.name !== '$merge_dangerously') {
      this.warnings.push('cannot_merge_already_identified')
      return written(survivor.person, event, maps, { identifies: true })
    }
    const version = Math.max(survivor.person.version, other.person.version) + 1
    this.merge(survivor.person, other.person)
    written(survivor.person, event, maps, { identifies: true })
    survivor.person.version = version
    return survivor.person
  }

  private ordinary(event: ModelEvent, maps: Maps): ModelPerson {
    const known = this.ids.get(event.distinctId)
    if (known !== undefined) return written(known.person, event, maps, { identifies: false })
    const person = aPersonOf(event.distinctId, event, maps)
    this.ids.set(event.distinctId, { person, version: 0 })
    return person
  }

  private merge(survivor: ModelPerson, other: ModelPerson): void {
    for (const [key, value] of other.properties) {
      if (survivor.properties.has(key)) continue
      survivor.properties.set(key, value)
      if (other.once.has(key)) survivor.once.add(key)
    }
    survivor.createdAtMs = Math.min(survivor.createdAtMs, other.createdAtMs)
    for (const [id, { person, version }] of this.ids)
      if (person === other) this.ids.set(id, { person: survivor, version: version + 1 })
  }

  private describeGroup(type: string, key: string, set: Json, timestampMs: number): void {
    if (set !== undefined && set !== null && !isObject(set)) {
      this.warnings.push('invalid_group_set')
      return
    }
    const index = this.typeIndex(type)
    if (index === undefined) return
    const group = this.groups.get(`${index} ${key}`)
    const properties = { ...group?.properties, ...(set as Bag | null) }
    if (group === undefined) this.groups.set(`${index} ${key}`, { properties, version: 1, createdAtMs: timestampMs })
    else if (!isDeepStrictEqual(group.properties, properties)) {
      group.properties = properties
      group.version += 1
    }
  }

  private typeIndex(type: string): number | undefined {
    if (!this.groupTypes.includes(type) && this.groupTypes.length < 5) this.groupTypes.push(type)
    const index = this.groupTypes.indexOf(type)
    return index < 0 ? undefined : index
  }

  private groupColumns(groups: Json): readonly string[] {
    const columns = ['', '', '', '', '']
    if (!isObject(groups)) return columns
    for (const [type, key] of Object.entries(groups)) {
      const index = this.typeIndex(type)
      if (index !== undefined) columns[index] = textOf(key)
    }
    return columns
  }
}

interface Maps {
  readonly set: Bag
  readonly setOnce: Bag
  readonly unset: readonly string[]
}

const noMaps: Maps = { set: {}, setOnce: {}, unset: [] }

function mapsOf({ properties, set }: ModelEvent): Maps {
  const inner = isObject(properties.$set) ? properties.$set : {}
  const once = isObject(properties.$set_once) ? properties.$set_once : {}
  const page = '$browser' in properties ? { $browser: properties.$browser } : {}
  const first = '$browser' in properties ? { $initial_browser: properties.$browser } : {}
  const unset = properties.$unset ?? []
  return {
    set: { ...page, ...inner, ...set },
    setOnce: { ...first, ...once },
    unset: Array.isArray(unset) ? unset : Object.keys(unset as Bag),
  }
}

/** An exception shows its maps on the event and does nothing to the person. */
function changesPersons({ name }: ModelEvent): boolean {
  return name !== '$exception'
}

function aPersonOf(creatorId: string, event: ModelEvent, maps: Maps): ModelPerson {
  const { set, setOnce } = changesPersons(event) ? maps : noMaps
  return {
    uuid: uuidOf(creatorId),
    properties: new Map(Object.entries({ ...setOnce, ...set, $creator_event_uuid: event.uuid })),
    once: new Set(Object.keys(setOnce).filter(key => !(key in set))),
    createdAtMs: event.timestampMs,
    isIdentified: false,
    version: 0,
  }
}

function written(person: ModelPerson, event: ModelEvent, maps: Maps, link: { identifies: boolean }): ModelPerson {
  let isChanged = changesPersons(event) && update(person, event, maps)
  if (link.identifies && !person.isIdentified) {
    person.isIdentified = true
    isChanged = true
  }
  if (isChanged) person.version += 1
  return person
}

/** @returns whether anything is written. */
function update(person: ModelPerson, event: ModelEvent, { set, setOnce, unset }: Maps): boolean {
  const before = new Map(person.properties)
  const onceKeys = Object.keys(setOnce).filter(key => {
    if (key in set) return false
    return !before.has(key) || (before.get(key) === null && setOnce[key] !== null)
  })
  const setKeys = Object.keys(set).filter(key => {
    const isSame = before.has(key) && before.get(key) === set[key] && !isObject(set[key]) && !Array.isArray(set[key])
    return !isSame || person.once.has(key)
  })
  const unsetNames = unset.filter(key => before.has(key))
  const changed = [...onceKeys, ...setKeys, ...unsetNames]
  if (changed.length === 0) return false
  const isAboutThePerson = merging.includes(event.name) || event.name === '$set'
  const isWorthIt = (key: string) => !filtered.includes(key) || !before.has(key) || unsetNames.includes(key)
  if (!isAboutThePerson && !changed.some(isWorthIt)) return false
  for (const key of onceKeys) {
    person.properties.set(key, setOnce[key])
    person.once.add(key)
  }
  for (const key of setKeys) {
    person.properties.set(key, set[key])
    person.once.delete(key)
  }
  for (const key of unsetNames) {
    person.properties.delete(key)
    person.once.delete(key)
  }
  return true
}

function linkedIdOf({ name, properties }: ModelEvent): string | null {
  if (name === '$identify' && '$anon_distinct_id' in properties)
    return properties.$anon_distinct_id === null ? 'null' : String(properties.$anon_distinct_id)
  const names = ['$create_alias', '$merge_dangerously']
  return names.includes(name) && properties.alias ? String(properties.alias) : null
}

function isIllegal(id: string): boolean {
  if (id.trim() === '' || id.includes('\0') || [...id].length > 400) return true
  const variants = (word: string) => [word, `'${word}'`, `"${word}"`]
  return (
    illegalInAnyCase.flatMap(variants).includes(id.toLowerCase()) || illegalAsWritten.flatMap(variants).includes(id)
  )
}

function isObject(value: Json): value is Bag {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOf(value: Json): string {
  if (value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A name-based UUID (version 5) in the namespace of persons, for project 1. */
function uuidOf(distinctId: string): string {
  const namespace = Buffer.from('932979b465c3442484670b66ec27bc22', 'hex')
  const hash = createHash('sha1').update(namespace).update(`1:${distinctId}`).digest().subarray(0, 16)
  hash[6] = (hash[6]! & 0x0f) | 0x50
  hash[8] = (hash[8]! & 0x3f) | 0x80
  return hash.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
