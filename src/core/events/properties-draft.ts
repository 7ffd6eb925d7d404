// The stored text of an event's properties, made from the client's own text with as little rewriting as possible: keys
// that are only added are spliced onto the end; the text is written anew, literals kept, when a key goes or changes.

import { type JsonObject, type JsonValue, setOwn } from '../json.ts'

export class PropertiesDraft {
  private readonly text: string
  private readonly parsed: JsonObject
  /** Own copy of `parsed`, once something in it goes or changes; removed keys are undefined, which JSON leaves out. */
  private rewritten: { [key: string]: JsonValue | undefined } | null = null
  private added: JsonObject | null = null

  /** @param parsed what `text` says; never changed. */
  constructor(text: string, parsed: JsonObject) {
    this.text = text
    this.parsed = parsed
  }

  set(key: string, value: JsonValue): void {
    if (Object.hasOwn(this.parsed, key)) setOwn(this.copy() as JsonObject, key, value)
    else {
      this.added ??= {}
      setOwn(this.added, key, value)
    }
  }

  remove(key: string): void {
    if (Object.hasOwn(this.parsed, key)) this.copy()[key] = undefined
    if (this.added !== null && Object.hasOwn(this.added, key)) delete this.added[key]
  }

  keepOnly(keeps: (key: string) => boolean): void {
    for (const key of Object.keys(this.parsed))
      if (!keeps(key)) setOwn(this.copy() as JsonObject, key, undefined as never)
    if (this.added !== null) for (const key of Object.keys(this.added)) if (!keeps(key)) delete this.added[key]
  }

  json(): string {
    const { added, rewritten, text } = this
    if (rewritten !== null) {
      const base = JSON.stringify(rewritten)
      return added === null ? base : withAdded(base, added)
    }
    return added === null ? text : withAdded(text, added)
  }

  private copy(): { [key: string]: JsonValue | undefined } {
    this.rewritten ??= { ...this.parsed }
    return this.rewritten
  }
}

/** The JSON text of an object with the keys of `added`, which it does not have, after its own. */
export function withAdded(text: string, added: JsonObject): string {
  const addedText = JSON.stringify(added)
  if (addedText === '{}') return text
  const end = text.lastIndexOf('}')
  let last = end - 1
  while (text.charCodeAt(last) <= 32) last--
  return text.charCodeAt(last) === openBrace ? addedText : `${text.slice(0, end)},${addedText.slice(1)}`
}

const openBrace = 123
