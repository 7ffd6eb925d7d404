// Chooses the persons to compare after publishing, and collects what the import says about them: of all ids that the import
// describes, those with the smallest hashes. Takes one pass over the events. Source: docs/wire/import.md §2.10.

import type { ImportedEvent } from '../records/imported-event.ts'
import { addToPerson, createExpectedPerson, describesPerson, type ExpectedPerson } from './expected-person.ts'

export const personsDefault = 50
/** More ids than persons are chosen, since several ids may turn out to be of one person. */
const idsPerPerson = 4
/** Bound of the cache of ids that were not chosen, which saves hashing the id of most events: about 10 MB. */
const passedOverMax = 50_000

/** @returns the user that an id is linked to, or the id itself. */
export type PersonOf = (distinctId: string) => string

export class PersonChoice {
  readonly #personOf: PersonOf
  readonly #kept: number
  #chosen = new Map<string, ExpectedPerson>()
  /** The largest chosen hash; until enough ids are chosen, a text larger than any hash. */
  #worst = 'g'
  /** Ids that can never be chosen, since `#worst` only decreases. */
  readonly #passedOver = new Set<string>()

  constructor(personOf: PersonOf, count = personsDefault) {
    this.#personOf = personOf
    this.#kept = idsPerPerson * count
  }

  add(event: ImportedEvent): void {
    if (this.#passedOver.has(event.distinctId) || !describesPerson(event)) return
    const id = this.#personOf(event.distinctId)
    const person = this.#chosen.get(id) ?? createExpectedPerson(id)
    if (person.rank > this.#worst) {
      this.#passOver(event.distinctId)
      return
    }
    this.#chosen.set(id, person)
    addToPerson(person, event)
    if (this.#chosen.size < 2 * this.#kept) return
    const best = this.chosen()
    this.#chosen = new Map(best.map(each => [each.id, each]))
    this.#worst = best.at(-1)!.rank
  }

  /** Sorted by hash. */
  chosen(): ExpectedPerson[] {
    return [...this.#chosen.values()].toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).slice(0, this.#kept)
  }

  #passOver(id: string): void {
    if (this.#passedOver.size === passedOverMax) this.#passedOver.clear()
    // Copy the id: it may be a substring of its record's text, which it would keep in memory.
    this.#passedOver.add(Buffer.from(id, 'utf16le').toString('utf16le'))
  }
}
