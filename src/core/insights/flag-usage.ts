// Ranks the counts of a flag's calls: the values called most are reported separately, the others together.

/** Calls of one value, and the persons who made them, per bucket. */
export interface ValueUsage {
  /** `true`, `false` or a variant; '' when the call has no answer. */
  readonly value: string
  readonly calls: readonly number[]
  readonly persons: readonly number[]
}

/** How often a flag was called. */
export interface FlagUsage {
  /** Most calls first; of equally many, in the order of their text. */
  readonly values: readonly ValueUsage[]
  /** All other values together, null when there are none. A person counts once for each of them. */
  readonly rest: Omit<ValueUsage, 'value'> | null
}

/** How many values are reported separately. Flags have fewer; anyone with the project's key may make up answers. */
export const usageValuesMax = 25

/** Adds up the counts of each value from different buckets, and ranks the values. */
export function rankUsage(
  parts: Iterable<ValueUsage>,
  rests: Iterable<Omit<ValueUsage, 'value'>>,
  valuesMax: number = usageValuesMax,
): FlagUsage {
  const sums = new Map<string, ValueUsage>()
  for (const part of parts) {
    const sum = sums.get(part.value)
    sums.set(part.value, sum === undefined ? part : { ...addUsage(sum, part), value: part.value })
  }
  const ranked = [...sums.values()]
    .map(usage => ({ usage, total: usage.calls.reduce((sum, count) => sum + count, 0) }))
    .sort((a, b) => b.total - a.total || (a.usage.value < b.usage.value ? -1 : 1))
    .map(({ usage }) => usage)
  const others = [...ranked.slice(valuesMax), ...rests]
  return { values: ranked.slice(0, valuesMax), rest: others.length === 0 ? null : others.reduce(addUsage) }
}

function addUsage(a: Omit<ValueUsage, 'value'>, b: Omit<ValueUsage, 'value'>): Omit<ValueUsage, 'value'> {
  const { calls, persons } = a
  return {
    calls: calls.map((count, index) => count + b.calls[index]!),
    persons: persons.map((count, index) => count + b.persons[index]!),
  }
}
