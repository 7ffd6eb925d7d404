// A model of persons and groups, as simple as the specification and sharing no code with the implementation: no chunks,
// working copies, overrides or crashes. Each event in turn changes one set of maps; an event's person is looked up at
// the end by its distinct id.
// Source: docs/wire/ingestion.md 2.7, 6.2–6.7; docs/wire/import.md 3.4, 3.5.

import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type Bag, type ImportWrite, type Json, ModelProperties } from './property-model.ts'

export interface ModelEvent {
  readonly name: string
  readonly distinctId: string
  readonly properties: Bag
  /** The top-level map. */
  readonly set: Bag | null
  readonly timestampMs: number
  readonly uuid: string
  readonly lane: string
  /** Person processing was switched off at the edge. */
  readonly forcedOff: boolean
}

interface ModelPerson {
  uuid: string
  readonly properties: ModelProperties
  createdAtMs: number
  isIdentified: boolean
  version: number
}

export interface ModelRow {
  readonly uuid: string
  readonly distinctId: string
  readonly mode: string
  /** Null for the person that finally has the distinct id. */
  readonly personId: string | null
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
  readonly groups = new Map<string, { properties: ModelProperties; version: number; createdAtMs: number }>()
  readonly groupTypes: string[] = []
  /** By the identity that copies of an event share; an import's copy does not replace a live one. */
  readonly rows = new Map<string, ModelRow & { readonly isImported: boolean }>()
  readonly warnings: string[] = []
  /** The notes in the import's report. */
  readonly importWarnings: string[] = []
  readonly #personless = new Set<string>()
  readonly #isOptedOut: boolean
  #isTypeRefused = false

  constructor(options: { readonly isOptedOut?: boolean } = {}) {
    this.#isOptedOut = options.isOptedOut === true
  }

