// Which persons are compared after publishing, and what the import says of them: the ids whose hash is smallest, of those of
// whom anything is said. One pass, and each is seen from its first event. Source: docs/wire/import.md §2.10.

import type { ImportedEvent } from '../records/imported-event.ts'
import { addToPerson, describesPerson, type ExpectedPerson, newPerson } from './expected-person.ts'

export const personsDefault = 50
/** More than are compared, since several may turn out to be of one person. */
const idsPerPerson = 4
/** Ids that are remembered as not chosen, so that a hash is made for hardly any event: some 10 MB. */
const passedOverMax = 50_000

/** The user that an id was linked to, else the id itself. */
export type PersonOf = (distinctId: string) => string

export class PersonChoice {
  readonly #personOf: PersonOf
  readonly #kept: number
  #chosen = new Map<string, ExpectedPerson>()
  /** Larger than any hash, until there are enough. */
  #worst = 'g'
  /** What is worse than the worst stays so. */
  readonly #passedOver = new Set<string>()

  constructor(personOf: PersonOf, count = personsDefault) {
    this.#personOf = personOf
    this.#kept = idsPerPerson * count
  }

  add(event: ImportedEvent): void {
    if (this.#passedOver.has(event.distinctId) || !describesPerson(event)) return
    const id = this.#personOf(event.distinctId)
    const person = this.#chosen.get(id) ?? newPerson(id)
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

  /** The best first. */
  chosen(): ExpectedPerson[] {
    return [...this.#chosen.values()].toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).slice(0, this.#kept)
  }

  #passOver(id: string): void {
    if (this.#passedOver.size === passedOverMax) this.#passedOver.clear()
    // A copy: the id may be a piece of its record's text, which would stay in memory with it.
    this.#passedOver.add(Buffer.from(id, 'utf16le').toString('utf16le'))
  }
}
