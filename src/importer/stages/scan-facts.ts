// The facts that records hold for others. Those of all records have to be known before one that asks is converted, but
// hardly any record asks: so a scan takes them along with its own work, and reads ahead only once a record does.

import type { JobLedger } from '../job/ledger.ts'
import { Type } from '../records/file-schema.ts'
import type { RecordConverter, SourceRecord } from '../records/import-source.ts'

/** A record asks while facts of later parts are not known yet. */
export class FactsMissing extends Error {}

export class ScanFacts {
  readonly #ledger: JobLedger
  readonly #converter: RecordConverter
  readonly #partCount: number
  #partsTaken: number
  /** What a record holds for others may depend on what is known so far. */
  #isTaking = false

  /** Goes on where the ledger says that an earlier scan was stopped. */
  constructor(ledger: JobLedger, converter: RecordConverter, partCount: number) {
    this.#ledger = ledger
    this.#converter = converter
    this.#partCount = partCount
    this.#partsTaken = converter.factsOf === undefined ? partCount : partsWithFacts(ledger)
  }

  /** The facts of so many parts, the first ones, are in the ledger. */
  get partsTaken(): number {
    return this.#partsTaken
  }

  /** @throws FactsMissing */
  find(kind: string, key: string): string | null {
    if (this.#partsTaken < this.#partCount && !this.#isTaking) throw new FactsMissing('not all facts are known')
    return this.#ledger.findFact(kind, key)
  }

  /** Records have to come in the order of time, so that the last word about a key counts. */
  take(record: SourceRecord): void {
    this.#isTaking = true
    try {
      for (const fact of this.#converter.factsOf?.(record) ?? []) this.#ledger.putFact(fact)
    } finally {
      this.#isTaking = false
    }
  }

  /** Says that all records of a part were taken, with what the ledger commits next. */
  endPart(index: number): void {
    this.#partsTaken = index + 1
    this.#ledger.putProgress('fact_parts', this.#partsTaken)
  }
}

export function partsWithFacts(ledger: JobLedger): number {
  return ledger.readProgress('fact_parts', Type.Number()) ?? 0
}
