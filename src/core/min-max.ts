// The least and the greatest of many numbers. A loop, since `Math.min(...list)` overflows the stack at about 100,000.

/** Infinity for no numbers. */
export function minOf(numbers: Iterable<number>): number {
  let least = Number.POSITIVE_INFINITY
  for (const number of numbers) least = Math.min(least, number)
  return least
}

/** -Infinity for no numbers. */
export function maxOf(numbers: Iterable<number>): number {
  let greatest = Number.NEGATIVE_INFINITY
  for (const number of numbers) greatest = Math.max(greatest, number)
  return greatest
}
