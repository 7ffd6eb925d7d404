// Reads a v0 capture request in one pass that builds only the needed values: its envelope, the fields of its items, and the
// few properties that matter to capture. All other properties are stored as slices of the text, so they are only walked
// over and cost no objects. This takes half the time that `JSON.parse` and a search for the slices would take together, and
// makes a fifth less garbage (docs/decisions/0040-reading-a-batch.md).
//
// An unusual request has no outline and is read by `JSON.parse`: invalid JSON, a field with an unusual type, a repeated
// field. So an outline never decides that something is wrong, and it holds exactly what `JSON.parse` would return.

import { ascii } from '#core/ascii.ts'
import { visitorNames } from '#core/capture/cookieless-event.ts'
import type { JsonMember } from '#core/json-text.ts'
import { type ItemSlices, SliceTable, slice, sliceIndexOf, slicesPerItem } from '../bytes/json-slices.ts'
import {
  appendEndByte,
  KeyTable,
  NotWalkable,
  nestingDepthMax,
  readNextElement,
  skipBlanks,
  skipPlainCharacters,
  skipValue,
  throwNotWalkable,
  walkObject,
} from '../bytes/json-walk.ts'
import type { CapturePayload } from './capture-body.ts'
import type { ListKey, ParsedObject } from './event-fields.ts'

const { quote, openBracket, closeBracket, openBrace, lowerT } = ascii

export interface RequestOutline {
  /** A list of items, or an object; every object has only the fields that are read. */
  readonly root: readonly ParsedObject[] | ParsedObject
  /** The parts of the items under `listKey`, or of the root when `listKey` is null. */
  readonly slices: ItemSlices
  readonly listKey: ListKey | null
}

/** Every field of an item that any file of this folder reads. */
export const itemNames = [
  'event',
  'uuid',
  'messageId',
  'timestamp',
  'offset',
  'properties',
  '$set',
  '$set_once',
  'distinct_id',
  '$distinct_id',
  'token',
  '$token',
  'api_key',
] as const
/** The fields that only the root may have. */
export const envelopeNames = ['batch', 'data', 'historical_migration', 'sent_at', 'sentAt'] as const
export const propertyNames = [
  'token',
  'distinct_id',
  '$distinct_id',
  '$cookieless_mode',
  '$ignore_sent_at',
  'capture_internal',
] as const

type FieldName = (typeof itemNames)[number] | (typeof envelopeNames)[number]
type OutlinedFields = { [Name in FieldName]: unknown }
type VisitorName = (typeof visitorNames)[number]
type PropertyName = (typeof propertyNames)[number]
/** A symbol, because no key that a client sends can be one. */
const visitorMembers = Symbol('visitor members')
type OutlinedProperties = { [Name in PropertyName]?: unknown } & { [visitorMembers]?: readonly JsonMember[] }

const itemKeys = new KeyTable<FieldName>(itemNames)
const rootKeys = new KeyTable<FieldName>([...itemNames, ...envelopeNames])
const propertyKeys = new KeyTable<PropertyName | VisitorName>([...new Set([...propertyNames, ...visitorNames])])
const isRead: ReadonlySet<string> = new Set(propertyNames)
const isOfVisitor: ReadonlySet<string> = new Set(visitorNames)

/** The places of a cookieless event's visitor members in its properties, if its outline has them. */
export function visitorMembersOf(properties: object): readonly JsonMember[] | undefined {
  return (properties as OutlinedProperties)[visitorMembers]
}

/** Gives all objects one shape, which makes reading them faster. */
function createEmptyFields(): OutlinedFields {
  return {
    event: undefined,
    uuid: undefined,
    messageId: undefined,
    timestamp: undefined,
    offset: undefined,
    properties: undefined,
    $set: undefined,
    $set_once: undefined,
    distinct_id: undefined,
    $distinct_id: undefined,
    token: undefined,
    $token: undefined,
    api_key: undefined,
    batch: undefined,
    data: undefined,
    historical_migration: undefined,
    sent_at: undefined,
    sentAt: undefined,
  }
}

const noProperties: OutlinedProperties = Object.freeze({})
const noElements: readonly never[] = Object.freeze([])
/** @returns null for a request that `JSON.parse` has to read, or that has more than `itemCountMax` items. */
export function readRequestOutline(payload: CapturePayload, itemCountMax: number): RequestOutline | null {
  try {
    return new OutlineReader(payload, itemCountMax).read()
  } catch (error) {
    if (error instanceof NotWalkable) return null
    throw error
  }
}

class OutlineReader {
  readonly #payload: CapturePayload
  readonly #itemCountMax: number
  readonly #json: Uint8Array
  /** The offset after the part that was read last. */
  #at = 0
  #listKey: ListKey | null = null
  #slicesOfList: ItemSlices | null = null
  /** Four entries for each known key of these properties: the key, its start, the start of its value, the end of its value. */
  readonly #found: (PropertyName | VisitorName | number)[] = []

  constructor(payload: CapturePayload, itemCountMax: number) {
    this.#payload = payload
    this.#itemCountMax = itemCountMax
    this.#json = appendEndByte(payload.bytes)
  }

