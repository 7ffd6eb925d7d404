// What became of each item of a request, for clients that ask for it (`?verbose=1`). Results are counted exactly and
// written out up to a bound, in the order of the request. Where not all fit, items that are `ok` are left out first.

export const itemResults = ['ok', 'warning', 'drop', 'reject'] as const
/**
 * `warning`: accepted, though not quite as it was sent. `drop`: fine, but nothing that becomes an event. `reject`: left out,
 * and kept where the project finds it.
 */
export type ItemResult = (typeof itemResults)[number]

export interface ItemVerdict {
  /** Place in the request, from 0. */
  readonly index: number
  /** The one it was sent with or given; null for what has none. */
  readonly uuid: string | null
  /** We made it, so its sender sees it only in what is stored. */
  readonly isUuidMade?: true
  readonly event: string | null
  readonly result: ItemResult
  /** A code of docs/wire/errors.md; null when all is well. */
  readonly reason: string | null
  readonly field: string | null
}

/** All values are plain, so that they can be sent from a decode thread. */
export interface ItemVerdicts {
  readonly itemCount: number
  readonly counts: Readonly<Record<ItemResult, number>>
  /** Ascending by index, at most `itemVerdictCountMax`. */
  readonly items: readonly ItemVerdict[]
  readonly inMain: RecordVerdicts
}

/**
 * The events that go to the main log, in the order of their records. They are listed because a quota may leave some of
 * them out after they were judged.
 */
export interface RecordVerdicts {
  /** Indexes in the request. */
  readonly indexes: Uint32Array
  /** Places in `itemResults`, with `uuidMade` where there was none. */
  readonly results: Uint8Array
}

export const uuidMade = 0x80

export const itemVerdictCountMax = 10_000
/** Characters of an event's name that are written out. */
const nameLengthMax = 200

export class VerdictCollector {
  /** How many items the request has. */
  readonly itemCount: number
  readonly #counts = { ok: 0, warning: 0, drop: 0, reject: 0 }
  readonly #fine: ItemVerdict[] = []
  readonly #notable: ItemVerdict[] = []
  readonly #rejectedByReason: Record<string, number> = {}
  readonly #inMain = { indexes: [] as number[], results: [] as number[] }

  constructor(itemCount: number) {
    this.itemCount = itemCount
  }

  get rejectedCount(): number {
    return this.#counts.reject
  }

  /** All rejects by their codes. */
  get rejectedByReason(): Readonly<Record<string, number>> {
    return this.#rejectedByReason
  }

  /** In the order of the request for items of one kind; kinds may follow one another. */
  add(verdict: ItemVerdict): void {
    const { result, reason, event } = verdict
    this.#counts[result]++
    if (result === 'reject' && reason !== null)
      this.#rejectedByReason[reason] = (this.#rejectedByReason[reason] ?? 0) + 1
    const list = result === 'ok' ? this.#fine : this.#notable
    if (list.length >= itemVerdictCountMax) return
    const isLong = event !== null && event.length > nameLengthMax
    list.push(isLong ? { ...verdict, event: shownName(event) } : verdict)
  }

  /** The same for what has a record in the main log. */
  addInMain(verdict: ItemVerdict): void {
    this.add(verdict)
    this.#inMain.indexes.push(verdict.index)
    this.#inMain.results.push(itemResults.indexOf(verdict.result) | (verdict.isUuidMade ? uuidMade : 0))
  }

  finish(): ItemVerdicts {
    return {
      itemCount: this.itemCount,
      counts: { ...this.#counts },
      items: withinBound(this.#notable, this.#fine),
      inMain: { indexes: Uint32Array.from(this.#inMain.indexes), results: Uint8Array.from(this.#inMain.results) },
    }
  }
}

export function shownName(name: string): string {
  return name.slice(0, nameLengthMax)
}

/** As many as are written out, those that are not well first, in the order of the request. */
export function withinBound(notable: readonly ItemVerdict[], fine: readonly ItemVerdict[]): ItemVerdict[] {
  const first = notable.toSorted(byIndex).slice(0, itemVerdictCountMax)
  return [...first, ...fine.slice(0, itemVerdictCountMax - first.length)].sort(byIndex)
}

function byIndex(a: ItemVerdict, b: ItemVerdict): number {
  return a.index - b.index
}