  apply(event: ModelEvent): void {
    const { name, distinctId, properties } = event
    const wish = properties.$process_person_profile
    const isPersonless = !event.forcedOff && (wish === false || this.#isOptedOut)
    const warn = (type: string) => this.#warn(event, type)
    if (merging.includes(name)) {
      const isNoId = (id: Json) => id !== undefined && id !== null && typeof id !== 'string'
      if (isNoId(properties.$anon_distinct_id) || isNoId(properties.alias)) {
        warn(isNoId(properties.$anon_distinct_id) ? 'invalid_anon_distinct_id' : 'invalid_alias')
        return
      }
      if (isPersonless) {
        warn('invalid_event_when_process_person_profile_is_false')
        return
      }
    }
    const describesGroup = describing.includes(name)
    const type = properties.$group_type
    const key = properties.$group_key
    const hasGroup = describesGroup && typeof type === 'string' && type !== '' && Boolean(key)
    const groupKey = typeof key === 'object' ? JSON.stringify(key) : String(key)
    if (describesGroup && key && groupKey.length > 400) {
      warn('group_key_too_long')
      return
    }
    if (event.forcedOff) {
      const nobody = { personId: uuidOf(distinctId), personCreatedAtMs: 5_000, personProperties: {} }
      this.#store(event, { mode: 'propertyless', groups: noGroups, ...nobody })
      return
    }
    if (isPersonless) {
      this.#storePersonless(event)
      return
    }
    if (wish !== undefined && typeof wish !== 'boolean') warn('invalid_process_person_profile')
    if (event.lane === 'ai') {
      this.#storeReading(event)
      return
    }
    const maps = describesGroup ? noMaps : mapsOf(event)
    const person = this.#personAfter(event, maps)
    if (hasGroup) this.#describeGroup(event, String(type), groupKey)
    this.#store(event, {
      mode: 'full',
      personId: null,
      groups: this.#groupColumns(properties.$groups),
      personCreatedAtMs: person.createdAtMs,
      personProperties: { ...person.properties.shown(), ...maps.set },
    })
    this.#warnOfRefusedType(event)
  }

  /** The current person of an event with this distinct id. */
  personIdOf(distinctId: string): string {
    return this.ids.get(distinctId)?.person.uuid ?? uuidOf(distinctId)
  }

  persons(): ReadonlySet<ModelPerson> {
    return new Set([...this.ids.values()].map(({ person }) => person))
  }

  #warn({ lane }: ModelEvent, type: string): void {
    if (lane === 'historical') this.importWarnings.push(type)
    else this.warnings.push(type)
  }

  #store(event: ModelEvent, row: Omit<ModelRow, 'uuid' | 'distinctId'>): void {
    const { uuid, name, distinctId, timestampMs } = event
    const key = JSON.stringify([uuid, name, distinctId, new Date(timestampMs).toISOString().slice(0, 10)])
    const isImported = event.lane === 'historical'
    if (isImported && this.rows.get(key)?.isImported === false) return
    this.rows.set(key, { uuid, distinctId, ...row, isImported })
  }

  #storePersonless(event: ModelEvent): void {
    const { distinctId, timestampMs } = event
    const person = this.ids.get(distinctId)?.person
    if (person === undefined) this.#personless.add(distinctId)
    const isOlder = person !== undefined && timestampMs > person.createdAtMs + 60_000
    this.#store(event, {
      mode: isOlder && !this.#isOptedOut ? 'force_upgrade' : 'propertyless',
      personId: null,
      groups: noGroups,
      personCreatedAtMs: person?.createdAtMs ?? 5_000,
      personProperties: {},
    })
  }

  /** An AI event reads its person and writes nothing to it. */
  #storeReading(event: ModelEvent): void {
    const { distinctId, properties } = event
    const person = this.ids.get(distinctId)?.person
    if (person === undefined) this.#personless.add(distinctId)
    this.#store(event, {
      mode: 'full',
      personId: null,
      groups: this.#groupColumns(properties.$groups),
      personCreatedAtMs: person?.createdAtMs ?? 5_000,
      personProperties: person?.properties.shown() ?? {},
    })
    this.#warnOfRefusedType(event)
  }

  #personAfter(event: ModelEvent, maps: Maps): ModelPerson {
    const survivorId = event.distinctId
    const otherId = linkedIdOf(event)
    const survivor = this.ids.get(survivorId)
    if (otherId === null || otherId === survivorId) return this.#ordinary(event, maps)
    if (isIllegal(survivorId) || isIllegal(otherId)) {
      this.#warn(event, 'cannot_merge_with_illegal_distinct_id')
      return this.#ordinary(event, maps)
    }
    const other = this.ids.get(otherId)
    if (survivor === undefined && other === undefined) {
      const survivorWas = this.#personless.has(survivorId)
      const otherWas = this.#personless.has(otherId)
      const person = aPersonOf(otherWas && !survivorWas ? otherId : survivorId, event, maps)
      person.isIdentified = true
      this.ids.set(survivorId, { person, version: 0 })
      this.ids.set(otherId, { person, version: survivorWas && otherWas ? 1 : 0 })
      return person
    }
    if (survivor === undefined || other === undefined) {
      const { person } = (survivor ?? other)!
      const newId = survivor === undefined ? survivorId : otherId
      this.ids.set(newId, { person, version: this.#personless.has(newId) ? 1 : 0 })
      return written(person, event, maps, { identifies: true })
    }
    if (survivor.person === other.person) return written(survivor.person, event, maps, { identifies: true })
    if (other.person.isIdentified && event.name !== '$merge_dangerously') {
      this.#warn(event, 'cannot_merge_already_identified')
      return written(survivor.person, event, maps, { identifies: true })
    }
    const version = Math.max(survivor.person.version, other.person.version) + 1
    this.#merge(survivor.person, other.person)
    written(survivor.person, event, maps, { identifies: true })
    survivor.person.version = version
    return survivor.person
  }

  #ordinary(event: ModelEvent, maps: Maps): ModelPerson {
    const known = this.ids.get(event.distinctId)
    if (known !== undefined) return written(known.person, event, maps, { identifies: false })
    const person = aPersonOf(event.distinctId, event, maps)
    this.ids.set(event.distinctId, { person, version: 0 })
    return person
  }

  #merge(survivor: ModelPerson, other: ModelPerson): void {
    survivor.properties.absorb(other.properties)
    survivor.createdAtMs = Math.min(survivor.createdAtMs, other.createdAtMs)
    for (const [id, { person, version }] of this.ids)
      if (person === other) this.ids.set(id, { person: survivor, version: version + 1 })
  }

  #describeGroup(event: ModelEvent, type: string, key: string): void {
    const sent = event.properties.$group_set ?? {}
    if (!isObject(sent)) {
      this.#warn(event, 'invalid_group_set')
      return
    }
    const index = this.#typeIndex(type)
    if (index === undefined) return
    const { timestampMs, uuid } = event
    const known = this.groups.get(`${index} ${key}`)
    const group = known ?? { properties: new ModelProperties(), version: 0, createdAtMs: timestampMs }
    let isChanged = known === undefined
    for (const [name, value] of Object.entries(sent))
      if (isImport(event)) {
        isChanged = group.properties.addImport(name, { kind: 'set', timestampMs, uuid, value }) || isChanged
      } else if (!isDeepStrictEqual(group.properties.value(name), value) || group.properties.isMarked(name)) {
        group.properties.setLive(name, value, false)
        isChanged = true
      }
    if (isImport(event) && timestampMs < group.createdAtMs) {
      group.createdAtMs = timestampMs
      isChanged = true
    }
    if (isChanged) group.version += 1
    this.groups.set(`${index} ${key}`, group)
  }

  #typeIndex(type: string): number | undefined {
    if (!this.groupTypes.includes(type) && this.groupTypes.length < 5) this.groupTypes.push(type)
    const index = this.groupTypes.indexOf(type)
    if (index < 0) this.#isTypeRefused = true
    return index < 0 ? undefined : index
  }

  /** Warns at most once per event, however many of its group types are refused. */
  #warnOfRefusedType(event: ModelEvent): void {
    if (this.#isTypeRefused) this.#warn(event, 'group_type_refused')
    this.#isTypeRefused = false
  }

  #groupColumns(groups: Json): readonly string[] {
    const columns = [...noGroups]
    if (!isObject(groups)) return columns
    for (const [type, key] of Object.entries(groups)) {
      const index = this.#typeIndex(type)
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

const noGroups = ['', '', '', '', '']
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

/** An exception sets $set and $set_once on the event, and on the person only when it creates one. */
function changesPersons({ name }: ModelEvent): boolean {
  return name !== '$exception'
}

function isImport({ lane }: ModelEvent): boolean {
  return lane === 'historical'
}

function aPersonOf(creatorId: string, event: ModelEvent, maps: Maps): ModelPerson {
  const { set, setOnce } = maps
  const properties = new ModelProperties()
  if (isImport(event)) writeImport(properties, event, maps)
  else {
    for (const [key, value] of Object.entries({ ...setOnce, ...set })) properties.setLive(key, value, !(key in set))
    properties.setLive('$creator_event_uuid', event.uuid, false)
  }
  return { uuid: uuidOf(creatorId), properties, createdAtMs: event.timestampMs, isIdentified: false, version: 0 }
}

function written(person: ModelPerson, event: ModelEvent, maps: Maps, link: { identifies: boolean }): ModelPerson {
  let isChanged = changesPersons(event) && update(person.properties, event, maps)
  if (link.identifies && !person.isIdentified) {
    person.isIdentified = true
    isChanged = true
  }
  if (isImport(event) && event.timestampMs < person.createdAtMs) {
    person.createdAtMs = event.timestampMs
    isChanged = true
  }
  if (isChanged) person.version += 1
  return person
}

function writeImport(properties: ModelProperties, event: ModelEvent, { set, setOnce, unset }: Maps): boolean {
  const { timestampMs, uuid } = event
  let isChanged = false
  const add = (key: string, write: Pick<ImportWrite, 'kind' | 'value'>) => {
    isChanged = properties.addImport(key, { timestampMs, uuid, ...write }) || isChanged
  }
  for (const [key, value] of Object.entries({ ...setOnce, $creator_event_uuid: uuid }))
    add(key, { kind: 'once', value })
  for (const [key, value] of Object.entries(set)) add(key, { kind: 'set', value })
  for (const key of unset) add(key, { kind: 'unset' })
  return isChanged
}

/** @returns whether anything was written. */
function update(properties: ModelProperties, event: ModelEvent, maps: Maps): boolean {
  if (isImport(event)) return writeImport(properties, event, maps)
  const { set, setOnce, unset } = maps
  const onceKeys = Object.keys(setOnce).filter(key => {
    if (key in set) return false
    return !properties.has(key) || (properties.value(key) === null && setOnce[key] !== null)
  })
  const setKeys = Object.keys(set).filter(key => {
    const value = set[key]
    const isPlain = typeof value !== 'object' || value === null
    const isSame = properties.has(key) && properties.value(key) === value && isPlain
    return !isSame || properties.isMarked(key)
  })
  const unsetNames = unset.filter(key => properties.has(key))
  if (onceKeys.length + setKeys.length + unsetNames.length === 0) return false
  const isAboutThePerson = merging.includes(event.name) || event.name === '$set'
  const isLasting = (key: string) => !filtered.includes(key) || !properties.has(key)
  const isWorthIt =
    unsetNames.length > 0 || onceKeys.some(isLasting) || setKeys.some(key => isLasting(key) || properties.isMarked(key))
  if (!isAboutThePerson && !isWorthIt) return false
  for (const key of onceKeys) properties.setLive(key, setOnce[key], true)
  for (const key of setKeys) properties.setLive(key, set[key], false)
  for (const key of unsetNames) properties.remove(key)
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
