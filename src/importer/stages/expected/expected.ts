// `expected.json`: what the service must have stored once everything is sent. The rehearsal, which reads all events anyway,
// writes it for the case that none is refused. Verification and publishing use it if that is what was sent; otherwise
// verification reads the sent events again. Source: docs/wire/import.md §2.10.

import { readFileSync } from 'node:fs'
import { type JsonObject, parseJson } from '#core/json.ts'
import type { PropertyMarks } from '#core/persons/person.ts'
import type { JobFolder } from '../../job/job-folder.ts'
import { sha256Hex } from '../../job/sha256.ts'
import type { StagedPart } from '../../job/staged-part.ts'
import type { ImportedEvent } from '../../records/imported-event.ts'
import { type ExpectedEvents, ExpectedTally } from './expected-events.ts'
import { createExpectedPerson, type ExpectedPerson, PersonChoice, type PersonOf } from './expected-persons.ts'

export interface Expected extends ExpectedEvents {
  /** The persons to compare after publishing; null if they take too much space to be kept. */
  readonly persons: readonly ExpectedPerson[] | null
}

/** Takes all events of a job, part by part. */
export class ExpectedCollector {
  readonly #tally = new ExpectedTally()
  readonly #persons: PersonChoice

  constructor(personOf: PersonOf) {
    this.#persons = new PersonChoice(personOf)
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

/** A part, how far it is sent, and the size of its file of refused events. */
export interface SentPart {
  readonly id: string
  readonly sha256: string
  /** A retry may be verified after it was interrupted. */
  readonly committed: { readonly line: number }
  readonly rejects_bytes: number
}

const expectedFile = 'expected.json'
/** In characters of JSON, for the samples and for the persons each: events and persons may be very large. */
const charsMax = 16 * 1_024 * 1_024

interface Stored {
  readonly sent: string
  readonly rows: number
  readonly counts: readonly (readonly [day: string, names: readonly (readonly [name: string, count: number])[]])[]
  readonly otherCounts: readonly (readonly [day: string, counts: readonly number[]])[]
  readonly idBuckets: readonly number[]
  readonly samples: readonly (readonly ImportedEvent[])[]
  readonly persons: readonly { id: string; ids: string[]; properties: JsonObject; marks: PropertyMarks }[] | null
}

/** @param sent the parts of the job and of its retries. */
export function storeExpected(folder: JobFolder, sent: readonly SentPart[], expected: Expected): void {
  const { rows, counts, otherCounts, idBuckets, samples, persons } = expected
  const storedPersons = persons?.map(({ id, ids, profile }) => ({ id, ids: [...ids], ...profile })) ?? null
  const body = JSON.stringify({
    sent: hashSent(sent),
    rows,
    counts: [...counts].map(([day, names]) => [day, [...names]]),
    otherCounts: [...otherCounts],
    idBuckets,
    samples: samples.slice(0, countWithin(samples, charsMax)),
    persons:
      storedPersons !== null && countWithin(storedPersons, charsMax) === storedPersons.length ? storedPersons : null,
  })
  folder.write(expectedFile, `${sha256Hex(body)}\n${body}\n`)
}

/** @returns null if there is no file, if something else was sent, or if the file is damaged. */
export function readExpected(folder: JobFolder, sent: readonly SentPart[]): Expected | null {
  const stored = readStored(folder.file(expectedFile))
  if (stored === null || stored.sent !== hashSent(sent)) return null
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

/** @returns null if the file is missing, or its bytes are not those that were written. */
function readStored(path: string): Stored | null {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw cause
  }
  const end = text.indexOf('\n')
  const body = text.slice(end + 1, -1)
  return sha256Hex(body) === text.slice(0, end) ? (parseJson(body) as unknown as Stored) : null
}

/** Differs for any two sets of sent events. */
function hashSent(parts: readonly SentPart[]): string {
  return sha256Hex(
    JSON.stringify(
      parts.map(({ id, sha256, committed, rejects_bytes }) => [id, sha256, committed.line, rejects_bytes]),
    ),
  )
}

/** How many values fit, from the first on. */
function countWithin(values: readonly unknown[], max: number): number {
  let chars = 0
  const index = values.findIndex(value => {
    chars += JSON.stringify(value).length
    return chars > max
  })
  return index === -1 ? values.length : index
}
