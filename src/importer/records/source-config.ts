// Reads the configuration of a source. A key that the source does not read is refused, not ignored: with a misspelt time
// zone key, imported times would be wrong by hours for ever.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { findIntendedName } from '#core/nearest-name.ts'
import { ImportConfigError } from './import-source.ts'
import { isZoneName, readTime } from './source-time.ts'

/** Read for every source by `defineSource`, so sources do not read it. */
export const eventNamesKey = 'event_names'

export class SourceConfig {
  readonly #source: string
  readonly #config: JsonObject
  readonly #known: string[] = [eventNamesKey]

  constructor(source: string, config: JsonObject) {
    this.#source = source
    this.#config = config
  }

  /** @returns whether the key is set to true. */
  flag(key: string): boolean {
    return this.#read(key, value => typeof value === 'boolean', 'must be true or false') === true
  }

  text(key: string): string | null {
    return this.#read(key, (value): value is string => typeof value === 'string' && value !== '', 'must be text')
  }

  /** @returns the name of a zone; null when none is set. */
  zone(): string | null {
    const key = 'source_timezone'
    const name = this.text(key)
    if (name !== null && !isZoneName(name))
      this.#refuse(key, `must be an IANA zone such as Europe/Berlin, not ${JSON.stringify(name)}`)
    return name
  }

  /** @returns microseconds since 1970; null when the time is not set. Texts without a zone are UTC. */
  time(key: string): number | null {
    const toTime = (value: JsonValue) => readTime(value, { zone: 'UTC' }, key)
    const isTime = (value: JsonValue): value is JsonValue => toTime(value) !== null
    return toTime(this.#read(key, isTime, 'must be a time such as 2024-06-01T00:00:00Z'))
  }

  /** @returns one of the choices; the first when the key is not set. */
  choice<T extends string>(key: string, choices: readonly [T, ...T[]]): T {
    const value = this.text(key)
    if (value === null) return choices[0]
    return choices.find(each => each === value) ?? this.#refuse(key, `must be one of ${choices.join(', ')}`)
  }

  wholeNumber(key: string): number | null {
    return this.#read(key, (value): value is number => Number.isSafeInteger(value), 'must be a whole number')
  }

  object(key: string): JsonObject | null {
    return this.#read(key, isJsonObject, 'must be an object')
  }

  /** @returns the texts of an object by their keys; an empty map when the key is not set. */
  texts(key: string): ReadonlyMap<string, string> {
    const entries = Object.entries(this.object(key) ?? {})
    for (const [name, value] of entries) if (typeof value !== 'string') this.#refuse(`${key}.${name}`, 'must be text')
    return new Map(entries as [string, string][])
  }

  /** Called by `defineSource` after all keys are read. @throws ImportConfigError for a key that was not read. */
  end(): void {
    for (const key of Object.keys(this.#config)) {
      if (this.#known.includes(key)) continue
      const near = findIntendedName(key, this.#known)
      const known = `its keys are ${this.#known.join(', ')}`
      throw new ImportConfigError(
        `the configuration of ${this.#source} has no key ${JSON.stringify(key)}: ${near === null ? known : `did you mean ${near}?`}`,
      )
    }
  }

  /** @param isValid checks the type of a value that is set. @param reason why another type is refused. */
  #read<T extends JsonValue>(key: string, isValid: (value: JsonValue) => value is T, reason: string): T | null {
    this.#known.push(key)
    const value = getOwnValue(this.#config, key) ?? null
    return value === null || isValid(value) ? value : this.#refuse(key, reason)
  }

  #refuse(key: string, reason: string): never {
    throw new ImportConfigError(`${key} in the configuration of ${this.#source} ${reason}`)
  }
}
