// The facts that records hold about others. All facts must be known before a record that asks for one is converted, but
// hardly any record asks. So a scan collects facts along the way, and reads ahead only once a record asks.

import type { JobLedger } from '../job/ledger.ts'
import { Type } from '../records/file-schema.ts'
import type { RecordConverter, SourceRecord } from '../records/import-source.ts'

/** A record asked for a fact before the facts of all parts were known. */
export class FactsMissing extends Error {}

export class ScanFacts {
  readonly #ledger: JobLedger
  readonly #converter: RecordConverter
  readonly #partCount: number
  #partsTaken: number
  /** Whether a fact is being taken, which may look up facts itself: then the facts known so far are enough. */
  #isTaking = false

  /** Continues from where the ledger says that an earlier scan stopped. */
  constructor(ledger: JobLedger, converter: RecordConverter, partCount: number) {
    this.#ledger = ledger
    this.#converter = converter
    this.#partCount = partCount
    this.#partsTaken = converter.factsOf === undefined ? partCount : countPartsWithFacts(ledger)
  }

  /** The ledger has the facts of this many parts, from the first on. */
  get partsTaken(): number {
    return this.#partsTaken
  }

  /** @throws FactsMissing */
  find(kind: string, key: string): string | null {
    if (this.#partsTaken < this.#partCount && !this.#isTaking) throw new FactsMissing('not all facts are known')
    return this.#ledger.findFact(kind, key)
  }

  /** Records must come in time order, so that the latest fact about a key counts. */
  take(record: SourceRecord): void {
    this.#isTaking = true
    try {
      for (const fact of this.#converter.factsOf?.(record) ?? []) this.#ledger.putFact(fact)
    } finally {
      this.#isTaking = false
    }
  }

  /** Records, with the next commit of the ledger, that all facts of a part were taken. */
  endPart(index: number): void {
    this.#partsTaken = index + 1
    this.#ledger.putProgress('fact_parts', this.#partsTaken)
  }
}

export function countPartsWithFacts(ledger: JobLedger): number {
  return ledger.readProgress('fact_parts', Type.Number()) ?? 0
}
