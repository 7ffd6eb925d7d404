// The part of a person or group that property updates change: values and the marks of who wrote them.
// Values in, values out: an update answers a new profile, or null when there is nothing to write.

import { isRawNumber, type JsonObject, type JsonValue, type PropertyBag, setOwn } from '../json.ts'
import type { PropertyMark, PropertyMarks } from './person.ts'

export interface Profile {
  readonly properties: PropertyBag
  readonly marks: PropertyMarks
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

/** Collects changes to a profile and copies it only when there are some. */
export class ProfileDraft {
  properties: PropertyBag
  marks: { [key: string]: PropertyMark }
  private propertiesCopied = false
  private marksCopied = false
  constructor(profile: Profile) {
    this.properties = profile.properties
    this.marks = profile.marks as { [key: string]: PropertyMark }
  }
  get changed(): boolean {
    return this.propertiesCopied || this.marksCopied
  }
  mark(key: string): PropertyMark | undefined {
    return Object.hasOwn(this.marks, key) ? this.marks[key] : undefined
  }
  setProperty(key: string, value: JsonValue): void {
    if (!this.propertiesCopied) this.properties = { ...this.properties }
    this.propertiesCopied = true
    setOwn(this.properties, key, value)
  }
  removeProperty(key: string): void {
    if (!Object.hasOwn(this.properties, key)) return
    if (!this.propertiesCopied) this.properties = { ...this.properties }
    this.propertiesCopied = true
    delete this.properties[key]
  }
  setMark(key: string, mark: PropertyMark): void {
    if (!this.marksCopied) this.marks = { ...this.marks }
    this.marksCopied = true
    setOwn(this.marks as unknown as JsonObject, key, mark as unknown as JsonValue)
  }
  removeMark(key: string): void {
    if (!Object.hasOwn(this.marks, key)) return
    if (!this.marksCopied) this.marks = { ...this.marks }
    this.marksCopied = true
    delete this.marks[key]
  }
  result(): Profile | null {
    return this.changed ? { properties: this.properties, marks: this.marks } : null
  }
}

/** The comparison that decides whether a `$set` changes anything: lists and objects always count as different. */
export function isSameValue(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  return a === b || (isRawNumber(a) && isRawNumber(b) && a.rawJSON === b.rawJSON)
}
