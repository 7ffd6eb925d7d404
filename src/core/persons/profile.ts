// The part of a person or group that property updates change: its properties and their marks. An update returns a new
// profile, or null if there is nothing to write.

import { isRawNumber, type JsonObject, type JsonValue, type PropertyBag, setOwnValue } from '../json.ts'
import type { PropertyMark, PropertyMarks } from './person.ts'

export interface Profile {
  readonly properties: PropertyBag
  readonly marks: PropertyMarks
  /**
   * True if nothing else refers to `properties`, so that they may be changed in place: copying tens of thousands of keys
   * takes 50 ms.
   */
  readonly ownsProperties?: boolean
}

export interface ChangedProfile extends Profile {
  /**
   * The former values of properties that were changed in place, undefined for a new key; null when the properties were
   * copied instead.
   */
  readonly replaced: ReadonlyMap<string, JsonValue | undefined> | null
}

export interface ProfileUpdate {
  readonly set: JsonObject | null
  readonly setOnce: JsonObject | null
  readonly unset: readonly string[]
  readonly timestampMs: number
  readonly uuid: string
  readonly importJobId: number
}

export const emptyProfile: Profile = { properties: {}, marks: {} }
export const noKeys: readonly string[] = []

/** Collects changes to a profile; copies it only when something changes. */
export class ProfileDraft {
  properties: PropertyBag
  marks: { [key: string]: PropertyMark }
  #propertiesCopied = false
  #marksCopied = false
  #replaced: Map<string, JsonValue | undefined> | null
  constructor(profile: Profile) {
    this.properties = profile.properties
    this.#replaced = profile.ownsProperties === true ? new Map() : null
    this.marks = profile.marks as { [key: string]: PropertyMark }
  }
  get changed(): boolean {
    return this.#propertiesCopied || this.#marksCopied || (this.#replaced !== null && this.#replaced.size > 0)
  }
  mark(key: string): PropertyMark | undefined {
    return Object.hasOwn(this.marks, key) ? this.marks[key] : undefined
  }
  setProperty(key: string, value: JsonValue): void {
    const replaced = this.#replaced
    if (replaced === null) this.#copyProperties()
    else if (!replaced.has(key))
      replaced.set(key, Object.hasOwn(this.properties, key) ? this.properties[key] : undefined)
    setOwnValue(this.properties, key, value)
  }
  removeProperty(key: string): void {
    if (!Object.hasOwn(this.properties, key)) return
    this.#copyProperties()
    delete this.properties[key]
  }
  #copyProperties(): void {
    if (this.#propertiesCopied) return
    this.#propertiesCopied = true
    const { properties } = this
    const replaced = this.#replaced
    this.properties = { ...properties }
    // Undoing a removal in place could not restore the key's position among the other keys, so a copy is made.
    if (replaced !== null) restoreReplacedValues(properties, replaced)
    this.#replaced = null
  }
  setMark(key: string, mark: PropertyMark): void {
    if (!this.#marksCopied) this.marks = { ...this.marks }
    this.#marksCopied = true
    setOwnValue(this.marks as unknown as JsonObject, key, mark as unknown as JsonValue)
  }
  removeMark(key: string): void {
    if (!Object.hasOwn(this.marks, key)) return
    if (!this.#marksCopied) this.marks = { ...this.marks }
    this.#marksCopied = true
    delete this.marks[key]
  }
  result(): ChangedProfile | null {
    const { properties, marks } = this
    const replaced = this.#replaced
    return this.changed ? { properties, marks, replaced } : null
  }
}

/** Puts back the former values of properties that were changed in place. */
export function restoreReplacedValues(
  properties: PropertyBag,
  replaced: ReadonlyMap<string, JsonValue | undefined>,
): void {
  for (const [key, value] of replaced)
    if (value === undefined) delete properties[key]
    else setOwnValue(properties, key, value)
}

/** The comparison that decides whether a `$set` changes anything: lists and objects always count as different. */
export function isSamePropertyValue(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  return a === b || (isRawNumber(a) && isRawNumber(b) && a.rawJSON === b.rawJSON)
}