  read(): RequestOutline {
    const json = this.#json
    const start = skipBlanks(json, 0)
    const slicesOfRoot = new Int32Array(slicesPerItem)
    const root = json[start] === openBracket ? this.#items(start) : this.#object(start, rootKeys, slicesOfRoot, 0)
    if (skipBlanks(json, this.#at) !== this.#payload.bytes.length) throwNotWalkable()
    return { root, slices: this.#slicesOfList ?? slicesOfRoot, listKey: this.#listKey }
  }

  #items(start: number): OutlinedFields[] {
    const json = this.#json
    const items: OutlinedFields[] = []
    const table = new SliceTable(this.#payload.bytes.length, this.#itemCountMax)
    let at = skipBlanks(json, start + 1)
    while (json[at] !== closeBracket) {
      const base = items.length * slicesPerItem
      if (!table.reserve(base)) throwNotWalkable()
      items.push(this.#object(at, itemKeys, table.slices, base))
      at = readNextElement(json, this.#at)
    }
    this.#at = at + 1
    this.#slicesOfList = table.slices
    return items
  }

  /** @param base the index at which the object's slices are stored. */
  #object(start: number, keys: KeyTable<FieldName>, slices: ItemSlices, base: number): OutlinedFields {
    if (this.#json[start] !== openBrace) throwNotWalkable()
    const fields = createEmptyFields()
    const end = walkObject(this.#json, start, nestingDepthMax + 1, keys, (name, valueStart) => {
      // Left to `JSON.parse`: a repeated key, of which only the last counts, is unusual, and may be repeated tens of
      // thousands of times.
      if (fields[name] !== undefined) throwNotWalkable()
      fields[name] = this.#valueOf(name, valueStart)
      const part = sliceIndexOf(name)
      if (part !== null) {
        slices[base + part] = valueStart
        slices[base + part + 1] = this.#at
      }
      return this.#at
    })
    slices[base + slice.item] = start
    slices[base + slice.item + 1] = end
    this.#at = end
    return fields
  }

  #valueOf(name: FieldName, start: number): unknown {
    const json = this.#json
    const first = json[start]
    const isMap = name === 'properties' || name === '$set' || name === '$set_once'
    if (first === openBrace) {
      if (name === 'properties') return this.#properties(start)
      if (!isMap) throwNotWalkable()
      this.#at = skipValue(json, start)
      return noProperties
    }
    if (first === openBracket && isMap) {
      // PHP writes an empty map as `[]`; any other list is not a map.
      const end = skipBlanks(json, start + 1)
      if (json[end] !== closeBracket) throwNotWalkable()
      this.#at = end + 1
      return noElements
    }
    if (first === openBracket) {
      // Left to `JSON.parse`: no client sends a list under both names.
      if ((name !== 'batch' && name !== 'data') || this.#listKey !== null) throwNotWalkable()
      this.#listKey = name
      return this.#items(start)
    }
    return this.#scalar(start)
  }

  #properties(start: number): OutlinedProperties {
    const json = this.#json
    let properties = noProperties
    this.#found.length = 0
    this.#at = walkObject(json, start, nestingDepthMax, propertyKeys, (name, valueStart, keyStart) => {
      if (isRead.has(name)) {
        if (properties === noProperties) properties = {}
        if (properties[name as PropertyName] !== undefined) throwNotWalkable()
        properties[name as PropertyName] = this.#scalar(valueStart)
      } else this.#at = skipValue(json, valueStart, nestingDepthMax - 1)
      this.#found.push(name, keyStart, valueStart, this.#at)
      return this.#at
    })
    // Only in ASCII text are byte offsets also text offsets.
    if (properties.$cookieless_mode === true && this.#payload.ascii)
      properties[visitorMembers] = this.#membersWithin(start)
    return properties
  }

  #membersWithin(start: number): JsonMember[] {
    const found = this.#found
    const members: JsonMember[] = []
    for (let index = 0; index < found.length; index += 4) {
      const [name, keyStart, valueStart, end] = found.slice(index, index + 4) as [VisitorName, number, number, number]
      if (!isOfVisitor.has(name)) continue
      members.push({ name, start: keyStart - start, valueStart: valueStart - start, end: end - start })
    }
    return members
  }

  /** Reads text, a number, a boolean or null. */
  #scalar(start: number): unknown {
    const json = this.#json
    const first = json[start]
    if (first === openBrace || first === openBracket) throwNotWalkable()
    if (first === quote) {
      const plainEnd = skipPlainCharacters(json, start + 1)
      if (json[plainEnd] === quote) {
        this.#at = plainEnd + 1
        return this.#text(start + 1, plainEnd)
      }
    }
    this.#at = skipValue(json, start)
    if (first === lowerT) return true
    return JSON.parse(this.#text(start, this.#at))
  }

  #text(start: number, end: number): string {
    const { ascii, text, bytes } = this.#payload
    return ascii ? text.substring(start, end) : bytes.toString('utf8', start, end)
  }
}
