// Compares how much CPU this tree and another one take per answer. Both run on the same core and answer the same load in
// turns of a tenth of a second, so that other work on the machine affects both alike. Each round restarts both, because even
// two processes of one tree differ by a few per cent for their whole lives.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { processCpuMs } from '../tests/support/cpu-time.ts'
import type { Pennon } from '../tests/support/pennon.ts'
import { movePinned, startBenchServer } from './bench-server.ts'
import { decideBody, flagBody } from './bodies.ts'
import { steady } from './flags-figure.ts'
import { httpRequest, type LoadOptions } from './load-generator.ts'
import { load } from './processes.ts'
import { micros, print } from './report.ts'
import { captureCases } from './scenarios/capture.ts'
import { storePerson } from './scenarios/decide.ts'
import { definitionCounts, definitionsCase, evaluationCases } from './scenarios/evaluation.ts'

/** What is asked of both servers, again and again. */
type Asked = Pick<LoadOptions, 'requests' | 'connections' | 'expectedStatus'>

/** CPU per answer in one round, µs. */
interface Figure {
  readonly own: number
  readonly other: number
}

const rounds = 16
const settlingMs = 3_000
const measuredMs = 6_000
/** Long enough that waking and sleeping cost nothing, short enough that both meet the same machine. */
const turnMs = 100
const flagCounts = [20, 350]

/**
 * Prints, after each round and for each case whose name contains one of the words: how much more or less CPU per answer this tree
 * takes than the other, the standard error of that, and what this tree's answer takes.
 * @param tree root of the other tree, with its dependencies installed.
 */
export async function compareWith(tree: string, words: readonly string[]): Promise<void> {
  /** The figures of each case, one for each round, by the name of the case. */
  const results = new Map<string, Figure[]>()
  // Each tree gets a compile cache of its own. Otherwise this tree would start with code that its other processes compiled.
  const caches = await mkdtemp(join(tmpdir(), 'pennon-bench-'))
  const ownSettings = { NODE_COMPILE_CACHE: join(caches, 'own') }
  const otherSettings = { NODE_COMPILE_CACHE: join(caches, 'other') }
  for (let round = 0; round < rounds; round++) {
    const startOwn = () => startBenchServer(ownSettings)
    const startOther = () => startBenchServer(otherSettings, resolve(tree))
    // In both orders, because the server that starts first takes some 3 % more.
    const isOtherFirst = round % 2 === 0
    const early = await (isOtherFirst ? startOther() : startOwn())
    const late = await (isOtherFirst ? startOwn() : startOther())
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
        const asked = { own: await prepare(own), other: await prepare(other) }
        const both = (durationMs: number) =>
          Promise.all([
            microsPerAnswer(own, { ...asked.own, durationMs, turn: { ms: turnMs, isSecond: isOtherFirst } }),
            microsPerAnswer(other, { ...asked.other, durationMs, turn: { ms: turnMs, isSecond: !isOtherFirst } }),
          ])
        // A worker that is catching up slows the load down, which shares its core. Requests then arrive one by one, and each
        // of them costs the server more.
        await Promise.all([own.caughtUp(), other.caughtUp()])
        await both(settlingMs)
        const [ownMicros, otherMicros] = await both(measuredMs)
        results.set(name, [...(results.get(name) ?? []), { own: ownMicros, other: otherMicros }])
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

async function microsPerAnswer(server: Pennon, asked: Omit<LoadOptions, 'port'>): Promise<number> {
  const beforeMs = processCpuMs(server.pid)
  const { answerCount, failureCount } = await load({ ...asked, port: server.port, staysAwake: true })
  if (failureCount > 0) throw new Error(`${failureCount} of ${answerCount} answers had another status`)
  return ((processCpuMs(server.pid) - beforeMs) * 1_000) / answerCount
}

function describe(figures: readonly Figure[]): string {
  const ratios = figures.map(({ own, other }) => Math.log(own / other))
  const center = mean(ratios)
  // Each sample is a pair of rounds, so that it contains both orders in which the servers can start.
  const pairs = Array.from({ length: ratios.length >> 1 }, (_, pair) => mean(ratios.slice(2 * pair, 2 * pair + 2)))
  const own = micros(mean(figures.map(figure => figure.own)))
  if (pairs.length < 2) return `${percent(center)}; ${own}`
  const variance = pairs.reduce((sum, ratio) => sum + (ratio - mean(pairs)) ** 2, 0) / (pairs.length - 1)
  const standardError = Math.sqrt(variance / pairs.length)
  return `${percent(center)} ± ${(standardError * 100).toFixed(1)}; ${own}`
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function percent(logRatio: number): string {
  const change = (Math.exp(logRatio) - 1) * 100
  return `${change < 0 ? '−' : '+'}${Math.abs(change).toFixed(1)} %`
}
