// Compares how much CPU this tree and another one take per answer. Each round restarts both, because even two processes of one
// tree differ by a few per cent for their whole lives.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Pennon } from '../tests/support/pennon.ts'
import { startBenchServer } from './bench-server.ts'
import { decideBody, flagBody } from './bodies.ts'
import { steady } from './flags-figure.ts'
import { type Asked, askInterleaved, mean, type Pair, ratioOf, startTwo } from './interleaved.ts'
import { httpRequest } from './load-generator.ts'
import { micros, print } from './report.ts'
import { captureCases } from './scenarios/capture.ts'
import { storePerson } from './scenarios/decide.ts'
import { definitionCounts, definitionsCase, evaluationCases } from './scenarios/evaluation.ts'

const rounds = 16
const flagCounts = [20, 350]

/**
 * Prints, after each round and for each case whose name contains one of the words: how much more or less CPU per answer this tree
 * takes than the other, the standard error of that, and what this tree's answer takes.
 * @param tree root of the other tree, with its dependencies installed.
 */
export async function compareWith(tree: string, words: readonly string[]): Promise<void> {
  /** The figures of each case, one for each round, by the name of the case. */
  const results = new Map<string, Pair[]>()
  // Each tree gets a compile cache of its own. Otherwise this tree would start with code that its other processes compiled.
  const caches = await mkdtemp(join(tmpdir(), 'pennon-bench-'))
  const ownSettings = { NODE_COMPILE_CACHE: join(caches, 'own') }
  const otherSettings = { NODE_COMPILE_CACHE: join(caches, 'other') }
  for (let round = 0; round < rounds; round++) {
    const both = await startTwo(round, {
      own: () => startBenchServer(ownSettings),
      other: () => startBenchServer(otherSettings, resolve(tree)),
    })
    const { own, other } = both
    try {
      for (const server of [other, own]) await storePerson(server)
      let created = 0
      for (const flagCount of flagCounts) {
        const requests = ['/decide?v=3', '/flags?v=2'].map(path => ({ path, name: `${flagCount} flags, ${path}` }))
        if (!requests.some(({ name }) => isChosen(name))) continue
        for (; created < flagCount; created++)
          for (const server of [other, own])
            await server.api('POST', '/api/projects/@current/feature_flags/', flagBody(created))
        for (const { path, name } of requests) {
          const asked = { requests: [httpRequest(path, decideBody)], connections: steady.connections }
          await compare(name, async () => asked)
        }
      }
      // Captures come before the cases that create a second project: once there are two, bursts of 30,000 events are answered 503.
      for (const { name, ...asked } of captureCases()) await compare(name, async () => asked)
      for (const [name, prepare] of Object.entries(evaluationCases))
        await compare(name, async server => {
          const { path, body } = await prepare(server)
          return { requests: [httpRequest(path, body)], connections: steady.connections }
        })
      for (const count of definitionCounts)
        await compare(`definitions of ${count} flags, 304`, server => definitionsCase(server, count))

      async function compare(name: string, prepare: (server: Pennon) => Promise<Asked>): Promise<void> {
        if (!isChosen(name)) return
        const pair = await askInterleaved(both, { own: prepare, other: prepare })
        results.set(name, [...(results.get(name) ?? []), pair])
      }
    } finally {
      await Promise.all([other.stop(), own.stop()])
    }
    console.log(`\nafter round ${round + 1} of ${rounds}`)
    for (const [name, figures] of results) print({ name, value: describe(figures) })
  }
  await rm(caches, { recursive: true })

  function isChosen(name: string): boolean {
    return words.length === 0 || words.some(word => name.includes(word))
  }
}

function describe(pairs: readonly Pair[]): string {
  const { log, standardError } = ratioOf(pairs)
  const error = standardError === null ? '' : ` ± ${(standardError * 100).toFixed(1)}`
  return `${percent(log)}${error}; ${micros(mean(pairs.map(({ own }) => own)))}`
}

function percent(logRatio: number): string {
  const change = (Math.exp(logRatio) - 1) * 100
  return `${change < 0 ? '−' : '+'}${Math.abs(change).toFixed(1)} %`
}
