// Compares many random trends with the simple program that counts them.

import type { TestContext } from 'node:test'
import { runRandomTrends } from '../insights/random-trends.ts'
import { numberOf, printedSeed } from './settings.ts'

export async function runInsights(): Promise<boolean> {
  const seed = printedSeed()
  const ends: (() => unknown)[] = []
  // The part of a test context that starting and ending a run needs.
  const t = { after: (end: () => unknown) => ends.push(end) } as unknown as TestContext
  try {
    const queryCount = numberOf('QUERIES', 10_000)
    const eventCount = numberOf('EVENTS', 250)
    await runRandomTrends(t, { queryCount, eventCount, seed, log: console.log })
    return true
  } finally {
    for (const end of ends.reverse()) await end()
  }
}
