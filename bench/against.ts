// Compares how much CPU this tree and another one take per answer. Both run at the same time on the same core, and they get
// the same load in short alternating turns, so that other work on the machine affects both alike. Each round restarts both,
// because even two processes of one tree differ by a few per cent for their whole lives.

import { resolve } from 'node:path'
import type { Pennon } from '../tests/support/pennon.ts'
import { movePinned, startBenchServer } from './bench-server.ts'
import { decideBody, flagBody } from './bodies.ts'
import { steady } from './flags-figure.ts'
import { httpRequest, type LoadOptions } from './load-generator.ts'
import { cpuNanoseconds, load } from './processes.ts'
import { micros, print } from './report.ts'
import { captureCases } from './scenarios/capture.ts'
import { storePerson } from './scenarios/decide.ts'
import { definitionCounts, definitionsCase, evaluationCases } from './scenarios/evaluation.ts'

/** What is asked of one of the two servers, again and again. */
type Asked = Omit<LoadOptions, 'port' | 'durationMs' | 'staysAwake'>

/** CPU per answer of two turns that followed each other, µs. */
interface Pair {
  readonly own: number
  readonly other: number
}

const rounds = 3
const pairsPerRound = 32
const turnMs = 500
const settlingMs = 4_000
const flagCounts = [20, 350]

/**
 * Prints, after each round and for each case whose name contains one of the words: how much more or less CPU per answer this tree
 * takes than the other (median of the pairs, with the interval that holds the true one in 95 of 100 runs), and the same for
 * each tree's lower quartile.
 * @param tree root of the other tree, with its dependencies installed.
 */
export async function compareWith(tree: string, words: readonly string[]): Promise<void> {
  const results = new Map<string, Pair[]>()
  for (let round = 0; round < rounds; round++) {
    const other = await startBenchServer({}, resolve(tree))
    const own = await startBenchServer()
    try {
      for (const server of [other, own]) {
        for (const pid of Object.values(server.childPids())) movePinned(pid, 'load')
        await storePerson(server)
      }
      let created = 0
      for (const flagCount of flagCounts) {
        for (; created < flagCount; created++)
          for (const server of [other, own])
            await server.api('POST', '/api/projects/@current/feature_flags/', flagBody(created))
        for (const path of ['/decide?v=3', '/flags?v=2']) {
          const asked = { requests: [httpRequest(path, decideBody)], connections: steady.connections }
          await compare(`${flagCount} flags, ${path}`, async () => asked)
        }
      }
      for (const [name, prepare] of Object.entries(evaluationCases))
        await compare(name, async server => {
          const { path, body } = await prepare(server)
          return { requests: [httpRequest(path, body)], connections: steady.connections }
        })
      for (const count of definitionCounts)
        await compare(`definitions of ${count} flags, 304`, server => definitionsCase(server, count))
      for (const { name, ...asked } of captureCases()) await compare(name, async () => asked)

      async function compare(name: string, prepare: (server: Pennon) => Promise<Asked>): Promise<void> {
        if (words.length > 0 && !words.some(word => name.includes(word))) return
        const pairs = results.get(name) ?? []
        results.set(name, pairs)
        const asked = new Map<Pennon, Asked>()
        for (const server of [other, own]) {
          asked.set(server, await prepare(server))
          await load({ ...asked.get(server)!, port: server.port, durationMs: settlingMs })
        }
        for (let pair = 0; pair < pairsPerRound; pair++) {
          // In both orders, so that neither profits from what the other leaves behind.
          const inOrder = pair % 2 === 0 ? [other, own] : [own, other]
          const taken = new Map<Pennon, number>()
          for (const server of inOrder) taken.set(server, await microsPerAnswer(server, asked.get(server)!))
          pairs.push({ own: taken.get(own)!, other: taken.get(other)! })
        }
      }
    } finally {
      await Promise.all([other.stop(), own.stop()])
    }
    console.log(`\nafter round ${round + 1} of ${rounds}`)
    for (const [name, pairs] of results) print({ name, value: describe(pairs) })
  }
}

async function microsPerAnswer(server: Pennon, asked: Asked): Promise<number> {
  const before = cpuNanoseconds(server.pid)
  const options = { ...asked, port: server.port, durationMs: turnMs, staysAwake: true }
  const { answerCount, failureCount } = await load(options)
  if (failureCount > 0) throw new Error(`${failureCount} of ${answerCount} answers had another status`)
  return (cpuNanoseconds(server.pid) - before) / 1_000 / answerCount
}

function describe(pairs: readonly Pair[]): string {
  const ratios = pairs.map(({ own, other }) => own / other).sort((a, b) => a - b)
  // Ranks of the sign test.
  const apart = 0.98 * Math.sqrt(ratios.length)
  const at = (rank: number) => percent(ratios[Math.min(ratios.length - 1, Math.max(0, Math.round(rank)))]!)
  const middle = ratios.length / 2
  const own = lowerQuartile(pairs.map(pair => pair.own))
  const other = lowerQuartile(pairs.map(pair => pair.other))
  const interval = `95 %: ${at(middle - apart)} to ${at(middle + apart)}, ${ratios.length} pairs`
  return `${at(middle)} (${interval}); undisturbed ${micros(own)}, ${percent(own / other)}`
}

/** What others on the machine do only adds: the lower quartile has the least of it. */
function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 2]!
}

function percent(ratio: number): string {
  const change = (ratio - 1) * 100
  return `${change < 0 ? '−' : '+'}${Math.abs(change).toFixed(1)} %`
}
