// What the service must have stored once everything is sent. The rehearsal, which reads all events anyway, writes this for
// the case that no event is refused. Verification and publishing use it if exactly these events were sent; otherwise
// verification reads the sent events again. Source: docs/wire/import.md §2.10.

import type { JsonObject } from '#core/json.ts'
import type { PropertyMarks } from '#core/persons/person.ts'
import type { JobFolder } from '../../job/job-folder.ts'
import { readJobState, writeJobState } from '../../job/job-state.ts'
import type { StagedPart } from '../../job/staged-part.ts'
import type { ImportedEvent } from '../../records/imported-event.ts'
import { type ExpectedEvents, ExpectedTally } from './expected-events.ts'
import { createExpectedPerson, type ExpectedPerson, type GetPersonId, PersonSampler } from './expected-persons.ts'

export interface Expected extends ExpectedEvents {
  /** The persons to compare after publishing; null if they take too much space to be kept. */
  readonly persons: readonly ExpectedPerson[] | null
}

/** Takes all events of a job, part by part. */
export class ExpectedCollector {
  readonly #tally = new ExpectedTally()
  readonly #persons: PersonSampler

  constructor(personOf: GetPersonId) {
    this.#persons = new PersonSampler(personOf)
  }

  beginPart(part: Pick<StagedPart, 'id'>): void {
    this.#tally.beginPart(part)
  }

  add(event: ImportedEvent): void {
    this.#tally.add(event)
    this.#persons.add(event)
  }

  end(): Expected {
    return { ...this.#tally.expected(), persons: this.#persons.chosen() }
  }
}

/** How many events were accepted and refused. Since both numbers only grow, they identify a state of the job. */
export interface SentEvents {
  readonly sent: number
  readonly refused: number
}

const expectedName = 'expected'
/** How many characters of JSON are stored for the samples, and as many for the persons: both may be very large. */
const charsMax = 16 * 1_024 * 1_024

interface Stored {
  readonly sent: number
  readonly refused: number
  readonly rows: number
  readonly counts: readonly (readonly [day: string, names: readonly (readonly [name: string, count: number])[]])[]
  readonly otherCounts: readonly (readonly [day: string, counts: readonly number[]])[]
  readonly idBuckets: readonly number[]
  readonly samples: readonly (readonly ImportedEvent[])[]
  readonly persons: readonly { id: string; ids: string[]; properties: JsonObject; marks: PropertyMarks }[] | null
}

/** The numbers `sent` and `refused` include the job's retries. */
export function storeExpectations(folder: JobFolder, { sent, refused }: SentEvents, expected: Expected): void {
  const { rows, counts, otherCounts, idBuckets, samples, persons } = expected
  const storedPersons = persons?.map(({ id, ids, profile }) => ({ id, ids: [...ids], ...profile })) ?? null
  const stored: Stored = {
    ...{ sent, refused, rows, idBuckets },
    counts: [...counts].map(([day, names]) => [day, [...names]]),
    otherCounts: [...otherCounts],
    samples: samples.slice(0, countWithin(samples, charsMax)),
    persons:
      storedPersons !== null && countWithin(storedPersons, charsMax) === storedPersons.length ? storedPersons : null,
  }
  writeJobState(folder, expectedName, stored)
}

/** @returns null if no expectations are stored, or if they were stored for other numbers of sent events. */
export function readExpectations(folder: JobFolder, { sent, refused }: SentEvents): Expected | null {
  const stored = readJobState<Stored>(folder, expectedName)
  if (stored?.sent !== sent || stored.refused !== refused) return null
  const { rows, counts, otherCounts, idBuckets, samples, persons } = stored
  return {
    ...{ rows, idBuckets, samples },
    counts: new Map(counts.map(([day, names]) => [day, new Map(names)])),
    otherCounts: new Map(otherCounts),
    persons:
      persons?.map(({ id, ids, properties, marks }) => ({
        ...createExpectedPerson(id),
        ...{ ids: new Set(ids), profile: { properties, marks } },
      })) ?? null,
  }
}

/** How many values, counted from the first, fit into `max` characters of JSON. */
function countWithin(values: readonly unknown[], max: number): number {
  let chars = 0
  const index = values.findIndex(value => {
    chars += JSON.stringify(value).length
    return chars > max
  })
  return index === -1 ? values.length : index
}
