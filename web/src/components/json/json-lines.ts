// A JSON value as the lines of a tree. A loop with a stack of its own walks the value, so that no depth overflows the
// browser's stack, and only what is open is walked.

import { isRawNumber, type JsonObject, type JsonValue } from '#core/json.ts'

export type JsonContainer = JsonValue[] | JsonObject

export interface JsonLine {
  /** 1 for the value itself. */
  readonly level: number
  /** The property or the index; null for the value itself. */
  readonly key: string | number | null
  readonly kind: 'object' | 'list' | 'string' | 'number' | 'boolean' | 'null'
  /** The literal or the string itself; for objects and lists the number of members. */
  readonly text: string
  /** Set for objects and lists that have members, which are the lines that open and close. */
  readonly container: JsonContainer | null
  readonly isOpen: boolean
  /** The place among its siblings, from 1. */
  readonly place: number
  readonly siblingCount: number
}

/**
 * @param isOpen of an object or a list, which is known by its identity.
 * @returns the lines that are seen, in order.
 */
export function listJsonLines(value: JsonValue, isOpen: (container: JsonContainer) => boolean): JsonLine[] {
  const lines = [createLine(value, null, 1, 1, 1, isOpen)]
  const stack = lines[0]!.isOpen ? [new Cursor(lines[0]!.container!)] : []
  while (stack.length > 0) {
    const cursor = stack.at(-1)!
    if (cursor.place === cursor.count) {
      stack.pop()
      continue
    }
    const [key, member] = cursor.next()
    const line = createLine(member, key, stack.length + 1, cursor.place, cursor.count, isOpen)
    lines.push(line)
    if (line.isOpen) stack.push(new Cursor(line.container!))
  }
  return lines
}

/** Finds what is open at first: level by level, as long as no more lines than this are seen. */
export function findOpenAtFirst(value: JsonValue, linesMax: number): Set<JsonContainer> {
  const open = new Set<JsonContainer>()
  let lineCount = 1
  let level = findContainer(value) === null ? [] : [findContainer(value)!]
  while (level.length > 0) {
    const next: JsonContainer[] = []
    for (const container of level) {
      const members = Array.isArray(container) ? container : Object.keys(container).map(key => container[key]!)
      if (lineCount + members.length > linesMax) continue
      lineCount += members.length
      open.add(container)
      for (const member of members) {
        const inner = findContainer(member)
        if (inner !== null) next.push(inner)
      }
    }
    level = next
  }
  return open
}

/** The line of the object or list that holds this line; -1 for the value itself. */
export function findParentLine(lines: readonly JsonLine[], at: number): number {
  const { level } = lines[at]!
  let parent = at - 1
  while (parent >= 0 && lines[parent]!.level >= level) parent--
  return parent
}

class Cursor {
  readonly count: number
  readonly #container: JsonContainer
  readonly #keys: readonly string[] | null
  place = 0

  constructor(container: JsonContainer) {
    this.#container = container
    this.#keys = Array.isArray(container) ? null : Object.keys(container)
    this.count = this.#keys?.length ?? (container as JsonValue[]).length
  }

  next(): [string | number, JsonValue] {
    const key = this.#keys?.[this.place] ?? this.place
    this.place++
    return [key, (this.#container as JsonObject)[key]!]
  }
}

function findContainer(value: JsonValue): JsonContainer | null {
  if (typeof value !== 'object' || value === null || isRawNumber(value)) return null
  return Object.keys(value).length === 0 ? null : (value as JsonContainer)
}

function createLine(
  value: JsonValue,
  key: string | number | null,
  level: number,
  place: number,
  siblingCount: number,
  isOpen: (container: JsonContainer) => boolean,
): JsonLine {
  const container = findContainer(value)
  const position = { level, key, place, siblingCount, container, isOpen: container !== null && isOpen(container) }
  if (value === null) return { ...position, kind: 'null', text: 'null' }
  if (typeof value === 'string') return { ...position, kind: 'string', text: value }
  if (typeof value === 'boolean') return { ...position, kind: 'boolean', text: String(value) }
  if (typeof value === 'number') return { ...position, kind: 'number', text: String(value) }
  if (isRawNumber(value)) return { ...position, kind: 'number', text: value.rawJSON }
  if (Array.isArray(value)) return { ...position, kind: 'list', text: String(value.length) }
  return { ...position, kind: 'object', text: String(Object.keys(value).length) }
}
