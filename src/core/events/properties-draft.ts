// Makes the stored text of an event's properties from the client's own text, with as little rewriting as possible. Added keys
// are spliced onto the end. The text is rewritten, with its literals kept, only if a key is removed or changed.

import { type JsonObject, type JsonValue, setOwnValue } from '../json.ts'

export class PropertiesDraft {
  readonly #text: string
  readonly #parsed: JsonObject
  /** A copy of `parsed`, made when a key is removed or changed. Removed keys are undefined, which JSON leaves out. */
  #rewritten: { [key: string]: JsonValue | undefined } | null = null
  #added: JsonObject | null = null

  /** @param parsed the parsed `text`; never changed. */
  constructor(text: string, parsed: JsonObject) {
    this.#text = text
    this.#parsed = parsed
  }

  set(key: string, value: JsonValue): void {
    if (Object.hasOwn(this.#parsed, key)) setOwnValue(this.#copy() as JsonObject, key, value)
    else {
      this.#added ??= {}
      setOwnValue(this.#added, key, value)
    }
  }

  remove(key: string): void {
    if (Object.hasOwn(this.#parsed, key)) this.#copy()[key] = undefined
    if (this.#added !== null && Object.hasOwn(this.#added, key)) delete this.#added[key]
  }

  keepOnly(keeps: (key: string) => boolean): void {
    for (const key of Object.keys(this.#parsed))
      if (!keeps(key)) setOwnValue(this.#copy() as JsonObject, key, undefined as never)
    if (this.#added !== null) for (const key of Object.keys(this.#added)) if (!keeps(key)) delete this.#added[key]
  }

  json(): string {
    const added = this.#added
    const rewritten = this.#rewritten
    const text = this.#text
    if (rewritten !== null) {
      const base = JSON.stringify(rewritten)
      return added === null ? base : appendJsonMembers(base, added)
    }
    return added === null ? text : appendJsonMembers(text, added)
  }

  #copy(): { [key: string]: JsonValue | undefined } {
    this.#rewritten ??= { ...this.#parsed }
    return this.#rewritten
  }
}

/** Appends the keys of `added` to the JSON text of an object that has none of them. */
export function appendJsonMembers(text: string, added: JsonObject): string {
  const addedText = JSON.stringify(added)
  if (addedText === '{}') return text
  const end = text.lastIndexOf('}')
  let last = end - 1
  while (text.charCodeAt(last) <= 32) last--
  return text.charCodeAt(last) === openBrace ? addedText : `${text.slice(0, end)},${addedText.slice(1)}`
}

const openBrace = 123
