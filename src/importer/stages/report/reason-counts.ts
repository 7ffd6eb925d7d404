// Counts rejects or skips by reason, with their files and some example positions.

import type { RawPosition } from '#importer/read/read-record.ts'
import { compareTexts } from './event-counts.ts'
import type { ReasonCount } from './rehearsal-report.ts'

const examplesMax = 20
const filesMax = 100
const fixesMax = 5

interface Counted {
  count: number
  readonly fields: Set<string>
  readonly files: Set<string>
  readonly examples: ReasonCount['examples'][number][]
  /** Remedies, if they differ among records with the same reason. */
  readonly fixes: Set<string>
}

export class ReasonCounts {
  total = 0
  readonly #reasons = new Map<string, Counted>()

  /**
   * @param times how many records have the reason; the position is that of the first one. @param fix the remedy, if the reason alone does
   * not determine it.
   */
  add(
    reason: string,
    field: string | null,
    { object, line }: Pick<RawPosition, 'object' | 'line'>,
    times = 1,
    fix?: string,
  ): void {
    this.total += times
    let counted = this.#reasons.get(reason)
    if (counted === undefined) {
      counted = { count: 0, fields: new Set(), files: new Set(), examples: [], fixes: new Set() }
      this.#reasons.set(reason, counted)
    }
    counted.count += times
    if (fix !== undefined && counted.fixes.size < fixesMax) counted.fixes.add(fix)
    if (field !== null) counted.fields.add(field)
    if (counted.files.size < filesMax) counted.files.add(object)
    if (counted.examples.length < examplesMax) counted.examples.push({ object, line, field })
  }

  /** @param fixOf returns the remedy for a reason. */
  reasons(fixOf: (reason: string) => string): readonly ReasonCount[] {
    return [...this.#reasons]
      .map(([reason, { count, fields, files, examples, fixes }]) => ({
        reason,
        count,
        fields: [...fields].toSorted(compareTexts),
        files: [...files].toSorted(compareTexts),
        fix: fixes.size === 0 ? fixOf(reason) : [...fixes].join(' '),
        examples,
      }))
      .toSorted((a, b) => b.count - a.count || compareTexts(a.reason, b.reason))
  }
}
