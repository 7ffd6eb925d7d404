// Ranks the counts of a flag's calls: the most frequent values are reported separately, all other values together.

/** The calls of one value in one bucket, and the persons who made them. */
export interface UsageCell {
  /** The start of the bucket. */
  readonly fromMs: number
  /** `true`, `false` or a variant; '' when the calls have no answer; null for values that are only counted together. */
  readonly value: string | null
  readonly calls: number
  readonly persons: number
}

/** Counts per bucket. */
interface UsageLine {
  readonly calls: readonly number[]
  readonly persons: readonly number[]
}

/** How often a flag was called. */
export interface FlagUsage {
  /** Most calls first; values with equally many calls in the order of their text. */
  readonly values: readonly (UsageLine & { readonly value: string })[]
  /** All other values together, null when there are none. A person counts once for each of these values. */
  readonly rest: UsageLine | null
}

/**
 * At most this many values are reported separately. Real flags have fewer, but anyone with the project's key can send
 * invented ones.
 */
const usageValuesMax = 25

/** @param starts the start of each bucket, in epoch ms. */
export function rankFlagUsage(
  cells: readonly UsageCell[],
  starts: readonly number[],
  valuesMax: number = usageValuesMax,
): FlagUsage {
  const totals = new Map<string, number>()
  for (const { value, calls } of cells) if (value !== null) totals.set(value, calls + (totals.get(value) ?? 0))
  const ranked = [...totals].sort(([a, aCalls], [b, bCalls]) => bCalls - aCalls || (a < b ? -1 : 1))
  const named = new Set(ranked.slice(0, valuesMax).map(([value]) => value))
  const indexOf = new Map(starts.map((ms, index) => [ms, index]))
  const lines = new Map<string | null, { calls: number[]; persons: number[] }>()
  for (const { fromMs, value, calls, persons } of cells) {
    const line = lines.getOrInsertComputed(value !== null && named.has(value) ? value : null, () => ({
      calls: starts.map(() => 0),
      persons: starts.map(() => 0),
    }))
    const index = indexOf.get(fromMs)!
    line.calls[index]! += calls
    line.persons[index]! += persons
  }
  return { values: [...named].map(value => ({ value, ...lines.get(value)! })), rest: lines.get(null) ?? null }
}
