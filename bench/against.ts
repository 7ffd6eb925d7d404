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

const rounds = 8
const pairsPerRound = 8
const turnMs = 500
const settlingMs = 3_000
const flagCounts = [20, 350]

/**
 * Prints, after each round and for each case whose name contains one of the words: how much more or less CPU per answer this tree
 * takes than the other (median of the rounds' medians, and what the rounds but the two furthest out say), and the same for each
 * tree's lower quartile.
 * @param tree root of the other tree, with its dependencies installed.
 */
export async function compareWith(tree: string, words: readonly string[]): Promise<void> {
  /** By the name of the case, the pairs of each round. */
  const results = new Map<string, Pair[][]>()
  for (let round = 0; round < rounds; round++) {
    // In both orders too: each server that runs already changes what the next one finds.
    const isOtherFirst = round % 2 === 0
    const early = await startBenchServer({}, isOtherFirst ? resolve(tree) : undefined)
    const late = await startBenchServer({}, isOtherFirst ? undefined : resolve(tree))
    const [other, own] = isOtherFirst ? [early, late] : [late, early]
    try {
      for (const server of [other, own]) {
        for (const pid of Object.values(server.childPids())) movePinned(pid, 'load')
        await storePerson(server)
      }
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
        const pairs: Pair[] = []
        results.set(name, [...(results.get(name) ?? []), pairs])
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
    for (const [name, ofRounds] of results) print({ name, value: describe(ofRounds) })
  }

  function isChosen(name: string): boolean {
    return words.length === 0 || words.some(word => name.includes(word))
  }
}

async function microsPerAnswer(server: Pennon, asked: Asked): Promise<number> {
  const before = cpuNanoseconds(server.pid)
  const options = { ...asked, port: server.port, durationMs: turnMs, staysAwake: true }
  const { answerCount, failureCount } = await load(options)
  if (failureCount > 0) throw new Error(`${failureCount} of ${answerCount} answers had another status`)
  return (cpuNanoseconds(server.pid) - before) / 1_000 / answerCount
}

function describe(rounds: readonly (readonly Pair[])[]): string {
  // Two processes of one tree differ by a few per cent for their whole lives, so each round counts once.
  const medians = rounds.map(pairs => median(pairs.map(({ own, other }) => own / other))).sort((a, b) => a - b)
  const inner = medians.length > 4 ? medians.slice(1, -1) : medians
  const pairs = rounds.flat()
  const own = lowerQuartile(pairs.map(pair => pair.own))
  const other = lowerQuartile(pairs.map(pair => pair.other))
  const spread = `${percent(inner[0]!)} to ${percent(inner.at(-1)!)}`
  return `${percent(median(medians))} (${spread}); undisturbed ${micros(own)}, ${percent(own / other)}`
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}

/** What others on the machine do only adds: the lower quartile has the least of it. */
function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 2]!
}

function percent(ratio: number): string {
  const change = (ratio - 1) * 100
  return `${change < 0 ? '−' : '+'}${Math.abs(change).toFixed(1)} %`
}
