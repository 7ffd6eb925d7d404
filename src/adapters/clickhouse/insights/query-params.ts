// Collects the parameters of a query while its text is built. Values from callers are always parameters, never SQL.

import { splitIntoLists } from '../parameters/split-into-lists.ts'

export class QueryParams {
  readonly values: Record<string, unknown> = {}
  readonly #prefix: string
  #count = 0

  /** @param prefix of the parameters' names, which no other parameters of the query have. */
  constructor(prefix = 'asked_') {
    this.#prefix = prefix
  }

  /**
   * @returns the placeholder. Equal values share a placeholder, so that the engine computes equal expressions only once.
   */
  text(value: string): string {
    return this.#add('String', value)
  }

  number(value: number): string {
    return this.#add('Float64', value)
  }

  /** @returns SQL of an array. A long list is sent in several form fields, since the server limits the size of a field. */
  list(type: 'String' | 'UUID', values: readonly string[]): string {
    const lists = splitIntoLists(values, value => value.length + 4)
    if (lists.length === 0) return `CAST([], 'Array(${type})')`
    const placeholders = lists.map(list => this.#add(`Array(${type})`, list))
    return placeholders.length === 1 ? placeholders[0]! : `arrayConcat(${placeholders.join(', ')})`
  }

  #add(type: string, value: unknown): string {
    for (const [name, known] of Object.entries(this.values)) {
      if (known === value && name.startsWith(`${this.#prefix}${type.toLowerCase()}_`)) return `{${name}:${type}}`
    }
    const name = `${this.#prefix}${type.toLowerCase().replaceAll(/[()]/g, '_')}_${this.#count++}`
    this.values[name] = value
    return `{${name}:${type}}`
  }
}
